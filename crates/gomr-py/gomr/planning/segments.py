"""Routing by segment lists of at most two segments, as routers do it, beside routing over any paths.

A segment leads to a node by the shortest paths of the routing protocol, over all of equal length in equal
parts (ECMP). A list of two goes by way of one node; how a demand splits over its lists is free (R. Bhatia et
al., "Optimized Network Traffic Engineering using Segment Routing", INFOCOM 2015).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gomr.engines.linear_program import LinearProgram
from gomr.engines.time_budget import TimeBudget
from gomr.errors import InvalidProblem
from gomr.graphs import problem_of
from gomr.matrices import Matrix
from gomr.planning.columns import NAME, check_plain, gap_of
from gomr.problem import Edge, Problem
from gomr.solving import allocate

_RATE_ROUNDING = 1e-11
_LENGTH_TOLERANCE = 1e-12
"""Lengths that differ by less than this share are equal."""


@dataclass(frozen=True)
class SegmentRouting:
    """What segment lists carry.

    Attributes:
        lists_bps: The lists of each demand, as the nodes that segments lead to, and the rate of each.
        admitted_bps: What they admit: the most that any splits over such lists can.
        free_bps: The most that any paths admit, proved.
        gap: What the lists lose against free paths: (free - admitted) / free.
    """

    lists_bps: Mapping[str, tuple[tuple[tuple[str, ...], float], ...]]
    admitted_bps: float
    free_bps: float
    gap: float


def solve_segments(
    graph: Any,
    demands: Matrix,
    weight: Mapping[str, float] | None = None,
    *,
    time_limit_s: float | None = None,
    **reading: Any,
) -> SegmentRouting:
    """Admit as much as lists of at most two segments can, and tell what free paths would.

    Args:
        graph: As `gomr.solve`.
        demands: As `gomr.solve`, without limits.
        weight: The routing protocol's weight of each edge, above 0, by edge id. None: 1 for each.
        time_limit_s: Seconds that each solve may take.
        **reading: As `gomr.problem_of`.

    Raises:
        InvalidProblem: A weight is missing or not above 0, or something contradicts itself.
        SolverError: HiGHS failed, or the time was up.
    """
    problem = problem_of(graph, demands, **reading)
    check_plain(problem.demands)
    weight = dict.fromkeys(problem.edges_by_id, 1.0) if weight is None else weight
    for edge in problem.edges:
        if not 0 < weight.get(edge.id, 0.0) < math.inf:
            raise InvalidProblem(f"weight[{edge.id}]", "must be a number above 0 for every edge")
    free = allocate(problem, time_limit_s=time_limit_s)
    lists = _most(problem, _Ecmp(problem, weight), time_limit_s)
    total_bps = math.fsum(rate for own in lists.values() for _, rate in own)
    gap = gap_of(total_bps, free.upper_bound_bps) if total_bps < free.upper_bound_bps else 0.0
    return SegmentRouting(lists, total_bps, free.upper_bound_bps, gap)


def _most(
    problem: Problem, ecmp: _Ecmp, time_limit_s: float | None
) -> dict[str, tuple[tuple[tuple[str, ...], float], ...]]:
    program, unit_bps = LinearProgram(TimeBudget(NAME, time_limit_s)), problem.unit_bps or 1.0
    row = {
        edge.id: program.row({}, upper=problem.useful_capacity_bps(edge) / unit_bps) for edge in problem.edges
    }
    columns: dict[int, tuple[str, tuple[str, ...]]] = {}
    for demand in problem.demands:
        asked = program.row({}, upper=demand.rate_bps / unit_bps)
        ends = (demand.source, demand.destination)
        middles = [
            node for node in sorted(problem.nodes) if node not in ends and node not in problem.endpoints
        ]
        for nodes in ((demand.destination,), *((node, demand.destination) for node in middles)):
            loads = ecmp.loads(demand.source, nodes)
            if loads is not None:
                entry = {asked: 1.0, **{row[edge_id]: load for edge_id, load in loads.items()}}
                (column,) = program.columns([0.0], [entry])
                columns[column] = (demand.id, nodes)
    program.minimise(dict.fromkeys(columns, -1.0))
    values = program.values()
    made: dict[str, list[tuple[tuple[str, ...], float]]] = {demand.id: [] for demand in problem.demands}
    for column, (name, nodes) in columns.items():
        if values[column] > _RATE_ROUNDING:
            made[name].append((nodes, float(values[column]) * unit_bps))
    return {name: tuple(own) for name, own in made.items()}


class _Ecmp:
    """How segments load edges."""

    def __init__(self, problem: Problem, weight: Mapping[str, float]) -> None:
        self._problem, self._weight = problem, weight
        self._entering: dict[str, list[Edge]] = {}
        self._leaving: dict[str, list[Edge]] = {}
        for edge in problem.edges:
            if edge.capacity_bps > 0:
                self._entering.setdefault(edge.head, []).append(edge)
                self._leaving.setdefault(edge.tail, []).append(edge)
        self._distances: dict[str, dict[str, float]] = {}
        self._segments: dict[tuple[str, str], dict[str, float] | None] = {}

    def loads(self, source: str, nodes: tuple[str, ...]) -> dict[str, float] | None:
        """Return the load of each edge per bit/s over a list of segments; None if one has no path."""
        total: dict[str, float] = {}
        for tail, head in zip((source, *nodes), nodes, strict=False):
            own = self._segment(tail, head)
            if own is None:
                return None
            for edge_id, load in own.items():
                total[edge_id] = total.get(edge_id, 0.0) + load
        return total

    def _segment(self, source: str, destination: str) -> dict[str, float] | None:
        key = (source, destination)
        if key not in self._segments:
            self._segments[key] = self._split(source, destination)
        return self._segments[key]

    def _split(self, source: str, destination: str) -> dict[str, float] | None:
        distance = self._to(destination)
        if source not in distance:
            return None
        share, loads = {source: 1.0}, {}
        for node in sorted(distance, key=lambda node: -distance[node]):
            if node not in share or node == destination:
                continue
            onward = [edge for edge in self._leaving.get(node, ()) if self._is_shortest(edge, distance)]
            for edge in onward:
                loads[edge.id] = share[node] / len(onward)
                share[edge.head] = share.get(edge.head, 0.0) + loads[edge.id]
        return loads

    def _is_shortest(self, edge: Edge, distance: Mapping[str, float]) -> bool:
        if edge.head not in distance:
            return False
        along = distance[edge.head] + self._weight[edge.id]
        return along <= distance[edge.tail] * (1 + _LENGTH_TOLERANCE)

    def _to(self, destination: str) -> dict[str, float]:
        """Return the length of the shortest path to a node from each that has one."""
        if destination not in self._distances:
            distance = {destination: 0.0}
            heap = [(0.0, destination)]
            while heap:
                length, node = heapq.heappop(heap)
                if length > distance[node] or (node in self._problem.endpoints and node != destination):
                    continue
                for edge in self._entering.get(node, ()):
                    further = length + self._weight[edge.id]
                    if further < distance.get(edge.tail, math.inf):
                        distance[edge.tail] = further
                        heapq.heappush(heap, (further, edge.tail))
            self._distances[destination] = distance
        return self._distances[destination]
