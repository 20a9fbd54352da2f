"""Default routes: least delay from every switch to every host, over one path or over all equal ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from topologies.model import Arc

_Distances = dict[str, tuple[int, int]]  # delay in ns and hops to the root, by node


def next_hops(arcs: Iterable[Arc], attachments: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the neighbour to which each switch sends what is meant for a host.

    Ties go to fewer hops and then to the neighbour whose name sorts first, so the same network always gives
    the same routes. Every step brings a packet nearer by (delay, hops), so there are no loops.

    Args:
        arcs: Both directions of the links between switches that are up.
        attachments: The switch of each host.

    Returns:
        For each host, the next switch for each switch that reaches it, other than the host's own.
    """
    towards = _by_head(arcs)
    trees = {}
    for root in set(attachments.values()):
        distances = _distances(towards, root)
        equal = _nearer_neighbours(towards, distances)
        trees[root] = {
            node: min(neighbours, key=lambda neighbour: (distances[neighbour][1], neighbour))
            for node, neighbours in equal.items()
        }
    return {host: trees[switch] for host, switch in attachments.items()}


def equal_next_hops(
    arcs: Iterable[Arc], attachments: Mapping[str, str]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return all neighbours over which a host has the least delay (equal-cost multipath).

    Paths of different numbers of hops may be equal. Every step brings a packet nearer by (delay, hops), so
    there are no loops, whichever neighbours the packets take.

    Args and returns as `next_hops`, but with the neighbours sorted by name.
    """
    towards = _by_head(arcs)
    trees = {root: _nearer_neighbours(towards, _distances(towards, root)) for root in attachments.values()}
    return {host: trees[switch] for host, switch in attachments.items()}


def _by_head(arcs: Iterable[Arc]) -> dict[str, list[Arc]]:
    towards: dict[str, list[Arc]] = {}
    for arc in arcs:
        towards.setdefault(arc.head, []).append(arc)
    return towards


def _step_ns(arc: Arc) -> int:
    # Whole nanoseconds: sums of floats would make ties depend on the order of addition.
    return round(arc.delay_s * 1e9)


def _distances(towards: Mapping[str, list[Arc]], root: str) -> _Distances:
    """Return how far every switch that reaches `root` is (Dijkstra from the root, against the arcs)."""
    distances: _Distances = {}
    frontier = [(0, 0, root)]
    while frontier:
        delay_ns, hops, node = heapq.heappop(frontier)
        if node in distances:
            continue
        distances[node] = (delay_ns, hops)
        for arc in towards.get(node, ()):
            if arc.tail not in distances:
                heapq.heappush(frontier, (delay_ns + _step_ns(arc), hops + 1, arc.tail))
    return distances


def _nearer_neighbours(towards: Mapping[str, list[Arc]], distances: _Distances) -> dict[str, tuple[str, ...]]:
    """Return each node's neighbours that are nearer to the root and on a path of least delay."""
    nearer: dict[str, list[str]] = {}
    for head, arcs in towards.items():
        for arc in arcs:
            if head not in distances:
                continue
            on_least_delay = distances[head][0] + _step_ns(arc) == distances[arc.tail][0]
            if on_least_delay and distances[head] < distances[arc.tail]:
                nearer.setdefault(arc.tail, []).append(head)
    return {node: tuple(sorted(neighbours)) for node, neighbours in nearer.items()}
