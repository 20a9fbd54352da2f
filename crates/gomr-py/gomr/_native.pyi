"""The routing engine (crates/gomr): nodes, arcs and flows are numbers; `gomr` gives them names.

Every method that solves lets other threads run meanwhile.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, final

__all__ = [
    "Audit",
    "Engine",
    "Flows",
    "InvalidInput",
    "LeastDelayTrees",
    "Network",
    "NotSolved",
    "PathRates",
    "Summary",
    "TimeIsUp",
    "audit",
    "fit",
]

_ArcFields: TypeAlias = tuple[int, int, float, float, int | None]
"""Tail, head, capacity (bit/s), delay (s), the arc that carries the acknowledgements of its data."""
_FlowFields: TypeAlias = tuple[
    int, int, float, float, float, float | None, list[list[int]] | None, list[int] | None
]
"""Source, destination, rate (bit/s), weight, load of the ACKs per bit/s of data, longest delay of a path (s),
the only paths it may use, the arcs that carry its ACKs instead of the reverse of each path."""
_FlowPaths: TypeAlias = tuple[int, list[tuple[tuple[Any, ...], float]]]
"""Number of a flow, and its paths, the least delay first: the labels of their arcs, and rate (bit/s)."""
_Cut: TypeAlias = tuple[list[float], list[int]]
"""Prices of all arcs, and the flows that they stop."""

class InvalidInput(ValueError):
    """A field holds a value that has no meaning; `args` are the field and the reason."""

class NotSolved(RuntimeError):
    """The simplex stopped short of the optimum; `args` are the reason and how far it had come, by name."""

class TimeIsUp(NotSolved):
    """The time limit came before the optimum. The next solve goes on from there."""

@final
class LeastDelayTrees:
    """Paths of least delay, kept while arcs go down and up; ties go to fewer arcs, then smaller nodes."""

    def __new__(cls, nodes: int, arcs: Sequence[tuple[int, int, int]]) -> LeastDelayTrees:
        """Take arcs as (tail, head, delay in ns), all of them down."""

    def set_up(self, arc: int, up: bool) -> list[int]:
        """Let an arc come up or go down; returns the roots asked for whose paths that changes."""

    def towards(self, root: int) -> list[int | None]:
        """Return the arc by which each node comes nearer to a root."""

@final
class Summary:
    """Totals of an optimum; rates in bit/s."""

    @property
    def admitted_bps(self) -> float: ...
    @property
    def requested_bps(self) -> float: ...
    @property
    def cost_bps_s(self) -> float: ...
    @property
    def max_utilisation(self) -> float: ...
    @property
    def value(self) -> float:
        """Value of the first objective, bit/s."""

    @property
    def upper_bound(self) -> float:
        """What the first objective cannot exceed, proved by prices."""

    @property
    def gap(self) -> float: ...
    @property
    def max_violation_bps(self) -> float: ...
    @property
    def pivots(self) -> int: ...
    @property
    def columns(self) -> int: ...

@final
class Network:
    """Nodes and arcs."""

    def __new__(cls, nodes: int, arcs: list[_ArcFields], labels: Sequence[Any]) -> Network:
        """Take a network, and what stands for each arc in an engine's answers.

        InvalidInput names the field that is wrong.
        """

    def shortest_paths(self, source: int, destination: int, count: int) -> list[list[int]]:
        """Return up to `count` simple paths of least delay over arcs with a capacity."""

    def cheapest_path(
        self, source: int, destination: int, lengths: list[float], max_delay_s: float | None
    ) -> list[int] | None:
        """Return the path of least length over arcs with a capacity, within a delay; ties go to fewer arcs.

        Infinite lengths close arcs.
        """

    def disjoint_paths(self, source: int, destination: int, count: int, *, nodes: bool) -> list[list[int]]:
        """Return up to `count` paths that share no arc (or no node but the ends), of least total delay."""

    def max_concurrent(
        self,
        flows: Flows,
        load: float = 1.0,
        *,
        threads: int = 1,
        time_limit_s: float | None = None,
        most_looks: int | None = None,
    ) -> tuple[float, float, bool] | None:
        """Return the largest factor by which all flows can be multiplied within a load of at least 1.

        With a proven bound of it, and whether it is the largest; else the time was up. None where flows have
        limits on their paths, or rounding defeats it; 0 where those without a path are too large a part. It
        ends as well after so many looks at the time, the same on every machine.
        """

    def max_concurrent_by_symmetry(
        self, flows: Flows, *, time_limit_s: float | None = None
    ) -> tuple[float, float] | None:
        """Return the same for a load of 1, with its bound; None as for `solve_by_symmetry`."""

    def route_by_source(
        self, flows: Flows, *, threads: int = 1, time_limit_s: float | None = None
    ) -> tuple[PathRates, list[float], bool] | None:
        """Route flows as `max_throughput_min_delay`, those of one source together.

        Returns the paths, the price of each arc, and whether it is the optimum; else the time was up, and
        rates may be over limits. None where flows have limits on their paths, or rounding defeats it. It
        pays where nodes send to most others.
        """

    def solve_by_symmetry(
        self, flows: Flows, objective: str, *, time_limit_s: float | None = None
    ) -> tuple[PathRates, list[float], list[_Cut]] | None:
        """Solve over classes of edges and demands: paths, the price of each arc, and the cuts of `max_min`.

        None where there are too many classes, the time is up, or flows are not plain.
        """

@final
class Flows:
    """The flows of a problem."""

    def __new__(cls, flows: list[_FlowFields]) -> Flows:
        """Take flows one by one."""

    @staticmethod
    def from_columns(sources: bytes, destinations: bytes, rates_bps: bytes) -> Flows:
        """Take plain flows as arrays: nodes (uint32) and rates in bit/s (float64)."""

    def __len__(self) -> int: ...

@final
class PathRates:
    """Paths of all flows: flow (uint32), rate in bit/s (float64), where its arcs begin, arcs (uint32)."""

    def __new__(cls, flow: bytes, rate_bps: bytes, start: bytes, arcs: bytes) -> PathRates:
        """Take paths, those of a flow one after another; `start` has one number more than there are paths."""

    @property
    def flow(self) -> bytes: ...
    @property
    def rate_bps(self) -> bytes: ...
    @property
    def start(self) -> bytes: ...
    @property
    def arcs(self) -> bytes: ...

@final
class Audit:
    """What an answer is worth; rates in bit/s."""

    @property
    def admitted_bps(self) -> float: ...
    @property
    def requested_bps(self) -> float: ...
    @property
    def cost_bps_s(self) -> float: ...
    @property
    def value(self) -> float: ...
    @property
    def upper_bound(self) -> float: ...
    @property
    def max_violation_bps(self) -> float: ...
    @property
    def loads_bps(self) -> list[float]: ...

def fit(network: Network, flows: Flows, answer: PathRates) -> PathRates:
    """Return the answer with rates scaled down to the limits that rounding has put them over."""

def audit(
    network: Network,
    flows: Flows,
    answer: PathRates,
    objective: str,
    prices: list[float],
    cuts: list[_Cut],
) -> Audit:
    """Check an answer and compute what prices prove; knows nothing of the engine.

    InvalidInput: a path does not lead from its flow's source to its destination.
    """

@final
class Engine:
    """A network with its flows, kept at the optimum through events."""

    def __new__(cls, network: Network, flows: Flows, objective: str, *, threads: int = 1) -> Engine:
        """Take a problem; flow i of it gets the number i. Paths are searched for on this many threads."""

    def add_flow(self, flow: _FlowFields, /) -> int:
        """Add a flow; return its number, which is never used again."""

    def remove_flow(self, flow: int, /) -> None:
        """Let a flow go; LookupError if it is not there."""

    def change_rate(self, flow: int, rate_bps: float, /) -> None:
        """Let a flow ask for another rate."""

    def fail_link(self, arc: int, /) -> None:
        """Take an arc's capacity until it is restored."""

    def restore_link(self, arc: int, /) -> None:
        """Give an arc the capacity back that it last had."""

    def set_capacity(self, arc: int, capacity_bps: float, /) -> None:
        """Give an arc another capacity; while it is down, for later."""

    def solve(self, *, time_limit_s: float | None = None) -> Summary:
        """Find the optimum, from the last one's basis; NotSolved leaves no partial answer."""

    def changes(self, *, time_limit_s: float | None = None) -> tuple[Summary, list[_FlowPaths]]:
        """Solve and return the flows that are not as the last call left them; all on the first call."""

    def minimum_reallocation(
        self, resized: list[int], *, time_limit_s: float | None = None
    ) -> tuple[Summary, list[_FlowPaths], bool]:
        """As `changes`, with the optimum that moves flows least.

        Args:
            resized: Flows that asked for another rate themselves: they move before others do.
            time_limit_s: Seconds that it may take.

        Returns:
            Totals, what changed, and whether there was time to choose; else the optimum is any.
        """

    def changes_so_far(self) -> tuple[Summary, list[_FlowPaths]]:
        """As `changes` after one that ended early: the best known rates within all limits, and their gap."""

    def copy(self) -> Engine:
        """Return an engine of its own in the same state; any thread may take copies."""

    def ignore_delays(self) -> None:
        """Solve for the first objective alone from the next event on: any of its optima is found."""

    def forget_poor_paths(self) -> None:
        """Forget known paths that are far from optimal, so that a copy and the next event cost less."""

    def keep_shares(self) -> None:
        """Let flows with the same ends keep what they were told as far as an optimum allows.

        Otherwise each gets the same part of what it asks for.
        """

    def set_reported(self, flow: int, rates: list[tuple[list[int], float]], /) -> None:
        """Take other rates of a flow as told: arcs and bit/s of each path that it really has."""

    def change_rates(self, rates_bps: bytes, /) -> None:
        """Let flows 0, 1, … ask for these rates (float64)."""

    def path_rates(self, *, time_limit_s: float | None = None, most_looks: int | None = None) -> PathRates:
        """Solve and return the paths of all flows."""

    def path_rates_so_far(self) -> PathRates:
        """Return what a solve that ended early has come to; `fit` brings it within all limits."""

    def prices_so_far(self) -> tuple[list[float], list[_Cut]]:
        """Return what proves the answer: a price for each arc, and under `max_min` the cuts."""

    def prices(self) -> list[float]:
        """Return of each arc what one more bit/s of it would add to the first objective."""
