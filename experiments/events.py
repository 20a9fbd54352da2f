"""What a run tells while it goes on: typed events, which cross from a worker to the runner as JSON lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunsBegun(_Event):
    """Runs are made several at once from here on."""

    event: Literal["runs-begun"] = "runs-begun"
    planned: int


class RunStarted(_Event):
    """One run has begun; `number` counts from 1."""

    event: Literal["run-started"] = "run-started"
    run: str
    number: int
    planned: int


class PhaseBegun(_Event):
    """A run has come to its next part, as `building the network`."""

    event: Literal["phase-begun"] = "phase-begun"
    text: str


class TimeMeasured(_Event):
    """So many seconds of a run's measurement are over, on the clock of its engine."""

    event: Literal["time-measured"] = "time-measured"
    seconds: float


class RunRepeated(_Event):
    """A run was not valid and is made again."""

    event: Literal["run-repeated"] = "run-repeated"
    run: str
    reason: str


class RunFinished(_Event):
    """A run has left its result."""

    event: Literal["run-finished"] = "run-finished"
    run: str
    summary: str


class RunBroken(_Event):
    """A run did not come to its end."""

    event: Literal["run-broken"] = "run-broken"
    run: str
    reason: str


class OutputRefused(_Event):
    """A worker could not write its results, and ends."""

    event: Literal["output-refused"] = "output-refused"
    path: str
    reason: str


class WorkFinished(_Event):
    """A worker has tried all of its runs, and ends."""

    event: Literal["work-finished"] = "work-finished"


Event: TypeAlias = (
    RunsBegun
    | RunStarted
    | PhaseBegun
    | TimeMeasured
    | RunRepeated
    | RunFinished
    | RunBroken
    | OutputRefused
    | WorkFinished
)
Report: TypeAlias = Callable[[Event], None]
"""Takes the events of runs."""

_LINES: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def to_line(event: Event) -> str:
    """Return an event as one line of JSON, with its end."""
    return event.model_dump_json() + "\n"


def from_line(line: str | bytes) -> Event:
    """Return the event that a line of JSON holds; pydantic.ValidationError where it holds none."""
    return _LINES.validate_json(line)


def ignore(event: Event) -> None:
    """Report nothing."""
    del event
