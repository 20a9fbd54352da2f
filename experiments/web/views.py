"""What the server answers, described: the page's types are generated from it (`make web`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from experiments.model import events
from experiments.model.evidence import Evidence
from experiments.model.results import (
    CompletionTimes,
    Environment,
    FlowResult,
    FlowSeries,
    LinkResult,
    RunResult,
    SimulationCost,
)
from experiments.sweep.summary import SweepRow


class _View(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PlannedRun(_View):
    """A run of a job; `kept` if its result was there before."""

    number: int
    case: str
    protocol: str
    seed: int
    kept: bool


class WatchPlan(_View):
    """All that is run; `links` are the directions in the order of the network's arcs."""

    engine: str
    clock: Literal["machine", "virtual", "simulated"]
    folder: str
    duration_s: float
    warm_up_s: float
    sample_s: float
    links: list[str]
    runs: list[PlannedRun]


class Session(_View):
    """How many results there are, and what is run."""

    documents: int
    watch: WatchPlan | None


class NodeView(_View):
    """A node and where it is drawn (y upwards)."""

    name: str
    kind: Literal["host", "switch"]
    x: float
    y: float


class LinkView(_View):
    """A link, alike in both directions."""

    a: str
    b: str
    rate_bps: float
    delay_us: float


class NetworkView(_View):
    """A network as it is drawn."""

    name: str
    nodes: list[NodeView]
    links: list[LinkView]


class ProtocolLook(_View):
    """How a protocol is drawn: the index of its colour and dash pattern."""

    series: int


class TransferTimes(CompletionTimes):
    """Completion times without their distribution."""

    quantiles: list[float] = Field(exclude=True)


class FlowRow(FlowResult):
    """A flow without its series."""

    series: FlowSeries = Field(exclude=True)
    fct_s: TransferTimes | None = None


class RunRow(RunResult):
    """A run without what is as long as the run."""

    number: int
    flows: list[FlowRow]  # type: ignore[assignment]
    links: list[LinkResult] = Field(exclude=True)
    evidence: Evidence = Field(exclude=True)
    sysctls: dict[str, str] = Field(exclude=True)


class EnvironmentView(Environment):
    """A machine, without the cost of each simulation."""

    simulations: list[SimulationCost] = Field(exclude=True)


class _Overview(_View):
    source: str
    scenario: str
    engine: str
    looks: dict[str, ProtocolLook]


class ResultsOverview(_Overview):
    """Results without series."""

    kind: Literal["results"]
    variant: str | None
    overrides: dict[str, Any]
    network: NetworkView
    environments: list[EnvironmentView]
    valid: bool | None
    why: list[str]
    runs: list[RunRow]


class SweepOverview(_Overview):
    """A sweep: means over its seeds for each load and protocol."""

    kind: Literal["sweep"]
    conditions: dict[str, Any]
    seeds: int
    rows: list[SweepRow]


class FlowPart(FlowSeries):
    """The series of a flow; `completions` are quantiles of its transfers' completion times, in seconds."""

    flow: str
    completions: list[float]


class JobEnded(_View):
    """All is over."""

    event: Literal["job-ended"] = "job-ended"
    state: Literal["finished", "failed", "stopped"]
    text: str


class RunEvent(RootModel[events.OfRun]):
    """What is told of one run, beside `number` (the run's) and `at_s` (the time since the epoch)."""


ANSWERS: tuple[type[BaseModel], ...] = (
    Session,
    ResultsOverview,
    SweepOverview,
    RunRow,
    FlowPart,
    LinkResult,
    events.RunsBegun,
    RunEvent,
    JobEnded,
)
