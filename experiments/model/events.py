"""What a run tells while it goes on: typed events, which cross from a worker to the runner as JSON lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from experiments.model.data import Data


class RunsBegun(Data):
    """Runs are made several at once from here on."""

    event: Literal["runs-begun"] = "runs-begun"
    planned: int


class RunStarted(Data):
    """One run has begun; `number` counts from 1."""

    event: Literal["run-started"] = "run-started"
    run: str
    number: int
    planned: int


class PhaseBegun(Data):
    """A run has come to its next part, as `building the network`."""

    event: Literal["phase-begun"] = "phase-begun"
    text: str


class TimeMeasured(Data):
    """This many seconds of a run's measurement are over, on the clock of its engine."""

    event: Literal["time-measured"] = "time-measured"
    seconds: float


class RunRepeated(Data):
    """A run was not valid and is rerun."""

    event: Literal["run-repeated"] = "run-repeated"
    run: str
    reason: str


class RunFinished(Data):
    """A run has left its result."""

    event: Literal["run-finished"] = "run-finished"
    run: str
    summary: str
    valid: bool = True


class RunBroken(Data):
    """A run did not come to its end."""

    event: Literal["run-broken"] = "run-broken"
    run: str
    reason: str


class ConnectedStream(Data):
    """One path of a flow: None if only the switches know it; its rate is None if nobody allocated one."""

    path: list[str] | None
    rate_bps: float | None


class ConnectedFlow(Data):
    """A flow with its streams, in the order in which their rates are told."""

    flow: str
    src: str
    dst: str
    requested_bps: float
    streams: list[ConnectedStream]


class FlowsConnected(Data):
    """All flows of a run are connected; the first byte follows."""

    event: Literal["flows-connected"] = "flows-connected"
    flows: list[ConnectedFlow]


class RatesMeasured(Data):
    """What links and streams carried since the last such event of the run.

    Attributes:
        seconds: From the start of the measurement, on the engine's clock; below 0 in the warm-up.
        links: Utilisation of each direction of each link, in the order of the network's arcs.
        streams_bps: Bytes carried on each stream as a rate, by flow; flows that told nothing are left out.
    """

    event: Literal["rates-measured"] = "rates-measured"
    seconds: float
    links: list[float]
    streams_bps: dict[str, list[float]]


class ValidityMeasured(Data):
    """Whether a run would be valid if it ended now.

    Attributes:
        seconds: As of `RatesMeasured`.
        cpu_busy: Mean share of the machine's cores that was busy so far; None where programs take no time.
        lateness_max_us: The most that a packet left a link too late; None where that is not measured.
        problems: A sentence for each sign that it would not.
    """

    event: Literal["validity-measured"] = "validity-measured"
    seconds: float
    cpu_busy: float | None
    lateness_max_us: float | None
    problems: list[str]


class OutputRefused(Data):
    """A worker could not write its results, and ends."""

    event: Literal["output-refused"] = "output-refused"
    path: str
    reason: str


class WorkFailed(Data):
    """A worker cannot make its runs, and ends."""

    event: Literal["work-failed"] = "work-failed"
    reason: str


class WorkFinished(Data):
    """A worker has tried all of its runs, and ends."""

    event: Literal["work-finished"] = "work-finished"


OfRun: TypeAlias = (
    RunStarted
    | PhaseBegun
    | TimeMeasured
    | RunRepeated
    | RunFinished
    | RunBroken
    | FlowsConnected
    | RatesMeasured
    | ValidityMeasured
)
"""What is told of one run."""


class InRun(Data):
    """What one of several runs tells that are made at once; `number` is the run's, from 1."""

    event: Literal["in-run"] = "in-run"
    number: int
    told: Annotated[OfRun, Field(discriminator="event")]


Event: TypeAlias = OfRun | RunsBegun | OutputRefused | WorkFailed | WorkFinished | InRun
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
