"""Backup paths: for each path in use another one that a switch can turn to at once when a link of it fails.

A backup shares no link with its path, and no node between the ends, where the network has such a path; else
it shares as few links as it can, then as few nodes, and of those paths it has the least delay. Backups say
where traffic can go, not that there is room: `gomr.failures` tells what is admitted.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gomr.allocation import Allocation, PathRate
from gomr.problem import Edge, Problem

Cost = tuple[int, int, float, int]
"""Links and nodes shared, delay in seconds, links."""


@dataclass(frozen=True)
class Backup:
    """A path in use and its backup.

    Attributes:
        demand: Id of the demand.
        path: The path in use.
        nodes: The nodes of the backup; () if there is no way but the path itself.
        delay_s: Delay of the backup.
        shared_links: Ids of the path's edges that the backup needs too; their failure breaks both.
        shared_nodes: Nodes between the ends that both pass.
    """

    demand: str
    path: PathRate
    nodes: tuple[str, ...]
    delay_s: float
    shared_links: tuple[str, ...]
    shared_nodes: tuple[str, ...]


def backup_paths(problem: Problem, allocation: Allocation) -> Iterator[Backup]:
    """Yield a backup for each path of an allocation that uses the network, in the order of the demands.

    Args:
        problem: The problem.
        allocation: Its allocation.
    """
    finder = _Finder(problem)
    known: dict[tuple[str, ...], tuple[Edge, ...]] = {}
    for demand in problem.demands:
        for path in allocation.paths[demand.id]:
            if not path.edges:
                continue
            if path.edges not in known:
                known[path.edges] = finder.apart_from(path)
            yield _backup(problem, demand.id, path, known[path.edges])


def _backup(problem: Problem, demand: str, path: PathRate, way: tuple[Edge, ...]) -> Backup:
    taken = _links_of(problem, path.edges)
    shared = tuple(edge.id for edge in way if edge.id in taken)
    if len(shared) == len(path.edges) == len(way):
        return Backup(demand, path, (), 0.0, path.edges, path.nodes[1:-1])
    inner = set(path.nodes[1:-1])
    return Backup(
        demand,
        path,
        (way[0].tail, *(edge.head for edge in way)),
        sum(edge.delay_s for edge in way),
        shared,
        tuple(edge.head for edge in way[:-1] if edge.head in inner),
    )


def _links_of(problem: Problem, edges: Collection[str]) -> set[str]:
    """Return the edges and their reverses: a link fails in both directions."""
    reverse = problem.reverse or {}
    return {*edges, *(reverse[edge] for edge in edges if edge in reverse)}


class _Finder:
    """Shortest paths that avoid another path."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._leaving: dict[str, list[Edge]] = {}
        self._entering: dict[str, list[Edge]] = {}
        for edge in problem.edges:
            if edge.capacity_bps > 0:
                self._leaving.setdefault(edge.tail, []).append(edge)
                self._entering.setdefault(edge.head, []).append(edge)
        self._delays_s: dict[str, dict[str, float]] = {}

    def apart_from(self, path: PathRate) -> tuple[Edge, ...]:
        """Return the path between the same ends that shares the least.

        By A* (P. Hart, N. Nilsson and B. Raphael, 1968): no way to the destination has less delay than the
        one of least delay, which is the same for all paths to it.
        """
        source, destination = path.nodes[0], path.nodes[-1]
        links, inner = _links_of(self._problem, path.edges), set(path.nodes[1:-1])
        to_come_s = self._delays_to(destination)
        best: dict[str, Cost] = {source: (0, 0, 0.0, 0)}
        last: dict[str, Edge] = {}
        heap: list[tuple[Cost, Cost, str]] = [((0, 0, to_come_s[source], 0), best[source], source)]
        while heap:
            _, cost, node = heapq.heappop(heap)
            if node == destination:
                break
            if cost > best[node] or (node in self._problem.endpoints and node != source):
                continue
            for edge in self._leaving.get(node, ()):
                head = edge.head
                if head not in to_come_s:
                    continue
                onward = (
                    cost[0] + (edge.id in links),
                    cost[1] + (head in inner),
                    cost[2] + edge.delay_s,
                    cost[3] + 1,
                )
                if head not in best or onward < best[head]:
                    best[head], last[head] = onward, edge
                    least = (onward[0], onward[1], onward[2] + to_come_s[head], onward[3])
                    heapq.heappush(heap, (least, onward, head))
        edges: list[Edge] = []
        node = destination
        while node != source:
            edges.append(last[node])
            node = edges[-1].tail
        return tuple(reversed(edges))

    def _delays_to(self, destination: str) -> dict[str, float]:
        """Return the least delay from each node that has a way to the destination, in seconds."""
        known = self._delays_s.get(destination)
        if known is not None:
            return known
        delays_s = {destination: 0.0}
        heap = [(0.0, destination)]
        while heap:
            delay_s, node = heapq.heappop(heap)
            if delay_s > delays_s[node]:
                continue
            for edge in self._entering.get(node, ()):
                onward_s = delay_s + edge.delay_s
                if edge.tail not in delays_s or onward_s < delays_s[edge.tail]:
                    delays_s[edge.tail] = onward_s
                    heapq.heappush(heap, (onward_s, edge.tail))
        self._delays_s[destination] = delays_s
        return delays_s
