"""A problem in the compiled engine's terms: nodes, edges and flows by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from gomr._native import Flows, Network
from gomr.columns import LARGEST_RATE, DemandColumns
from gomr.paths.numbering import Numbering
from gomr.problem import Demand, Edge, Path, Problem

FlowFields: TypeAlias = tuple[
    int, int, float, float, float, float | None, list[list[int]] | None, list[int] | None
]
"""A flow as the compiled engine takes it (_native.pyi)."""


def finite_bps(capacity_bps: float) -> float:
    """Return a capacity as the engine takes it: infinite ones are far beyond all that is asked for."""
    return min(float(capacity_bps), LARGEST_RATE)


class NativeNetwork:
    """The edges and nodes of a problem by number.

    Attributes:
        edges: The problem's edges; the engine knows each by its place, and answers with the edges.
        number: The place of each edge, by its id.
        nodes: The numbers of the nodes.
        capacity_bps: The capacity of each edge, by its place.
        network: All of it for the engine.
    """

    def __init__(self, problem: Problem) -> None:
        self.edges: tuple[Edge, ...] = problem.edges
        self.number = {edge.id: index for index, edge in enumerate(problem.edges)}
        self.nodes = Numbering(problem)
        self.capacity_bps = np.array([edge.capacity_bps for edge in problem.edges])
        self._columns: DemandColumns | None = None
        self._ends = (b"", b"")
        reverse = problem.reverse or {}
        self.network = Network(
            self.nodes.count,
            [
                (
                    *self.nodes.of_edge(edge),
                    finite_bps(edge.capacity_bps),
                    float(edge.delay_s),
                    self.number[reverse[edge.id]] if edge.id in reverse else None,
                )
                for edge in problem.edges
            ],
            problem.edges,
        )

    def flows(self, demands: Sequence[Demand]) -> Flows:
        """Return demands as the engine takes them."""
        if not isinstance(demands, DemandColumns):
            return Flows([self.flow(demand) for demand in demands])
        if self._columns is None or not demands.has_ends_of(self._columns):
            known = [node if node in self.nodes else None for node in demands.nodes]
            ends = [(0, 0) if node is None else self.nodes.of_ends(node, node) for node in known]
            numbers = np.array(ends, dtype=np.uint32).reshape(-1, 2)
            sources, destinations = numbers[demands.source, 0], numbers[demands.destination, 1]
            self._columns, self._ends = demands, (sources.tobytes(), destinations.tobytes())
        return Flows.from_columns(*self._ends, demands.rate_bps.tobytes())

    def flow(self, demand: Demand) -> FlowFields:
        """Return a demand as the engine takes it."""
        number = self.number
        fixed = demand.fixed_paths
        return (
            *self.nodes.of_ends(demand.source, demand.destination),
            float(demand.rate_bps),
            float(demand.weight),
            float(demand.ack_ratio),
            demand.max_delay_s,
            None if fixed is None else [[number[edge_id] for edge_id in path] for path in fixed],
            None if demand.ack_edges is None else [number[edge_id] for edge_id in demand.ack_edges],
        )

    def path_of(self, edge_ids: Iterable[str]) -> Path:
        """Return the edges with these ids."""
        return tuple(self.edges[self.number[edge_id]] for edge_id in edge_ids)

    def path(self, numbers: Iterable[int]) -> Path:
        """Return the edges with these numbers."""
        return tuple(self.edges[number] for number in numbers)
