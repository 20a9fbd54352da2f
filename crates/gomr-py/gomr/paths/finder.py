"""Cheapest, shortest and disjoint paths over a problem's edges, by the compiled engine.

Paths are shortest by delay, or by their number of edges if no edge has a delay. Edges without capacity are
closed, and nothing passes through an endpoint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from gomr.engines.native.network import NativeNetwork
from gomr.errors import InvalidProblem
from gomr.problem import Demand, Edge, Path, Problem

Length = Callable[[Edge], float]
"""The length of an edge, at least 0; `math.inf` closes it."""


class PathFinder:
    """Finds paths over the edges of one problem."""

    def __init__(self, problem: Problem) -> None:
        """Take the edges; demands play no part."""
        edges = problem.edges
        self._has_delays = any(edge.delay_s > 0 for edge in edges)
        if not self._has_delays:
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
            count: At most this many.
            nodes: They share no node between their ends either.

        Raises:
            InvalidProblem: An end is not a node, or the count is negative.
        """
        ends = self._ends(source, destination, count)
        return [self._path(path) for path in self._native.network.disjoint_paths(*ends, count, nodes=nodes)]

    def cheapest(self, demand: Demand, length: Length) -> tuple[float, Path] | None:
        """Return the demand's path of least length within its delay limit, and its length; None if none is.

        The worst case of a delay limit is exponential; the limits of real networks are not.
        """
        ends = self._native.nodes.of_ends(demand.source, demand.destination)
        limit_s = demand.max_delay_s if self._has_delays else None
        found = self._native.network.cheapest_path(*ends, list(map(length, self._edges)), limit_s)
        if found is None:
            return None
        path = self._path(found)
        return math.fsum(map(length, path)), path

    def within_delay(self, demand: Demand, most: int) -> list[Path]:
        """Return every path within the demand's delay limit.

        Raises:
            OverflowError: There are more than `most`.
        """
        for count in itertools.accumulate(itertools.repeat(4), int.__mul__, initial=16):
            known = self.shortest(demand.source, demand.destination, min(count, most + 1))
            in_time = [path for path in known if not demand.is_too_long(path)]
            if len(in_time) < min(count, most + 1):
                return in_time
            if len(in_time) > most:
                break
        raise OverflowError(f"more than {most} paths")

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


def are_disjoint(paths: Sequence[Path], *, nodes: bool = False) -> bool:
    """Return whether no two paths share an edge (or a node between their ends)."""
    taken: set[str] = set()
    for path in paths:
        own = parts_of(path, nodes=nodes)
        if not taken.isdisjoint(own):
            return False
        taken.update(own)
    return True
