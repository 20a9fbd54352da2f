"""The most memory that a process has held."""

from __future__ import annotations

from pathlib import Path


def peak_memory_mib(process: int | str = "self") -> float | None:
    """Return the most memory that a process has held; None: it has ended, or this is not Linux.

    `getrusage` would count what the parent held when it started the process.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)
