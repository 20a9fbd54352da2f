"""What every place offers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from experiments.engines.base import Engine
from experiments.errors import OutputError
from experiments.model.events import Event, OutputRefused, Report, WorkFailed, WorkFinished
from experiments.model.job import Job


class Place(Protocol):
    """Where a job's pending runs are made."""

    def check(self) -> None:
        """Refuse where this machine cannot be such a place (MissingRequirement: with the remedy)."""

    def run(self, job: Job, engine: Engine, report: Report) -> None:
        """Make a job's pending runs; each leaves its result and environment in the job's folder.

        Raises:
            RunFailed: the worker ended before its time.
            OutputError: the results could not be written.
            KeyboardInterrupt: the user stopped; nothing runs any more by then.
        """


class WorkerEvents:
    """Takes a worker's events and hands on those that the runner is to know."""

    def __init__(self, report: Report) -> None:
        self.finished = False
        """Whether the worker said that it was done."""
        self._failure: str | None = None
        self._report = report

    def take(self, event: Event) -> None:
        """Take one event (OutputError: the worker could not write its results)."""
        match event:
            case OutputRefused(path=path, reason=reason):
                raise OutputError(path, reason)
            case WorkFailed(reason=reason):
                self._failure = reason
            case WorkFinished():
                self.finished = True
            case _:
                self._report(event)

    def why_not_finished(self, status: int, last: str) -> str:
        """Return why a worker ended before its time: as it said itself, or by its status and last line."""
        return self._failure or f"its worker ended with status {status}: {last}"


def last_line(log: Path) -> str:
    """Return the last line that says something in a worker's log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it left no log"
