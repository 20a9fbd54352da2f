"""Commands that simulate in processes of their own, and are told to end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.waiting import wait_until


def stop_simulating(command: Sequence[str], how: signal.Signals) -> tuple[int, str]:
    """Start a command, send it a signal once it simulates on all processors; return its status and errors.

    Its simulations must have ended with it.
    """
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            wanted = min(8, len(os.sched_getaffinity(0)))
            wait_until(lambda: len(_children(process.pid)) >= wanted, "the simulations")
            simulations = _children(process.pid)
            process.send_signal(how)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert not any(Path(f"/proc/{pid}").exists() for pid in simulations)
    return process.returncode, errors


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]
