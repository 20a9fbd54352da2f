"""Shortest and disjoint paths over a problem's edges, by the compiled engine.

Paths are shortest by delay, or by their number of edges if no edge has a delay. Edges without capacity are
closed, and nothing passes through an endpoint.
"""

from __future__ import annotations

from dataclasses import replace

from gomr.engines.native.network import NativeNetwork
from gomr.errors import InvalidProblem
from gomr.paths.graph import Path
from gomr.problem import Problem


class PathFinder:
    """Finds paths over the edges of one problem."""

    def __init__(self, problem: Problem) -> None:
        """Take the edges; demands play no part."""
        edges = problem.edges
        if all(edge.delay_s == 0 for edge in edges):
            edges = tuple(replace(edge, delay_s=1.0) for edge in edges)
        self._edges = problem.edges
        self._native = NativeNetwork(Problem(edges, (), problem.reverse, problem.endpoints, problem.isolated))

    def shortest(self, source: str, destination: str, count: int) -> list[Path]:
        """Return up to `count` shortest paths that visit no node twice, shortest first.

        J. Y. Yen, "Finding the K Shortest Loopless Paths in a Network", Management Science 17 (1971).

        Raises:
            InvalidProblem: An end is not a node, or the count is negative.
        """
        ends = self._ends(source, destination, count)
        return [self._path(path) for path in self._native.network.shortest_paths(*ends, count)]

    def disjoint(self, source: str, destination: str, count: int, *, nodes: bool = False) -> list[Path]:
        """Return up to `count` paths that share no edge, as many as there are, of least total length.

        R. Bhandari, "Survivable Networks: Algorithms for Diverse Routing" (1999).

        Args:
            source: Where they begin.
            destination: Where they end.
            count: At most so many.
            nodes: They share no node between their ends either.

        Raises:
            InvalidProblem: An end is not a node, or the count is negative.
        """
        ends = self._ends(source, destination, count)
        return [self._path(path) for path in self._native.network.disjoint_paths(*ends, count, nodes=nodes)]

    def _ends(self, source: str, destination: str, count: int) -> tuple[int, int]:
        for field, node in (("source", source), ("destination", destination)):
            if node not in self._native.nodes:
                raise InvalidProblem(field, f"{node!r} is not a node of the network")
        if count < 0:
            raise InvalidProblem("count", f"must be at least 0, not {count}")
        return self._native.nodes.of_ends(source, destination)

    def _path(self, numbers: list[int]) -> Path:
        return tuple(self._edges[number] for number in numbers)


def parts_of(path: Path, *, nodes: bool) -> list[str]:
    """Return names of what disjoint paths do not share: edges, and perhaps nodes between the ends."""
    between = [f"node {edge.head}" for edge in path[:-1]] if nodes else []
    return [*(f"edge {edge.id}" for edge in path), *between]


def are_disjoint(paths: list[Path], *, nodes: bool = False) -> bool:
    """Return whether no two paths share an edge (or a node between their ends)."""
    taken: set[str] = set()
    for path in paths:
        own = parts_of(path, nodes=nodes)
        if not taken.isdisjoint(own):
            return False
        taken.update(own)
    return True
