"""Ends programs that were started."""

from __future__ import annotations

import subprocess
from typing import Protocol

TIMEOUT_S = 5.0


class Running(Protocol):
    """A program as `subprocess.Popen` has it."""

    def poll(self) -> int | None:
        """Return its exit status; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end (subprocess.TimeoutExpired)."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


def end_process(process: Running, patience_s: float = TIMEOUT_S) -> None:
    """Terminate a program, and kill it if it takes longer."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
