"""The runner's events as a page is told them: in turn, several at once, and from any place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import topologies
from experiments.model import overrides, scenario
from experiments.model.atomic_files import write_output
from experiments.model.events import (
    Event,
    InRun,
    PhaseBegun,
    RatesMeasured,
    RunBroken,
    RunFinished,
    RunRepeated,
    RunsBegun,
    RunStarted,
    TimeMeasured,
    ValidityMeasured,
    from_line,
    to_line,
)
from experiments.model.job import Job
from experiments.web.event_log import EventLog
from experiments.web.watching import Watch
from tests.fakes.results import make_run
from tests.web.page_types import check_answer


def job_of(out: Path, **changes: Any) -> Job:
    loaded = scenario.load("butterfly")
    final = overrides.apply(loaded, {"duration_s": 2.0}, ("1",))
    fields: dict[str, Any] = {
        "engine": "sim",
        "scenario": final,
        "network": topologies.load("butterfly"),
        "variant": None,
        "overrides": {},
        "cases": ("1",),
        "protocols": ("ospf", "mstcp"),
        "seeds": (1, 2),
        "duration_s": 2.0,
        "out": out,
    }
    return Job(**{**fields, **changes})


def told_of(log: EventLog) -> list[tuple[str, int | None]]:
    entries = [json.loads(entry.text) for entry in log.after(0)]
    for entry in entries:
        beside = {"at_s"} if entry["event"] == "run-started" else {"at_s", "number"}
        event = {name: value for name, value in entry.items() if name not in beside}
        check_answer("RunsBegun" if entry["event"] == "runs-begun" else "RunEvent", event)
    return [(entry["event"], entry.get("number")) for entry in entries]


def watched(job: Job, events: list[Event]) -> EventLog:
    log = EventLog()
    watch = Watch(job, log)
    for second, event in enumerate(events):
        watch.take(from_line(to_line(event)), float(second))
    return log


def rates(seconds: float) -> RatesMeasured:
    return RatesMeasured(seconds=seconds, links=[0.5], streams_bps={"1": [1e6, 2e6]})


def test_a_run_that_goes_on_has_its_samples_and_the_last_of_all_else(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    label = job.plans()[0].label
    valid = ValidityMeasured(seconds=1.0, cpu_busy=0.5, lateness_max_us=None, problems=[])
    log = watched(
        job,
        [
            RunStarted(run=label, number=1, planned=4),
            PhaseBegun(text="building the network"),
            PhaseBegun(text="connecting"),
            *(event for step in range(3) for event in (TimeMeasured(seconds=step), rates(step))),
            valid,
        ],
    )
    assert told_of(log) == [
        ("run-started", 1),
        ("phase-begun", 1),
        ("rates-measured", 1),
        ("rates-measured", 1),
        ("time-measured", 1),
        ("rates-measured", 1),
        ("validity-measured", 1),
    ]


def test_what_a_run_told_in_passing_goes_with_its_end(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    first, second, *_ = (plan.label for plan in job.plans())
    log = watched(
        job,
        [
            RunStarted(run=first, number=1, planned=4),
            rates(0.25),
            RunRepeated(run=first, reason="the machine was too busy"),
            rates(0.25),
            RunFinished(run=first, summary="", valid=False),
            RunStarted(run=second, number=2, planned=4),
            rates(0.25),
            RunBroken(run=second, reason="it failed"),
        ],
    )
    assert told_of(log) == [
        ("run-started", 1),
        ("run-repeated", 1),
        ("run-finished", 1),
        ("run-started", 2),
        ("run-broken", 2),
    ]


def test_runs_that_are_made_at_once_are_told_apart(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    labels = [plan.label for plan in job.plans()]
    started = [
        InRun(number=number, told=RunStarted(run=labels[number - 1], number=number, planned=4))
        for number in (3, 1)
    ]
    log = watched(
        job,
        [
            RunsBegun(planned=4),
            *started,
            InRun(number=1, told=rates(0.25)),
            InRun(number=3, told=rates(0.25)),
            RunFinished(run=labels[2], summary=""),
        ],
    )
    assert told_of(log) == [
        ("runs-begun", None),
        ("run-started", 3),
        ("run-started", 1),
        ("rates-measured", 1),
        ("run-finished", 3),
    ]


def test_the_plan_says_what_is_there_and_what_is_to_come(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    (tmp_path / "runs").mkdir()
    valid = make_run("ospf", "1", 1, 2.0, job.network)
    write_output(job.result_path(1), valid.model_dump_json())
    watch = Watch(job, EventLog())
    write_output(job.result_path(2), valid.model_dump_json())  # while it is watched
    plan = watch.plan()
    check_answer("Session", {"documents": 1, "watch": plan})
    assert [(run["number"], run["protocol"], run["seed"], run["kept"]) for run in plan["runs"]] == [
        (1, "ospf", 1, True),
        (2, "ospf", 2, False),
        (3, "mstcp", 1, False),
        (4, "mstcp", 2, False),
    ]
    assert plan["clock"] == "simulated"
    assert len(plan["links"]) == 2 * len(job.network.links)
