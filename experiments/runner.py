"""Runs a job where its engine belongs, and makes one results document of it.

The job itself is in OUT/job.json, so that what is missing or was not valid can be run later.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments import engines, places
from experiments.analysis.fairness import bottlenecks
from experiments.analysis.metrics import keep_further
from experiments.engines.base import Engine
from experiments.errors import ExperimentError, Interrupted, OutputError, RunFailed
from experiments.model.atomic_files import output_errors, write_output
from experiments.model.events import Event, Report, RunBroken
from experiments.model.job import JOB_FILE, Job
from experiments.model.own_files import used_files
from experiments.model.results import AskedRuns, Environment, Results, RunResult

MINIMUM_FREE_BYTES = 64 << 20
"""A run of the butterfly leaves about 5 MB of logs; less than this on the disk and the runs are not begun."""
SEED_LIMIT = 1000


@dataclass
class Outcome:
    """The document and what went wrong on the way to it."""

    results: Results
    failures: list[str] = field(default_factory=list)


def prepare_output(out: Path, *, resume: bool = False) -> None:
    """Make the output folder and check that it takes files; a refusal leaves no folder behind.

    Raises:
        OutputError: it cannot be written, holds results already, or the disk is all but full.
    """
    folders = (out / "runs", out / "environments", out, *out.parents)
    made = [folder for folder in folders if not folder.exists()]
    try:
        _check_output(out, resume)
    except OutputError:
        for folder in made:  # each after what is in it
            with suppress(OSError):
                folder.rmdir()
        raise


def _check_output(out: Path, resume: bool) -> None:
    probe = out / "runs" / ".probe"
    with output_errors(out):
        for folder in ("runs", "environments"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(bytes(4096))
        finally:
            probe.unlink(missing_ok=True)
        status = os.statvfs(out)
    if not resume and (any((out / "runs").glob("*.json")) or (out / "results.json").exists()):
        raise OutputError(str(out), "it holds the results of other runs already")
    free = status.f_bavail * status.f_frsize
    if free < MINIMUM_FREE_BYTES:
        raise OutputError(
            str(out), f"only {free >> 20} MB are free there, {MINIMUM_FREE_BYTES >> 20} are needed"
        )


def checked_engine(job: Job, scheduler: str | None = None) -> Engine:
    """Return the engine of a job, after the checks that need no run.

    Raises:
        MissingRequirement: the machine lacks something.
        ClusterUnreachable: there is no cluster at the scheduler's address.
    """
    engine = engines.get(job.engine, scheduler)
    try:
        engine.check(job.plans())
        places.of(job.engine).check()
    except ExperimentError:
        with suppress(OSError):  # it may not be there, or not be empty
            job.out.rmdir()
        raise
    return engine


def run(job: Job, report: Report, *, resume: bool = False, engine: Engine | None = None) -> Outcome:
    """Run a job and collect its document, which is written to OUT/results.json.

    OUT may hold results of this job only to resume it: valid ones stay. The engine is what `checked_engine`
    returned for the job.

    Raises:
        MissingRequirement: the machine lacks something.
        Interrupted: the user stopped; the document of the finished runs is written.
        OutputError: the results could not be written.
    """
    engine = engine or checked_engine(job)
    prepare_output(job.out, resume=resume)
    write_output(job.out / JOB_FILE, job.model_dump_json(indent=1))
    failures: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, RunBroken):
            failures.append(event.reason)
        report(event)

    interrupted = False
    try:
        places.of(job.engine).run(job, engine, note)
    except KeyboardInterrupt:
        interrupted = True
    except RunFailed as error:
        failures.append(str(error))
    results = collect(job, engine)
    write_output(job.out / "results.json", results.to_json())
    if interrupted:
        raise Interrupted(len(results.runs), len(job.plans()), f"mstcp-lab resume {job.out}")
    failures += check_transfers(results.runs, drained=engine.abilities.drains)
    missing = len(job.plans()) - len(results.runs)
    if missing and not failures:
        failures.append(f"{missing} of {len(job.plans())} runs left no result.")
    return Outcome(results, failures)


def collect(job: Job, engine: Engine) -> Results:
    """Merge the finished runs in OUT/runs, and where each was made, into one document."""
    runs: list[RunResult] = []
    environments: list[Environment] = []
    for path in sorted((job.out / "runs").glob("*.json")):
        written = job.out / "environments" / path.name
        made_in = Environment.model_validate_json(written.read_text())
        run = RunResult.model_validate_json(path.read_text())
        known = {"environment": _number(made_in, environments), "bottlenecks": bottlenecks(run)}
        runs.append(keep_further(run).model_copy(update=known))
    if not environments:
        environments.append(engine.environment())
    first, *others = environments
    settings = _settings(job)
    first.files = used_files(job.extensions, settings)
    first.why += [
        f"case {run.case} with {run.protocol}, seed {run.seed}: {why}"
        for run in runs
        for why in run.why_invalid
    ]
    first.valid = not first.why
    return Results(
        scenario=job.scenario.name,
        engine=job.engine,
        variant=job.variant,
        overrides=job.overrides,
        settings=settings,
        asked=AskedRuns(protocols=list(job.protocols), seeds=list(job.seeds)),
        network=job.network.model_dump(mode="json"),
        environment=first,
        other_environments=others,
        runs=runs,
    )


def _number(environment: Environment, known: list[Environment]) -> int:
    """Return the number of an environment among those that are known, which it joins if it is not there."""
    for number, other in enumerate(known):
        if _programs_of(other) == _programs_of(environment):
            other.simulations += environment.simulations
            return number
    known.append(environment)
    return len(known) - 1


def _programs_of(environment: Environment) -> dict[str, Any]:
    return environment.model_dump(exclude={"host_load", "simulations"})


def _settings(job: Job) -> dict[str, Any]:
    settings = job.scenario.model_dump(mode="json")
    settings["cases"] = {name: settings["cases"][name] for name in job.cases}
    return settings


def check_transfers(runs: Sequence[RunResult], *, drained: bool = True) -> list[str]:
    """Return a sentence for each transfer that did not arrive as it was sent.

    Where it was not drained, what was sent may not have had the time: a simulation ends with the measurement.
    """
    failures = []
    for result in runs:
        for flow in result.flows:
            name = f"Flow {flow.flow} of case {result.case} with {result.protocol}, seed {result.seed},"
            if flow.bytes_wrong:
                failures.append(f"{name} failed: {flow.bytes_wrong} bytes arrived other than they were sent.")
            elif flow.bytes_read > flow.bytes_written or (drained and flow.bytes_read < flow.bytes_written):
                reason = f"{flow.bytes_written} bytes were sent and {flow.bytes_read} arrived."
                failures.append(f"{name} failed: {reason}")
    return failures


def default_output(scenario: str, now: float, root: Path = Path("results")) -> Path:
    """Make the folder results/<scenario>-<UTC time>, which no other run has, and return it.

    Runs begun in the same second get -2, -3 and so on. A folder that cannot be made is returned all the same:
    `prepare_output` says why it cannot.
    """
    name = f"{scenario}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
    for number in itertools.count(1):
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError:
            return path
        return path
    raise AssertionError("unreachable")
