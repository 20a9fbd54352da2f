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
        self._ends = [(arc.tail, arc.head) for arc in arcs.values()]
        # Whole nanoseconds: sums of floats would make ties depend on the order of addition.
        self._nearest = LeastDelayTrees(
            len(self._names),
            [
                (self._nodes[arc.tail], self._nodes[arc.head], round(arc.delay_s * 1e9))
                for arc in arcs.values()
            ],
        )
        self._delays_ns = {(arc.tail, arc.head): round(arc.delay_s * 1e9) for arc in arcs.values()}
        self._up: set[str] = set()
        self._changes = 0  # of the arcs that are up
        self._hops: dict[str, dict[str, str]] = {}
        self._distances: dict[str, dict[str, tuple[int, int]]] = {}
        self._nearer: dict[str, tuple[int, Mapping[str, tuple[str, ...]]]] = {}  # by the number of changes

    def set_up(self, arc: str, is_up: bool) -> None:
        """Note that an arc came up or went down; of other arcs than those between switches nothing."""
        if arc in self._arcs:
            self._set_up(arc, is_up)
            undo_by(self._set_up, arc, not is_up)

    def _set_up(self, arc: str, is_up: bool) -> None:
        (self._up.add if is_up else self._up.discard)(arc)
        self._changes += 1
        for root in self._nearest.set_up(self._arcs[arc], is_up):
            self._hops.pop(self._names[root], None)
            self._distances.pop(self._names[root], None)

    def hops(self, root: str) -> Mapping[str, str]:
        """Return the neighbour to which each switch sends what is meant for a switch; not to be changed.

        The same object as before where nothing has changed.
        """
        hops = self._hops.get(root)
        if hops is None:
            steps = zip(self._names, self._nearest.towards(self._nodes[root]), strict=True)
            hops = {switch: self._ends[arc][1] for switch, arc in steps if arc is not None}
            self._hops[root] = hops
        return hops

    def distances(self, root: str) -> Mapping[str, tuple[int, int]]:
        """Return how far each switch is from one, where there is a way: whole nanoseconds, then links."""
        known = self._distances.get(root)
        if known is None:
            hops, known = self.hops(root), {root: (0, 0)}
            for start in hops:
                way = [start]
                while way[-1] not in known:
                    way.append(hops[way[-1]])
                for node in way[-2::-1]:
                    rest_ns, links = known[hops[node]]
                    known[node] = self._delays_ns[node, hops[node]] + rest_ns, links + 1
            self._distances[root] = known
        return known

    def nearer(self, root: str) -> Mapping[str, tuple[str, ...]]:
        """Return all neighbours of each switch that are on paths of least delay to one, by their names.

        Paths of different numbers of links may be equal. Every step brings a packet nearer, whichever
        neighbours it takes. The same object as before where nothing has changed.
        """
        changes, nearer = self._nearer.get(root, (-1, {}))
        if changes != self._changes:
            computed = self._find_nearer(self.distances(root))
            nearer = nearer if computed == nearer else computed
            self._nearer[root] = self._changes, nearer
        return nearer

    def _find_nearer(self, distances: Mapping[str, tuple[int, int]]) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for tail, head in sorted(self._ends[self._arcs[arc]] for arc in self._up):
            if head in distances and distances[head] < distances[tail]:
                through_head_ns = distances[head][0] + self._delays_ns[tail, head]
                if through_head_ns == distances[tail][0]:
                    found.setdefault(tail, []).append(head)
        return {node: tuple(heads) for node, heads in found.items()}

    def path(self, start: str, end: str) -> tuple[str, ...] | None:
        """Return the switches from one to another; None where there is no way."""
        hops, nodes = self.hops(end), [start]
        while nodes[-1] != end:
            following = hops.get(nodes[-1])
            if following is None:
                return None
            nodes.append(following)
        return tuple(nodes)
