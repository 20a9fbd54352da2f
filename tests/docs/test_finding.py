"""The places that docs/finding.md names exist; Sphinx checks its links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
