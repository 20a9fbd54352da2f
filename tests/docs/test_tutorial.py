"""The tutorial's files and commands work as they stand there, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- (?:file: (?P<name>\S+)|run) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


@pytest.mark.timeout(300)
def test_files_and_commands_of_the_tutorial(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = ""
    for block in BLOCK.finditer(page):
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["text"])
            continue
        done = subprocess.run(
            ["sh", "-e", "-c", block["text"]], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    assert (tmp_path / "results" / "first" / "report.html").exists()
    assert re.search(r"ospf +\| +15\.00 \| +9\.56 ", printed)
    assert re.search(r"mstcp +\| +15\.00 \| +15\.0\d ", printed)
    assert (tmp_path / "goodput.pdf").read_bytes().startswith(b"%PDF")
