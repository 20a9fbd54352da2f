"""`compare` as a command: folders and files, output, sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fakes.lab import Lab
from tests.fakes.results import make_results, settings_with


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders with results of the butterfly."""
    root = tmp_path_factory.mktemp("results")
    for name, overrides in (("a", {}), ("b", {"sack": True})):
        (root / name).mkdir()
        text = make_results(seeds=2, settings=settings_with(**overrides)).to_json()
        (root / name / "results.json").write_text(text, encoding="utf-8")
    return root / "a", root / "b"


def test_folders_and_files_alike(folders: tuple[Path, Path], lab: Lab) -> None:
    of_folders = lab("compare", *folders)
    assert lab("compare", *(folder / "results.json" for folder in folders)) == of_folders
    assert "tcp.sack" in of_folders


def test_json_is_all_of_standard_output(folders: tuple[Path, Path], tmp_path: Path, lab: Lab) -> None:
    document = lab.json("compare", *folders, folders[0], "--out", tmp_path / "new")
    assert [entry["letter"] for entry in document["documents"]] == ["A", "B", "C"]
    assert "compare.html" in lab.err
    assert (tmp_path / "new" / "compare.html").exists()


def test_one_document_is_too_few(folders: tuple[Path, Path], lab: Lab) -> None:
    assert "takes 2 to 26 results, not 1" in lab.refusal("compare", folders[0])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        (b"{}", "is not a results document: scenario: must be given"),
        (b"\xff", "is not a results document"),
        (make_results(scenario="ring").to_json().encode(), "the one is of scenario butterfly"),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(
    folders: tuple[Path, Path], tmp_path: Path, content: bytes | None, sentence: str, lab: Lab
) -> None:
    file = tmp_path / "other.json"
    if content is not None:
        file.write_bytes(content)
    told = lab.refusal("compare", folders[0], file)
    assert sentence in told
    assert str(file) in told


def test_further_measures_are_compared_by_name(folders: tuple[Path, Path], lab: Lab) -> None:
    row = lab.json("compare", *folders, "--measure", "delay_p99_s")["comparisons"][0]["rows"][0]
    assert row["delay_p99_s"]["difference"]["value"] == 0
    assert re.search(r"delay\W+p99", lab("compare", *folders, "--measure", "delay_p99_s"))
    assert "Did you mean delay_p99_s" in lab.refusal("compare", *folders, "--measure", "delay_p98_s")
