"""The processes that a command simulates in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.fakes.waiting import wait_until


def wait_for_simulations(process: subprocess.Popen[str]) -> list[int]:
    """Wait until a command simulates on all processors, and return the ids of its processes."""
    wanted = min(8, len(os.sched_getaffinity(0)))
    wait_until(lambda: len(_children(process.pid)) >= wanted, "the simulations", 60)
    return _children(process.pid)


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]
