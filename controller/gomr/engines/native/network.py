"""A problem in the compiled engine's terms: nodes, edges and flows by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from gomr_native import Network

from controller.gomr.paths.graph import Path
from controller.gomr.paths.numbering import Numbering
from controller.gomr.problem import Demand, Edge, Problem

FlowFields: TypeAlias = tuple[
    int, int, float, float, float, float | None, list[list[int]] | None, list[int] | None
]
"""A flow as the compiled engine takes it (crates/gomr-py/gomr_native.pyi)."""


class NativeNetwork:
    """The edges and nodes of a problem by number.

    Attributes:
        edges: The problem's edges; the engine knows each by its place, and answers with the edges.
        number: The place of each edge, by its id.
        nodes: The numbers of the nodes.
        network: All of it for the engine.
    """

    def __init__(self, problem: Problem) -> None:
        self.edges: tuple[Edge, ...] = problem.edges
        self.number = {edge.id: index for index, edge in enumerate(problem.edges)}
        self.nodes = Numbering(problem)
        reverse = problem.reverse or {}
        self.network = Network(
            self.nodes.count,
            [
                (
                    *self.nodes.of_edge(edge),
                    float(edge.capacity_bps),
                    float(edge.delay_s),
                    self.number[reverse[edge.id]] if edge.id in reverse else None,
                )
                for edge in problem.edges
            ],
            problem.edges,
        )

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
