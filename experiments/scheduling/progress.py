"""How many of many runs have ended and how long the others take, on standard error."""

from __future__ import annotations

import time
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_Own = TypeVar("_Own", bound="RunsProgress")


class RunsProgress:
    """One bar on a terminal, a line for each run elsewhere; a context manager.

    `failed` counts the runs that have left no result.
    """

    def __init__(self, console: Console, planned: int) -> None:
        self._console = console
        self._planned = planned
        self._began_s = time.monotonic()
        self._ended = 0
        self.failed = 0
        self._bars = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bars.add_task("", total=planned)

    def __enter__(self: _Own) -> _Own:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def end(self, text: str, *, failed: bool = False) -> None:
        """Show that a run has ended, in a line of text."""
        self._ended += 1
        self.failed += failed
        self._bars.update(self._task, advance=1, description="" if failed else text)
        if failed:
            self._console.print(text, style="red", highlight=False, markup=False, soft_wrap=True)
        elif not self._console.is_terminal:
            line = f"[{self._ended}/{self._planned}{self._left()}] {text}"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _left(self) -> str:
        waiting = self._planned - self._ended
        if waiting <= 0:
            return ""
        minutes, seconds = divmod(round((time.monotonic() - self._began_s) / self._ended * waiting), 60)
        return f", {minutes}:{seconds:02} left"
