"""Files and commands of the tutorials work as they stand there, in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

BLOCK = re.compile(r"<!-- (?:file: (?P<name>\S+)|run) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


def follow(page: str, folder: Path) -> str:
    """Write the files of a page and run its commands in a folder; return what they printed."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = ""
    for block in BLOCK.finditer((ROOT / "docs" / page).read_text()):
        if block["name"]:
            (folder / block["name"]).write_text(block["text"])
            continue
        done = subprocess.run(
            ["sh", "-e", "-c", block["text"]], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


@pytest.mark.timeout(600)
def test_the_researchers_tutorial(tmp_path: Path) -> None:
    printed = follow("tutorial.md", tmp_path)
    assert (tmp_path / "results" / "first" / "report.html").exists()
    assert re.search(r"ospf +\| +15\.00 \| +9\.56 ", printed)
    assert re.search(r"mstcp +\| +15\.00 \| +15\.0\d ", printed)
    assert (tmp_path / "goodput.pdf").read_bytes().startswith(b"%PDF")


def test_the_applications_tutorial(tmp_path: Path) -> None:
    printed = follow("tutorial-application.md", tmp_path)
    assert "intact\n" in printed
    first, second = (int(carried) for carried in re.findall(r"port \d+: (\d+) bytes", printed))
    assert first > second
