"""Turns the runner's events into entries of the log that pages follow. Pure: events and `now_s` in."""

from __future__ import annotations

from typing import Any

from experiments import engines
from experiments.model.events import (
    Event,
    FlowsConnected,
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
)
from experiments.model.job import Job
from experiments.web.event_log import EventLog

_ENDS = (RunFinished, RunBroken, RunRepeated)


class Watch:
    """The runs of a job while they are made."""

    def __init__(self, job: Job, log: EventLog) -> None:
        self.log = log
        self._job = job
        self._numbers = {plan.label: number for number, plan in enumerate(job.plans(), start=1)}
        self._pending = {number for number, _ in job.pending()}
        self._current: int | None = None

    def plan(self) -> dict[str, Any]:
        """Return what is run in all; results that were there before are marked as kept."""
        job, engine = self._job, engines.get(self._job.engine)
        return {
            "engine": job.engine,
            "clock": engine.abilities.clock.value,
            "folder": str(job.out),
            "duration_s": job.duration_s,
            "warm_up_s": job.scenario.warm_up_s,
            "sample_s": job.scenario.live.sample_s,
            "links": [f"{arc.tail}->{arc.head}" for arc in job.network.arcs()],
            "runs": [
                {
                    "number": number,
                    "case": plan.case_name,
                    "protocol": plan.protocol,
                    "seed": plan.seed,
                    "kept": number not in self._pending,
                }
                for number, plan in enumerate(job.plans(), start=1)
            ],
        }

    def take(self, event: Event, now_s: float) -> None:
        """Record an event; `now_s` is the time since the epoch."""
        match event:
            case InRun(number=number, told=of_run):
                self._record(number, of_run, now_s)
            case RunsBegun():
                self.log.add(_fields(None, event, now_s))
            case RunStarted(number=number):
                self._current = number
                self._record(number, event, now_s)
            case RunFinished(run=run) | RunBroken(run=run) | RunRepeated(run=run):
                self._record(self._numbers[run], event, now_s)
            case PhaseBegun() | TimeMeasured() | FlowsConnected() | RatesMeasured() | ValidityMeasured():
                if self._current is not None:
                    self._record(self._current, event, now_s)
            case _:
                pass

    def end(self, state: str, text: str, now_s: float) -> None:
        """Record that all is over: `finished`, `failed` or `stopped`, and a sentence."""
        self.log.add({"event": "job-ended", "state": state, "text": text, "at_s": now_s})

    def _record(self, number: int, event: Event, now_s: float) -> None:
        fields = _fields(number, event, now_s)
        match event:
            case RatesMeasured(links=links, streams_bps=streams_bps):
                values = len(links) + sum(map(len, streams_bps.values()))
                self.log.add_sample(number, fields, values)
            case PhaseBegun() | TimeMeasured() | ValidityMeasured() | FlowsConnected():
                self.log.add_latest(number, event.event, fields)
            case _:
                if isinstance(event, _ENDS):
                    self.log.drop_transient(number)
                self.log.add(fields)


def _fields(number: int | None, event: Event, now_s: float) -> dict[str, Any]:
    return {"number": number, "at_s": now_s, **event.model_dump(mode="json", exclude={"number"})}
