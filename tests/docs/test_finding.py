"""What one looks for is there: the places that docs/finding.md names, and the tests of each package."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT


def test_every_question_has_a_page_and_a_file_that_exist() -> None:
    rows = re.findall(
        r"^\| .*\? \| \[.*\]\((\S+?)(?:#\S+)?\) \| `(\S+)` \|$",
        (ROOT / "docs" / "finding.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) == 20
    assert [
        place for page, file in rows for place in (f"docs/{page}", file) if not (ROOT / place).is_file()
    ] == []


@pytest.mark.parametrize("package", ["controller", "experiments", "mstcp", "switch", "topologies"])
def test_tests_are_in_the_folder_of_what_they_test(package: str) -> None:
    folders = {
        file.parent.relative_to(ROOT / "tests") for file in (ROOT / "tests" / package).rglob("test_*.py")
    }
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
