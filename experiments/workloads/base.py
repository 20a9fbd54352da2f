"""What a workload is: when an application writes how much, and what is measured of it.

A workload decides without knowing the network: its decisions are an iterator of times and sizes, pure and
the same for the same seed in every engine. The live engine's sources follow it; the simulator is told the
same list, or a shorter form of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, SerializeAsAny

from experiments.model.data import Data
from experiments.registry import Kinds

if TYPE_CHECKING:  # sources and sinks import this, and little else
    from experiments.analysis.logs import Log, Nanoseconds, Window

MAX_BYTES = 1 << 50

Size = Annotated[int, Field(ge=1, le=MAX_BYTES)]
Period = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]

LISTED_LIMIT = 2_000_000
"""Of one flow: what would be written beyond these is left out of a simulation."""


class Decision(NamedTuple):
    """To write (or, of requests, to ask for) `size_bytes`, `time_s` after the flow's start."""

    time_s: float
    size_bytes: int


@dataclass(frozen=True)
class Simulated:
    """What the simulator knows of a flow beside its workload.

    Attributes:
        rate_bps: Goodput asked for, or assigned where that is what its source writes at.
        write_rate_bps: What a backlog is written no faster than; None: as fast as the connection takes it.
        payload_bytes: Of a full segment.
        seed: Of the flow, as the live engine has it.
        duration_s: From the flow's start to the end of the run.
        when_full: What becomes of a tick that finds the send buffer full (`sim.when_full`).
        arrivals: When sources of a constant rate write (`sim.arrivals`).
        tick_jitter: How late each of their writes is at the most, as a part of the time between two.
    """

    rate_bps: float
    write_rate_bps: float | None
    payload_bytes: int
    seed: int
    duration_s: float
    when_full: Literal["skip", "wait"]
    arrivals: Literal["constant", "poisson"]
    tick_jitter: float


@dataclass(frozen=True)
class Ended:
    """A flow after its end: what its source and sink noted, in any engine.

    `asked_ns` is when each request was wanted, empty without requests; `end_offset` where in the stream its
    answer ends, in bytes. `start_ns` is when the flow's source began.
    """

    writes: Log
    reads: Log
    window: Window
    start_ns: int
    seed: int
    asked_ns: Nanoseconds
    end_offset: Nanoseconds

    def goodput_over_bps(self, active_s: float) -> float | None:
        """Return what was read within the window, as a rate over the time that the source was active."""
        from experiments.analysis import logs

        if active_s <= 0:
            return None
        return logs.goodput_bps(self.reads, self.window) * self.window.duration_s / active_s


class Asking(Protocol):
    """A workload whose destination asks over the flow's connection and whose source answers.

    Only users who wait for an answer before they ask again (a closed loop) are led by what arrives; all else
    is drawn before.
    """

    @property
    def request_bytes(self) -> int:
        """Bytes of each request."""

    @property
    def users(self) -> int | None:
        """Those of a closed loop; None: requests come whether or not earlier ones are answered."""

    def answer_sizes(self, seed: int) -> Iterator[int]:
        """Yield the sizes in bytes of the answers to a flow's requests, in the order of the requests."""

    def think_times(self, seed: int) -> Iterator[float]:
        """Yield how long, in seconds, the users of a closed loop think before they ask again."""


class WorkloadBase(Data):
    """A workload as a scenario file has it: a table with its `kind` and the fields of a subclass.

    Subclasses are given to `experiments.workloads.register` (docs/extensions.md).
    """

    kind: str
    writes: ClassVar[Literal["ticks", "backlog"]] = "backlog"
    """What becomes of a decision that finds the send buffer full: a tick is left out, a backlog waits."""

    @property
    def asking(self) -> Asking | None:
        """What its destination asks for; None: its source writes of its own accord."""
        return None

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield a flow's decisions in the order of time, with or without end.

        `rate_bps` is the goodput that the flow asks for, `payload_bytes` what a full segment carries.
        """
        raise NotImplementedError

    def simulated(self, flow: Simulated) -> dict[str, Any]:
        """Return the flow's traffic as netsim describes it: by default its decisions, listed."""
        made = itertools.takewhile(
            lambda decision: decision.time_s < flow.duration_s,
            self.decisions(flow.rate_bps, flow.payload_bytes, flow.seed),
        )
        writes = [[time_s, size] for time_s, size in itertools.islice(made, LISTED_LIMIT)]
        when_full = flow.when_full if self.writes == "ticks" else "wait"
        return {
            "kind": "listed",
            "writes": writes,
            "when_full": when_full,
            "write_rate_bps": flow.write_rate_bps,
        }

    def measured(self, flow: Ended) -> dict[str, Any]:
        """Return what only this workload measures: fields of `FlowResult`, or numbers by names with units."""
        del flow
        return {}

    @classmethod
    def is_measured_from_logs(cls) -> bool:
        """Whether the simulator has to log its flows: traffic of a kind of netsim's it also measures."""
        measuring, simulating = (
            next(each for each in cls.__mro__ if name in vars(each)) for name in ("measured", "simulated")
        )
        return measuring not in (WorkloadBase, simulating)


WORKLOADS: Kinds[WorkloadBase] = Kinds("workload")
register = WORKLOADS.register_kind

Workload: TypeAlias = Annotated[SerializeAsAny[WorkloadBase], BeforeValidator(WORKLOADS.parse)]
"""A table whose `kind` is that of a workload that was registered."""


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Return the generator of a flow's draws for one purpose; the other purposes have their own."""
    return np.random.default_rng([seed, purpose])
