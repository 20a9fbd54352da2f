"""A sweep's progress on standard error."""

from __future__ import annotations

from rich.console import Console

from experiments.errors import RunFailed
from experiments.report import units
from experiments.scheduling.progress import RunsProgress
from experiments.sweep.store import PointResult


class Progress(RunsProgress):
    """Shows points as they end; a context manager.

    Attributes:
        failed: How many points left no result.
    """

    def __init__(self, console: Console, points: int) -> None:
        """Show this many points on a console on standard error."""
        super().__init__(console, points)
        self.failed = 0

    def __call__(self, ended: PointResult | RunFailed) -> None:
        """Take a point that has ended."""
        if isinstance(ended, RunFailed):
            self.failed += 1
            self.end(f"mstcp-lab: {ended}", failed=True)
            return
        received, admitted = units.mbps(ended.received_bps), units.mbps(ended.admitted_bps)
        self.end(f"{ended.point.label}: {received} of {admitted} Mbit/s")
