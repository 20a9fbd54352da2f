"""`mstcp-lab` in the tests' own process, and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import cli

LAB_COMMAND = [sys.executable, "-m", "experiments.cli"]


class Lab:
    """Runs commands, and checks how they end.

    Attributes:
        out: What the last one printed.
        err: What it said besides.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str | Path) -> str:
        """Return what a command prints that succeeds."""
        self._run(arguments, 0)
        return self.out

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        """Return the document that a command prints."""
        document: dict[str, Any] = json.loads(self(*arguments, "--json"))
        return document

    def refusal(self, *arguments: str | Path, status: int = 2) -> str:
        """Return what a command says that does not succeed; one that is refused (2) prints nothing."""
        self._run(arguments, status)
        assert "Traceback" not in self.err
        assert status != 2 or not self.out
        return self.err

    def _run(self, arguments: tuple[str | Path, ...], expected: int) -> None:
        try:
            status = cli.main([str(word) for word in arguments])
        except SystemExit as ended:  # of argparse
            assert isinstance(ended.code, int)
            status = ended.code
        self.out, self.err = self._capsys.readouterr()
        assert status == expected, self.err


def lab_process(folder: str | Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in a folder and without extensions of who runs the tests."""
    environment = {key: value for key, value in os.environ.items() if key != "MSTCP_LAB_EXTENSIONS"}
    call = [*LAB_COMMAND, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=folder, env=environment)
