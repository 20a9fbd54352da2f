"""`compare` as a command: folders and files, output, sentences."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.cli import command_line, compare
from experiments.errors import ScenarioError, UnknownName
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


def run(*argv: object) -> int:
    return compare.main(command_line.make_parser().parse_args(["compare", *map(str, argv)]))


def test_folders_and_files_alike(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = folders
    assert run(a, b) == 0
    of_folders = capsys.readouterr().out
    assert run(a / "results.json", b / "results.json") == 0
    assert capsys.readouterr().out == of_folders
    assert "tcp.sack" in of_folders


def test_json_is_all_of_standard_output(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*folders, folders[0], "--json", "--out", tmp_path / "new") == 0
    captured = capsys.readouterr()
    assert [entry["letter"] for entry in json.loads(captured.out)["documents"]] == ["A", "B", "C"]
    assert "compare.html" in captured.err
    assert (tmp_path / "new" / "compare.html").exists()


def test_one_document_is_too_few(folders: tuple[Path, Path]) -> None:
    with pytest.raises(ScenarioError, match="takes 2 to 26 results, not 1"):
        run(folders[0])


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
    folders: tuple[Path, Path], tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "other.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ScenarioError, match=sentence) as caught:
        run(folders[0], file)
    assert str(file) in str(caught.value)


def test_further_measures_are_compared_by_name(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*folders, "--json", "--measure", "delay_p99_s") == 0
    row = json.loads(capsys.readouterr().out)["comparisons"][0]["rows"][0]
    assert row["delay_p99_s"]["difference"]["value"] == 0
    assert run(*folders, "--measure", "delay_p99_s") == 0
    assert re.search(r"delay\W+p99", capsys.readouterr().out)
    with pytest.raises(UnknownName, match="Did you mean delay_p99_s"):
        run(*folders, "--measure", "delay_p98_s")
