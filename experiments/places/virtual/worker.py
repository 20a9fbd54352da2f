"""The worker in the virtual kernel: makes the run that a file asks for, and reports into another.

python -m experiments.places.virtual.worker JOB EVENTS
"""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.model.events import Event, to_line
from experiments.model.job import Job
from experiments.places.worker import work


def main(job: Path, events: Path) -> int:
    """Run the job and return the exit status."""
    with events.open("a", encoding="utf-8") as file:

        def report(event: Event) -> None:
            file.write(to_line(event))
            file.flush()

        return work(job.read_bytes(), _nothing, report)


def _nothing(job: Job) -> None:
    """Do nothing: process 1 has prepared the machine."""
    del job


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
