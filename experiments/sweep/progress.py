"""A sweep's progress on standard error: one bar on a terminal, a line for each point elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from experiments.errors import RunFailed
from experiments.report import units
from experiments.sweep.store import PointResult


class Progress:
    """Shows points as they end; a context manager.

    Attributes:
        failed: How many points left no result.
    """

    def __init__(self, console: Console, points: int) -> None:
        """Show so many points on a console on standard error."""
        self.failed = 0
        self._console = console
        self._bars = Bars(
            MofNCompleteColumn(),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bars.add_task("", total=points)

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, ended: PointResult | RunFailed) -> None:
        """Take a point that has ended."""
        if isinstance(ended, RunFailed):
            self.failed += 1
            self._bars.advance(self._task)
            self._console.print(f"mstcp-lab: {ended}", style="red", highlight=False, markup=False)
            return
        received, admitted = units.mbps(ended.received_bps), units.mbps(ended.admitted_bps)
        text = f"{ended.point.label}: {received} of {admitted} Mbit/s"
        self._bars.update(self._task, advance=1, description=text)
        if not self._console.is_terminal:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
