"""Makes the pending runs of a job with an engine, in this process: in turn, or several at once.

Each finished run is written at once to OUT/runs/, so that stopping in the middle keeps what was done.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from experiments.engines.base import Engine
from experiments.engines.thread_pool import run_together
from experiments.errors import DISK_IS_FULL, ExperimentError, OutputError, RunFailed, reason_of
from experiments.model.atomic_files import write_output
from experiments.model.events import (
    InRun,
    Report,
    RunBroken,
    RunFinished,
    RunRepeated,
    RunsBegun,
    RunStarted,
    ignore,
)
from experiments.model.job import Job
from experiments.model.plan import RunPlan
from experiments.model.results import RunResult

TRACEBACK = "traceback.txt"
FLOWS_NAMED = 8
"""A run with more is summed up in a line."""


def execute(job: Job, engine: Engine, report: Report) -> None:
    """Make the pending runs of a job; one that fails is reported, and the others are made all the same."""
    pending = job.pending()
    workers = min(engine.most_at_once, job.parallel or engine.most_at_once)
    if workers > 1 and len(pending) > 1:
        _execute_together(job, pending, engine, workers, report)
    else:
        _execute_in_turn(job, pending, engine, report)


def _execute_in_turn(job: Job, pending: list[tuple[int, RunPlan]], engine: Engine, report: Report) -> None:
    planned = len(job.plans())
    for number, plan in pending:
        report(RunStarted(run=plan.label, number=number, planned=planned))
        load = os.getloadavg()
        try:
            result = _attempt(job, number, plan, engine, report)
        except RunFailed as error:
            report(RunBroken(run=plan.label, reason=str(error)))
            continue
        _keep(job, number, result, engine, load)
        report(RunFinished(run=plan.label, summary=summary(result), valid=result.valid))


def _attempt(job: Job, number: int, plan: RunPlan, engine: Engine, report: Report) -> RunResult:
    """Run a plan until it is valid or the job's attempts are used up; every attempt keeps its logs."""
    before = job.finished(number)
    earlier = [*before.earlier_attempts, before.why_invalid] if before else []
    most = len(earlier) + job.retries
    while True:
        slug = f"{plan.slug}-attempt{len(earlier) + 1}" if earlier else plan.slug
        logs = job.out / "logs" / slug
        with _failures_told(plan, logs):
            logs.mkdir(parents=True, exist_ok=True)
            result = engine.run_case(plan, logs, report)
        if result.valid or len(earlier) == most:
            return result.model_copy(update={"earlier_attempts": earlier})
        earlier.append(result.why_invalid)
        report(RunRepeated(run=plan.label, reason="; ".join(result.why_invalid)))


@contextmanager
def _failures_told(plan: RunPlan, logs: Path) -> Iterator[None]:
    """Turn what a run raises into a reported failure; tracebacks of unexpected errors are kept.

    Raises:
        OutputError: the disk takes nothing more, as it would not from the other runs.
        RunFailed: anything else.
    """
    try:
        yield
    except (OutputError, RunFailed):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
            raise OutputError(error.filename or str(logs), error.strerror or reason_of(error)) from error
        if isinstance(error, ExperimentError):
            raise RunFailed(plan.title, reason_of(error)) from error
        with suppress(OSError):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / TRACEBACK).write_text("".join(traceback.format_exception(error)))
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise RunFailed(
            plan.title, f"{type(error).__name__} in {where}: {reason_of(error)}", str(logs)
        ) from error


def _execute_together(
    job: Job, pending: list[tuple[int, RunPlan]], engine: Engine, workers: int, report: Report
) -> None:
    """Run plans in several threads; results keep the plans' order."""
    planned = len(job.plans())
    report(RunsBegun(planned=len(pending)))
    load = os.getloadavg()

    def run_one(numbered: tuple[int, RunPlan]) -> RunResult:
        number, plan = numbered
        report(InRun(number=number, told=RunStarted(run=plan.label, number=number, planned=planned)))
        logs = job.out / "logs" / plan.slug
        with _failures_told(plan, logs):
            result = engine.run_case(plan, logs, ignore)
        _keep(job, number, result, engine, load)
        return result

    with run_together(pending, run_one, workers=workers, stop=engine.stop) as ending:
        for _, (_, plan), future in ending:
            error = future.exception()
            if isinstance(error, RunFailed):
                report(RunBroken(run=plan.label, reason=str(error)))
            else:
                result = future.result()
                report(RunFinished(run=plan.label, summary=summary(result), valid=result.valid))


def _keep(job: Job, number: int, result: RunResult, engine: Engine, load: Sequence[float]) -> None:
    """Write a run's result, and where it was made."""
    environment = engine.environment()
    of_run = (result.protocol, result.case, result.seed)
    environment.host_load = list(load)
    environment.simulations = [
        cost for cost in environment.simulations if (cost.protocol, cost.case, cost.seed) == of_run
    ]
    # The result comes last: a run that has one is complete.
    write_output(job.environment_path(number), environment.model_dump_json(indent=1))
    write_output(job.result_path(number), result.model_dump_json(indent=1))


def summary(result: RunResult) -> str:
    """Return a run's goodputs as one line."""
    if len(result.flows) > FLOWS_NAMED:
        total_bps = sum(flow.goodput_bps for flow in result.flows)
        flows = f"{len(result.flows)} flows, together {total_bps / 1e6:.2f} Mbit/s"
    else:
        flows = ", ".join(f"flow {flow.flow} {flow.goodput_bps / 1e6:.2f} Mbit/s" for flow in result.flows)
    return flows if result.valid else f"{flows} (not valid: {'; '.join(result.why_invalid)})"
