"""Shortest paths over a problem's edges: Dijkstra's algorithm, and Yen's for the k shortest.

Everything here is deterministic: equal lengths are decided by the number of edges, then by the edges' order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable

from gomr.problem import Edge

Path = tuple[Edge, ...]
Length = Callable[[Edge], float]
"""The length of an edge, at least 0; `math.inf` closes it."""


class Graph:
    """Directed edges by the node where they start."""

    def __init__(self, edges: Iterable[Edge], endpoints: Collection[str] = frozenset()) -> None:
        """Index `edges`; paths pass through no node of `endpoints`."""
        self._leaving: dict[str, list[Edge]] = {}
        self._endpoints = endpoints
        for edge in edges:
            self._leaving.setdefault(edge.tail, []).append(edge)

    def leaving(self, node: str, source: str) -> list[Edge]:
        """Return the edges on which a path from `source` can leave `node`."""
        if node in self._endpoints and node != source:
            return []
        return self._leaving.get(node, [])

    def reachable_edges(self, source: str) -> list[Edge]:
        """Return the edges that a path from `source` can use, in a fixed order; none leads back to it."""
        seen = {source}
        nodes = [source]
        edges = []
        for node in nodes:  # grows while it is read: a breadth-first search
            for edge in self.leaving(node, source):
                if edge.head != source:
                    edges.append(edge)
                if edge.head not in seen:
                    seen.add(edge.head)
                    nodes.append(edge.head)
        return edges

    def shortest_tree(self, source: str, length: Length) -> ShortestTree:
        """Return the shortest paths from `source` to every node that can be reached."""
        distance = {source: (0.0, 0)}
        last_edge: dict[str, Edge] = {}
        done = set()
        pushed = 0  # settles ties in the heap by age, so that edges are never compared
        heap: list[tuple[float, int, int, str]] = [(0.0, 0, pushed, source)]
        while heap:
            so_far, hops, _, node = heapq.heappop(heap)
            if node in done:
                continue
            done.add(node)
            for edge in self.leaving(node, source):
                candidate = (so_far + length(edge), hops + 1)
                if candidate < distance.get(edge.head, (math.inf, 0)):
                    distance[edge.head] = candidate
                    last_edge[edge.head] = edge
                    pushed += 1
                    heapq.heappush(heap, (*candidate, pushed, edge.head))
        return ShortestTree(source, {node: so_far for node, (so_far, _) in distance.items()}, last_edge)

    def shortest_path(self, source: str, destination: str, length: Length) -> Path | None:
        """Return the shortest path, or None if there is none."""
        return self.shortest_tree(source, length).path(destination)

    def shortest_paths(self, source: str, destination: str, count: int, length: Length) -> list[Path]:
        """Return up to `count` shortest paths that visit no node twice, shortest first.

        J. Y. Yen, "Finding the K Shortest Loopless Paths in a Network", Management Science 17 (1971).
        """
        first = self.shortest_path(source, destination, length)
        paths = [] if first is None else [first]
        known = set(paths)
        candidates: list[tuple[float, int, int, Path]] = []
        while paths and len(paths) < count:
            for path in self._deviations(paths, destination, length):
                if path not in known:
                    known.add(path)
                    heapq.heappush(candidates, (sum(map(length, path)), len(path), len(known), path))
            if not candidates:
                break
            paths.append(heapq.heappop(candidates)[-1])
        return paths

    def _deviations(self, paths: list[Path], destination: str, length: Length) -> Iterable[Path]:
        """Yield the shortest paths that leave the last of `paths` at each of its nodes."""
        last = paths[-1]
        for index, edge in enumerate(last):
            root = last[:index]
            closed_edges = {path[index] for path in paths if len(path) > index and path[:index] == root}
            closed_nodes = {visited.tail for visited in root}
            open_length = _closing(length, closed_edges, closed_nodes)
            spur = self.shortest_path(edge.tail, destination, open_length)
            if spur is not None:
                yield root + spur


class ShortestTree:
    """The shortest paths from one node."""

    def __init__(self, source: str, distance: dict[str, float], last_edge: dict[str, Edge]) -> None:
        self._source = source
        self._distance = distance
        self._last_edge = last_edge

    def distance(self, node: str) -> float:
        """Return the length of the path to `node`; `math.inf` if there is none."""
        return self._distance.get(node, math.inf)

    def path(self, node: str) -> Path | None:
        """Return the edges from the source to `node`; None if there is no path, () for the source itself."""
        edges: list[Edge] = []
        while node != self._source:
            if node not in self._last_edge:
                return None
            edges.append(self._last_edge[node])
            node = edges[-1].tail
        return tuple(reversed(edges))


def _closing(length: Length, edges: Collection[Edge], nodes: Collection[str]) -> Length:
    """Return `length` with these edges, and the edges into these nodes, closed."""

    def open_length(edge: Edge) -> float:
        return math.inf if edge in edges or edge.head in nodes else length(edge)

    return open_length
