"""The runner's own process."""

from __future__ import annotations

from experiments.engines.base import Engine
from experiments.execution import execute
from experiments.model.events import Report
from experiments.model.job import Job


class InProcess:
    """Makes runs here; the engine has processes of its own where it wants them."""

    def check(self) -> None:
        """Accept any machine."""

    def run(self, job: Job, engine: Engine, report: Report) -> None:
        """Make the pending runs."""
        execute(job, engine, report)
