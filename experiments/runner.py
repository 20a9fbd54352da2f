"""Runs plans with an engine and makes one results document of them.

Each finished run is written at once to OUT/runs/, so that stopping in the middle keeps what was done.
The job itself is in OUT/job.json, so that what is missing or was not valid can be made later.
`execute` is the loop itself, wherever it runs; `run` starts it, in a sandbox where the engine wants one.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments import engines, sandbox
from experiments.engines.base import Engine, Event, Report, RunPlan
from experiments.engines.together import run_together
from experiments.errors import CheckFailed, Interrupted, OutputError, RunFailed, ScenarioError
from experiments.results import Environment, Results, RunResult
from experiments.scenario import Scenario, first_problem
from topologies.model import Network

MINIMUM_FREE_BYTES = 64 << 20
"""A run of the butterfly leaves about 5 MB of logs; less than this on the disk and the runs are not begun."""


JOB_FILE = "job.json"
SEED_LIMIT = 1000
RETRY_LIMIT = 10
FLOWS_NAMED = 8
"""A run with more is summed up in a line."""


class Job(BaseModel):
    """All runs of one call, in order; what the worker in the sandbox is given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    scenario: Scenario
    network: Network
    variant: str | None
    overrides: dict[str, Any]
    cases: tuple[str, ...]
    protocols: tuple[str, ...]
    seeds: tuple[int, ...]
    duration_s: float
    out: Path
    retries: int = Field(default=0, ge=0, le=RETRY_LIMIT)
    """How often a run that is not valid is made anew."""

    def plans(self) -> list[RunPlan]:
        """Return the runs: cases, then protocols, then seeds."""
        return [
            RunPlan(
                scenario=self.scenario,
                network=self.network,
                case_name=case,
                protocol=protocol,
                seed=seed,
                duration_s=self.duration_s,
            )
            for case, protocol, seed in itertools.product(self.cases, self.protocols, self.seeds)
        ]

    def pending(self) -> list[tuple[int, RunPlan]]:
        """Return the runs that OUT has no valid result of, with their numbers from 1."""
        numbered = enumerate(self.plans(), start=1)
        return [(number, plan) for number, plan in numbered if not self._is_valid(number)]

    def finished(self, number: int) -> RunResult | None:
        """Return what OUT has of a run, valid or not."""
        path = self.result_path(number)
        return RunResult.model_validate_json(path.read_text()) if path.exists() else None

    def result_path(self, number: int) -> Path:
        """Return where the result of a run lies."""
        return self.out / "runs" / f"{number:03}.json"

    def _is_valid(self, number: int) -> bool:
        result = self.finished(number)
        return result is not None and result.valid


@dataclass
class Outcome:
    """The document and what went wrong on the way to it."""

    results: Results
    failures: list[str] = field(default_factory=list)


def prepare_output(out: Path, *, resume: bool = False) -> None:
    """Make the output folder and check that it takes files.

    Args:
        out: the folder.
        resume: whether it may hold results.

    Raises:
        OutputError: it cannot be written, holds results already, or the disk is all but full.
    """
    try:
        (out / "runs").mkdir(parents=True, exist_ok=True)
        probe = out / "runs" / ".probe"
        probe.write_bytes(bytes(4096))
        probe.unlink()
        status = os.statvfs(out)
    except OSError as error:
        raise OutputError(str(out), error.strerror or str(error)) from None
    if not resume and (any((out / "runs").glob("*.json")) or (out / "results.json").exists()):
        raise OutputError(str(out), "it holds the results of other runs already")
    free = status.f_bavail * status.f_frsize
    if free < MINIMUM_FREE_BYTES:
        raise OutputError(
            str(out), f"only {free >> 20} MB are free there, {MINIMUM_FREE_BYTES >> 20} are needed"
        )


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all; OutputError says why not."""
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from None


def execute(job: Job, engine: Engine, report: Report) -> None:
    """Make the pending runs of a job; one that fails is reported, and the others are made all the same."""
    pending = job.pending()
    if engine.workers > 1 and len(pending) > 1:
        _execute_together(job, pending, engine, report)
    else:
        _execute_in_turn(job, pending, engine, report)


def _execute_in_turn(job: Job, pending: list[tuple[int, RunPlan]], engine: Engine, report: Report) -> None:
    planned = len(job.plans())
    for number, plan in pending:
        report({"event": "run-started", "run": plan.label, "number": number, "planned": planned})
        try:
            result = _attempt(job, number, plan, engine, report)
        except RunFailed as error:
            report({"event": "run-failed", "run": plan.label, "reason": str(error)})
            continue
        _keep(job, number, result)
        write_atomically(job.out / "environment.json", engine.environment().model_dump_json(indent=1))
        report({"event": "run-finished", "run": plan.label, "summary": _summary(result)})


def _attempt(job: Job, number: int, plan: RunPlan, engine: Engine, report: Report) -> RunResult:
    """Run a plan until it is valid or the job's attempts are used up; every attempt keeps its logs."""
    before = job.finished(number)
    earlier = [*before.earlier_attempts, before.why_invalid] if before else []
    most = len(earlier) + job.retries
    while True:
        slug = f"{plan.slug}-attempt{len(earlier) + 1}" if earlier else plan.slug
        logs = job.out / "logs" / slug
        try:
            logs.mkdir(parents=True, exist_ok=True)
            result = engine.run_case(plan, logs, report)
        except OSError as error:
            raise OutputError(str(logs), str(error)) from error
        if result.valid or len(earlier) == most:
            return result.model_copy(update={"earlier_attempts": earlier})
        earlier.append(result.why_invalid)
        report({"event": "run-repeated", "run": plan.label, "reason": "; ".join(result.why_invalid)})


def _execute_together(job: Job, pending: list[tuple[int, RunPlan]], engine: Engine, report: Report) -> None:
    """Run plans in as many threads as the engine takes; results keep the plans' order."""
    report({"event": "runs-together", "planned": len(pending)})

    def run_one(_: int, numbered: tuple[int, RunPlan]) -> RunResult:
        number, plan = numbered
        result = engine.run_case(plan, job.out / "logs" / plan.slug, _nothing)
        _keep(job, number, result)
        return result

    together = run_together(pending, run_one, workers=engine.workers, stop=engine.stop)
    with closing(together) as ending:
        for _, (_, plan), future in ending:
            error = future.exception()
            if isinstance(error, RunFailed):
                report({"event": "run-failed", "run": plan.label, "reason": str(error)})
            else:
                report({"event": "run-finished", "run": plan.label, "summary": _summary(future.result())})


def _nothing(event: Event) -> None:
    del event


def _keep(job: Job, number: int, result: RunResult) -> None:
    write_atomically(job.result_path(number), result.model_dump_json(indent=1))


def _summary(result: RunResult) -> str:
    if len(result.flows) > FLOWS_NAMED:
        total_bps = sum(flow.goodput_bps for flow in result.flows)
        flows = f"{len(result.flows)} flows, together {total_bps / 1e6:.2f} Mbit/s"
    else:
        flows = ", ".join(f"flow {flow.flow} {flow.goodput_bps / 1e6:.2f} Mbit/s" for flow in result.flows)
    return flows if result.valid else f"{flows} (not valid: {'; '.join(result.why_invalid)})"


def begun(out: Path) -> Job:
    """Return the job whose results are in a folder; ScenarioError if there is none."""
    path = out / JOB_FILE
    try:
        job = Job.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(path), "", f"cannot be read ({error.strerror}): no run began here") from None
    except ValidationError as error:
        place, reason = first_problem(error)
        raise ScenarioError(str(path), place, f"is not a job of this version: {reason}") from None
    return job.model_copy(update={"out": out.absolute()})


def run(job: Job, report: Report, *, resume: bool = False) -> Outcome:
    """Run a job and collect its document, which is written to OUT/results.json.

    Args:
        job: what to run.
        report: is given the events.
        resume: whether OUT may hold results of this job, whose valid ones stay.

    Raises:
        MissingRequirement: the machine lacks something.
        Interrupted: the user stopped; the document of the finished runs is written.
        OutputError: the results could not be written.
    """
    engine = engines.get(job.engine)
    engine.check(job.plans())
    prepare_output(job.out, resume=resume)
    write_atomically(job.out / JOB_FILE, job.model_dump_json(indent=1))
    failures: list[str] = []

    def note(event: Event) -> None:
        if event["event"] == "run-failed":
            failures.append(event["reason"])
        report(event)

    interrupted = False
    try:
        if engine.sandboxed:
            sandbox.run_worker(job.model_dump_json(), job.out, note)
        else:
            execute(job, engine, note)
    except KeyboardInterrupt:
        interrupted = True
    except RunFailed as error:
        failures.append(str(error))
    results = collect(job, engine)
    write_atomically(job.out / "results.json", results.to_json())
    if interrupted:
        raise Interrupted(len(results.runs), len(job.plans()), f"mstcp-lab resume {job.out}")
    failures += check_transfers(results.runs, drained=results.engine != "sim")
    missing = len(job.plans()) - len(results.runs)
    if missing and not failures:
        failures.append(f"{missing} of {len(job.plans())} runs left no result.")
    return Outcome(results, failures)


def collect(job: Job, engine: Engine) -> Results:
    """Merge the finished runs in OUT/runs into one document."""
    runs = [
        RunResult.model_validate_json(path.read_text()) for path in sorted((job.out / "runs").glob("*.json"))
    ]
    written = job.out / "environment.json"
    if written.exists():
        environment = Environment.model_validate_json(written.read_text())
    else:
        environment = engine.environment()
    invalid = [
        f"scenario {r.scenario} with {r.protocol}, seed {r.seed}: {why}"
        for r in runs
        for why in r.why_invalid
    ]
    environment.why += invalid
    environment.valid = not environment.why
    return Results(
        scenario=job.scenario.name,
        engine=_engine_name(job.engine),
        variant=job.variant,
        overrides=job.overrides,
        network=job.network.model_dump(mode="json"),
        environment=environment,
        runs=runs,
    )


def _engine_name(name: str) -> Literal["live", "virtual", "sim"]:
    names: tuple[Literal["live", "virtual", "sim"], ...] = ("live", "virtual", "sim")
    return next(known for known in names if known == name)


def check_transfers(runs: Sequence[RunResult], *, drained: bool = True) -> list[str]:
    """Return a sentence for each transfer that did not arrive as it was sent.

    Args:
        runs: finished ones.
        drained: whether all that was sent has had the time to arrive; a simulation ends with the measurement.
    """
    failures = []
    for result in runs:
        for flow in result.flows:
            name = (
                f"Flow {flow.flow} of scenario {result.scenario} with {result.protocol}, seed {result.seed},"
            )
            if flow.bytes_wrong:
                failures.append(
                    str(CheckFailed(name, f"{flow.bytes_wrong} bytes arrived other than they were sent."))
                )
            elif flow.bytes_read > flow.bytes_written or (drained and flow.bytes_read < flow.bytes_written):
                reason = f"{flow.bytes_written} bytes were sent and {flow.bytes_read} arrived."
                failures.append(str(CheckFailed(name, reason)))
    return failures


def seeds_up_to(count: int) -> tuple[int, ...]:
    """Return the seeds that `--seeds COUNT` stands for; ScenarioError if there are none or too many."""
    if not 1 <= count <= SEED_LIMIT:
        raise ScenarioError("--seeds", "", f"{count} is not between 1 and {SEED_LIMIT}")
    return tuple(range(1, count + 1))


def default_output(scenario: str, now: float) -> Path:
    """Return results/<scenario>-<UTC time> for a time in seconds since the epoch."""
    return Path("results") / f"{scenario}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
