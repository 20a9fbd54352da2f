"""Paths of least delay between switches over the links that are up."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

from gomr._native import LeastDelayTrees

from controller.model.journal import undo_by
from topologies.model import Arc


def path_over(start: str, end: str, arcs_from: Callable[[str], Iterable[Arc]]) -> tuple[str, ...] | None:
    """Return the path of least delay over these arcs, by Dijkstra's algorithm; None where there is none."""
    heap: list[tuple[float, tuple[str, ...]]] = [(0.0, (start,))]
    settled: set[str] = set()
    while heap:
        delay_s, path = heapq.heappop(heap)
        node = path[-1]
        if node == end:
            return path
        if node not in settled:
            settled.add(node)
            for arc in arcs_from(node):
                if arc.head not in settled:
                    heapq.heappush(heap, (delay_s + arc.delay_s, (*path, arc.head)))
    return None


class LeastDelay:
    """Trees towards switches, each computed when it is first asked for, and again when a link has changed it.

    Ties go to fewer hops and then to the neighbour whose name sorts first, so the same network always gives
    the same paths. Every step brings a packet nearer by (delay, hops), so there are no loops. All arcs are
    down at first.
    """

    def __init__(self, switches: Iterable[str], arcs: Mapping[str, Arc]) -> None:
        self._names = sorted(switches)
        self._nodes = {name: number for number, name in enumerate(self._names)}
        self._arcs = {name: number for number, name in enumerate(arcs)}
        self._heads = [arc.head for arc in arcs.values()]
        # Whole nanoseconds: sums of floats would make ties depend on the order of addition.
        self._nearest = LeastDelayTrees(
            len(self._names),
            [
                (self._nodes[arc.tail], self._nodes[arc.head], round(arc.delay_s * 1e9))
                for arc in arcs.values()
            ],
        )
        self._delays_ns = {(arc.tail, arc.head): round(arc.delay_s * 1e9) for arc in arcs.values()}
        self._hops: dict[str, dict[str, str]] = {}
        self._distances_ns: dict[str, dict[str, int]] = {}

    def set_up(self, arc: str, is_up: bool) -> None:
        """Note that an arc came up or went down; of other arcs than those between switches nothing."""
        if arc in self._arcs:
            self._set_up(arc, is_up)
            undo_by(self._set_up, arc, not is_up)

    def _set_up(self, arc: str, is_up: bool) -> None:
        for root in self._nearest.set_up(self._arcs[arc], is_up):
            self._hops.pop(self._names[root], None)
            self._distances_ns.pop(self._names[root], None)

    def hops(self, root: str) -> Mapping[str, str]:
        """Return the neighbour to which each switch sends what is meant for a switch; not to be changed.

        The same object as before where nothing has changed.
        """
        hops = self._hops.get(root)
        if hops is None:
            steps = zip(self._names, self._nearest.towards(self._nodes[root]), strict=True)
            hops = {switch: self._heads[arc] for switch, arc in steps if arc is not None}
            self._hops[root] = hops
        return hops

    def distances_ns(self, root: str) -> Mapping[str, int]:
        """Return the delay from each switch to one, where there is a way, in whole nanoseconds."""
        known = self._distances_ns.get(root)
        if known is None:
            hops, known = self.hops(root), {root: 0}
            for start in hops:
                way = [start]
                while way[-1] not in known:
                    way.append(hops[way[-1]])
                for node in way[-2::-1]:
                    known[node] = self._delays_ns[node, hops[node]] + known[hops[node]]
            self._distances_ns[root] = known
        return known

    def path(self, start: str, end: str) -> tuple[str, ...] | None:
        """Return the switches from one to another; None where there is no way."""
        hops, nodes = self.hops(end), [start]
        while nodes[-1] != end:
            following = hops.get(nodes[-1])
            if following is None:
                return None
            nodes.append(following)
        return tuple(nodes)
