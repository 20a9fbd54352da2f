"""What a worker does, wherever it is: takes a job as one line of JSON, makes its runs, reports events."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from experiments import engines
from experiments.errors import OutputError, reason_of
from experiments.execution import execute
from experiments.model.events import OutputRefused, Report, WorkFailed, WorkFinished
from experiments.model.job import Job

INTERRUPTED = 130


def work(line: str | bytes, prepare: Callable[[Job], None], report: Report) -> int:
    """Make the runs of a job and return the exit status: 0 only if all were tried."""
    try:
        job = Job.model_validate_json(line)
        prepare(job)
        execute(job, engines.get(job.engine), report)
    except OutputError as error:
        report(OutputRefused(path=error.path, reason=error.reason))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        report(WorkFailed(reason=reason_of(error)))
        return 1
    report(WorkFinished())
    return 0
