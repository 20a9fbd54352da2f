"""The answer to a routing problem: rates on paths.

Rates are given by path, so flow is conserved at every node by construction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gomr.columns import DemandColumns, PathColumns
from gomr.problem import Demand, Path, Problem

Rates = Mapping[str, Sequence[tuple[Path, float]]]
"""Paths and the wire rate of each in bit/s, by demand id."""
ROUNDING = 1e-13
"""What a sum of rates may be over a capacity, as a share of it."""


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
        columns: The paths once more as arrays, for matrices of many demands, whose `paths` are made one by
            one when they are asked for. None where a demand stays at its source, and after live events.
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
    """Return the load of every edge in bit/s, acknowledgements included.

    What is over an edge's capacity by rounding alone is the capacity.
    """
    if allocation.columns is not None and isinstance(problem.demands, DemandColumns):
        loads_bps = _loads_of_columns(problem, allocation.columns)
    else:
        loads_bps = edge_loads(problem, rates_of_allocation(problem, allocation))
    for edge in problem.edges:
        if edge.capacity_bps < loads_bps[edge.id] <= edge.capacity_bps * (1 + ROUNDING):
            loads_bps[edge.id] = edge.capacity_bps
    return loads_bps


def rates_of_allocation(problem: Problem, allocation: Allocation) -> Rates:
    """Return the rates of an allocation as engines have them."""
    edges = problem.edges_by_id
    return {
        name: [(tuple(edges[edge_id] for edge_id in path.edges), path.rate_bps) for path in paths]
        for name, paths in allocation.paths.items()
    }


def _loads_of_columns(problem: Problem, columns: PathColumns) -> dict[str, float]:
    start = columns.start.astype(np.int64)
    rates = np.repeat(columns.rate_bps, start[1:] - start[:-1])
    loads = np.bincount(columns.edges, weights=rates, minlength=len(problem.edges))
    return dict(zip([edge.id for edge in problem.edges], loads.tolist(), strict=True))
