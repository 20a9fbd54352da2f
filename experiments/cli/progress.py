"""Progress on standard error: a bar for each run on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from experiments.model.events import (
    Event,
    PhaseBegun,
    RunBroken,
    RunFinished,
    RunRepeated,
    RunsBegun,
    RunStarted,
    TimeMeasured,
)
from experiments.scheduling.progress import RunsProgress


class Display:
    """Shows the runner's events; a context manager."""

    def __init__(self, console: Console, seconds: float) -> None:
        self._console = console
        self._seconds = seconds
        self._task: TaskID | None = None
        self._together: RunsProgress | None = None
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[phase]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        if self._together is not None:
            self._together.__exit__()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case RunsBegun(planned=planned):
                self._progress.stop()
                self._together = RunsProgress(self._console, planned)
                self._together.__enter__()
            case RunStarted():
                title = f"[{event.number}/{event.planned}] {event.run}"
                self._task = self._progress.add_task(escape(title), total=self._seconds, phase="setting up")
                self._line(title)
            case PhaseBegun(text=text):
                self._update(phase=escape(text))
            case TimeMeasured(seconds=seconds):
                self._update(completed=seconds, phase=f"{seconds:.0f} of {self._seconds:g} s")
            case RunRepeated(reason=reason):
                self._update(completed=0.0)
                self._line(f"    not valid, so it is rerun: {reason}")
            case RunFinished(run=run, summary=summary):
                self._end_run(run, summary)
            case RunBroken(reason=reason):
                self._break_run(reason)
            case _:
                pass

    def _end_run(self, run: str, summary: str) -> None:
        if self._together is not None:
            self._together.end(f"{run}: {summary}")
            return
        self._update(completed=self._seconds, phase=escape(summary))
        self._end_task()
        self._line(f"    {summary}")

    def _break_run(self, reason: str) -> None:
        if self._together is not None:
            self._together.end(reason, failed=True)
            return
        self._update(phase="[red]failed[/red]")
        self._end_task()
        self._console.print(f"[red]{escape(reason)}[/red]", highlight=False)

    def _update(self, **fields: Any) -> None:
        if self._task is not None:
            self._progress.update(self._task, **fields)

    def _end_task(self) -> None:
        if self._task is not None:
            self._progress.stop_task(self._task)
            self._task = None

    def _line(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
