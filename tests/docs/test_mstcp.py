"""The programs in docs/mstcp.md run as they stand there; the test vectors are those of docs/protocol.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mstcp.proto.generate import ROOT
from tests.vectors import generate

PROGRAMS = re.findall(
    r"<!-- run -->\n```python\n(.*?)```", (ROOT / "docs" / "mstcp.md").read_text(), re.DOTALL
)
SAYS = ["HELLO", "HELLO", "the peer refuses the stream: the proof of the shared secret is wrong"]


@pytest.mark.parametrize(("program", "says"), list(zip(PROGRAMS, SAYS, strict=True)))
def test_the_documented_programs_run(program: str, says: str) -> None:
    argv = [sys.executable, "-W", "error", "-c", program]
    result = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert says in result.stdout


def test_the_programs_pass_a_strict_type_checker(tmp_path: Path) -> None:
    files = [tmp_path / f"program_{number}.py" for number in range(len(PROGRAMS))]
    for file, program in zip(files, PROGRAMS, strict=True):
        file.write_text(program)
    argv = [sys.executable, "-m", "mypy", "--strict", *map(str, files)]
    result = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout


def test_the_vectors_are_what_their_script_makes() -> None:
    assert json.loads(json.dumps(generate.vectors())) == json.loads(generate.PATH.read_text())
