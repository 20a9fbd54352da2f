"""Default routes: the shortest path by delay from every switch to every host."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from topologies.model import Arc

__all__ = ["next_hops"]


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
    towards: dict[str, list[Arc]] = {}
    for arc in arcs:
        towards.setdefault(arc.head, []).append(arc)
    trees = {switch: _tree(towards, switch) for switch in set(attachments.values())}
    return {host: trees[switch] for host, switch in attachments.items()}


def _tree(towards: Mapping[str, list[Arc]], root: str) -> dict[str, str]:
    """Return the next hop of every switch that reaches `root` (Dijkstra from the root, against the arcs)."""
    # Whole nanoseconds: sums of floats would make ties depend on the order of addition.
    best: dict[str, tuple[int, int, str]] = {}
    frontier: list[tuple[int, int, str, str]] = [(0, 0, "", root)]
    while frontier:
        delay_ns, hops, next_hop, node = heapq.heappop(frontier)
        if node in best:
            continue
        best[node] = (delay_ns, hops, next_hop)
        for arc in towards.get(node, ()):
            if arc.tail not in best:
                step_ns = round(arc.delay_s * 1e9)
                heapq.heappush(frontier, (delay_ns + step_ns, hops + 1, node, arc.tail))
    return {node: next_hop for node, (_, _, next_hop) in best.items() if node != root}
