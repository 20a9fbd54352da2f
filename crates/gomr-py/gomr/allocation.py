"""The answer to a routing problem: rates on paths, and the checks that they keep within the network's limits.

Rates are given by path, so flow is conserved at every node by construction. What is left to check is that no
edge carries more than its capacity and no demand gets more than it asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gomr.columns import DemandColumns, PathColumns
from gomr.paths.graph import Path
from gomr.problem import Demand, Problem

Rates = Mapping[str, Sequence[tuple[Path, float]]]
"""Paths and the wire rate of each in bit/s, by demand id."""

_ROUNDING = 1 + 1e-13
"""What is over its limit by less than this factor is rounding, and left as it is."""


@dataclass(frozen=True)
class PathRate:
    """One path of a demand.

    Attributes:
        edges: Edge ids from the source to the destination.
        nodes: The nodes it visits, both ends included; one node where they are the same.
        rate_bps: Wire rate allocated to it, above 0.
        delay_s: Sum of its edges' delays.
    """

    edges: tuple[str, ...]
    nodes: tuple[str, ...]
    rate_bps: float
    delay_s: float


@dataclass(frozen=True)
class Allocation:
    """Rates on paths, and the proof of how good they are.

    Attributes:
        paths: The paths of every demand, shortest delay first; () for a demand that gets nothing.
        admitted_bps: Sum of all path rates.
        requested_bps: Sum of all requested rates.
        cost_bps_s: Sum of delay times rate: the bits that are under way on the links.
        objective: Name of the objective.
        engine: Name of the engine.
        upper_bound_bps: No allocation has a larger `value_bps` than this; proved from edge prices.
        gap: (upper bound - value) / upper bound; 0 is an optimum.
        max_violation_bps: By how much the worst edge or demand is over its limit; rounding at most.
        wall_s: Time taken to solve.
        value_bps: What is proved optimal: the utility for `fair`, for all others the admitted rate.
        max_utilisation: Largest share of its capacity that an edge carries, acknowledgements included.
        timed_out: The time limit came first: the best answer until then, `gap` below the bound or less.
        columns: The paths once more as arrays, where the compiled engine found them: for matrices of many
            demands, whose `paths` are made one by one when they are asked for.
        prices: What each edge's last bit/s adds to the value, by its id: those of the bound. Others are 0.
    """

    paths: Mapping[str, tuple[PathRate, ...]]
    admitted_bps: float
    requested_bps: float
    cost_bps_s: float
    objective: str
    engine: str
    upper_bound_bps: float
    gap: float
    max_violation_bps: float
    wall_s: float
    value_bps: float
    max_utilisation: float
    timed_out: bool = False
    columns: PathColumns | None = field(default=None, compare=False, repr=False)
    prices: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def rate_bps(self, demand_id: str) -> float:
        """Return the wire rate admitted for one demand."""
        return math.fsum(path.rate_bps for path in self.paths[demand_id])


def path_rates(rates: Sequence[tuple[Path, float]]) -> tuple[PathRate, ...]:
    """Return a demand's paths as `PathRate`, shortest delay first; paths without a rate are left out."""
    made = [
        PathRate(
            edges=tuple([edge.id for edge in path]),
            nodes=(path[0].tail, *[edge.head for edge in path]),
            rate_bps=rate_bps,
            delay_s=math.fsum([edge.delay_s for edge in path]),
        )
        for path, rate_bps in rates
        if rate_bps > 0
    ]
    if len(made) > 1:
        made.sort(key=lambda path: (path.delay_s, len(path.edges), path.edges))
    return tuple(made)


def edges_loaded(problem: Problem, ack_ratio: float, path: Path) -> list[tuple[str, float]]:
    """Return the edges that data on a path, with ACKs on its reverse, loads: the load per bit/s of data."""
    loaded = [(edge.id, 1.0) for edge in path]
    if ack_ratio > 0 and problem.reverse is not None:
        loaded += [(problem.reverse[edge.id], ack_ratio) for edge in path]
    return loaded


def loads_of(problem: Problem, demand: Demand, path: Path) -> list[tuple[str, float]]:
    """Return the edges that a demand's data on a path and its ACKs load: the load per bit/s of data."""
    loaded = edges_loaded(problem, demand.reverse_ack_ratio, path)
    if demand.ack_edges is not None:
        loaded += [(edge_id, demand.ack_ratio) for edge_id in demand.ack_edges]
    return loaded


def max_utilisation(problem: Problem, loads_bps: Mapping[str, float]) -> float:
    """Return the largest share of its capacity that an edge carries, given the load of every edge."""
    return max(
        (loads_bps[edge.id] / edge.capacity_bps for edge in problem.edges if edge.capacity_bps > 0),
        default=0.0,
    )


def largest_violation_bps(problem: Problem, rates: Rates, loads_bps: Mapping[str, float]) -> float:
    """Return by how much the worst edge or demand is over its capacity or request; 0 if none is.

    Args:
        problem: The problem.
        rates: Rates of its demands.
        loads_bps: Their load of every edge.
    """
    over = [loads_bps[edge.id] - edge.capacity_bps for edge in problem.edges]
    over += [total_bps(rates[demand.id]) - demand.rate_bps for demand in problem.demands]
    return max(0.0, *over)


def edge_loads(problem: Problem, rates: Rates) -> dict[str, float]:
    """Return the load of every edge in bit/s, acknowledgements included."""
    parts: dict[str, list[float]] = {edge.id: [] for edge in problem.edges}
    for demand in problem.demands:
        without_acks = demand.ack_ratio == 0
        for path, rate_bps in rates[demand.id]:
            if without_acks:
                for edge in path:
                    parts[edge.id].append(rate_bps)
                continue
            for edge_id, load in loads_of(problem, demand, path):
                parts[edge_id].append(load * rate_bps)
    return {edge_id: math.fsum(loads) for edge_id, loads in parts.items()}


def loads_of_allocation(problem: Problem, allocation: Allocation) -> dict[str, float]:
    """Return the load of every edge in bit/s, acknowledgements included."""
    if allocation.columns is not None and isinstance(problem.demands, DemandColumns):
        return _loads_of_columns(problem, allocation.columns)
    edges = problem.edges_by_id
    rates = {
        name: [(tuple(edges[edge_id] for edge_id in path.edges), path.rate_bps) for path in paths]
        for name, paths in allocation.paths.items()
    }
    return edge_loads(problem, rates)


def _loads_of_columns(problem: Problem, columns: PathColumns) -> dict[str, float]:
    start = columns.start.astype(np.int64)
    rates = np.repeat(columns.rate_bps, start[1:] - start[:-1])
    loads = np.bincount(columns.edges, weights=rates, minlength=len(problem.edges))
    return dict(zip([edge.id for edge in problem.edges], loads.tolist(), strict=True))


def fit(problem: Problem, rates: Rates, loads_bps: Mapping[str, float] | None = None) -> Rates:
    """Scale a solver's rates down where its tolerance put them over a limit.

    Each path is scaled by the tightest of the edges that it loads, so one pass brings every edge within its
    capacity; nothing is scaled up. What remains is rounding of the last bits.

    Args:
        problem: The problem.
        rates: Rates of its demands.
        loads_bps: Their load of every edge, where it is known.

    Returns:
        The rates; `rates` itself where nothing was over a limit.
    """
    within_request = {demand.id: _scaled(rates[demand.id], demand.rate_bps) for demand in problem.demands}
    scaled = any(within_request[demand.id] is not rates[demand.id] for demand in problem.demands)
    if scaled or loads_bps is None:
        loads_bps = edge_loads(problem, within_request)
    factors = {
        edge.id: edge.capacity_bps / loads_bps[edge.id]
        for edge in problem.edges
        if loads_bps[edge.id] > edge.capacity_bps * _ROUNDING
    }
    if not factors:
        return within_request if scaled else rates

    def tightest(demand: Demand, path: Path) -> float:
        return min([factors.get(edge_id, 1.0) for edge_id, _ in loads_of(problem, demand, path)])

    return {
        demand.id: [(path, rate * tightest(demand, path)) for path, rate in within_request[demand.id]]
        for demand in problem.demands
    }


def _scaled(rates: Sequence[tuple[Path, float]], limit_bps: float) -> Sequence[tuple[Path, float]]:
    rate_bps = total_bps(rates)
    if rate_bps <= limit_bps * _ROUNDING:
        return rates
    factor = limit_bps / rate_bps
    return [(path, rate * factor) for path, rate in rates]


def total_bps(rates: Sequence[tuple[Path, float]]) -> float:
    """Return the sum of the rates of some paths."""
    return rates[0][1] if len(rates) == 1 else math.fsum([rate for _, rate in rates])
