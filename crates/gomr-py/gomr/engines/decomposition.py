"""Paths out of arc flows: what a source sends over each edge, taken apart into rates on paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gomr.problem import Demand, Edge, Path

FLOW_ROUNDING = 1e-13
"""Flow at or below this is rounding (in units of the problem's scale)."""


def decompose(
    flow: Mapping[Edge, float], admitted: Iterable[tuple[Demand, float]]
) -> dict[str, list[tuple[Path, float]]]:
    """Take the flow of one source apart into paths.

    Each demand, in turn, follows the fullest edges back to the source and takes as much as the path's
    smallest flow, until it has its rate. Every such step leaves a flow that serves the rest, and empties an
    edge or serves a demand. Cycles reach no destination: they are taken out where one is met.

    Args:
        flow: What the source sends over each edge.
        admitted: Demands of that source, with the rate admitted for each.

    Returns:
        Paths and rates by demand id.
    """
    entering = _ResidualFlow(flow)
    paths: dict[str, list[tuple[Path, float]]] = {}
    for demand, wanted in admitted:
        paths[demand.id] = []
        while wanted > 0 and (path := entering.path(demand)):
            rate = entering.take(path, wanted)
            wanted -= rate
            paths[demand.id].append((tuple(path), rate))
    return paths


class _ResidualFlow:
    """What is left of a flow, by the node that each edge leads to."""

    def __init__(self, flow: Mapping[Edge, float]) -> None:
        self._left: dict[str, dict[Edge, float]] = defaultdict(dict)
        for edge, rate in flow.items():
            if rate > FLOW_ROUNDING:
                self._left[edge.head][edge] = rate

    def path(self, demand: Demand) -> list[Edge]:
        """Return a path with flow on all of it; empty where there is none."""
        path: list[Edge] = []
        place = {demand.destination: 0}
        node = demand.destination
        while node != demand.source:
            own = self._left[node]
            if not own:
                if not path:
                    return []
                self._forget(path.pop())  # rounding that nothing feeds
                node = path[-1].tail if path else demand.destination
                continue
            path.append(max(own, key=own.__getitem__))
            node = path[-1].tail
            if place.get(node, len(path)) < len(path):
                self.take(path[place[node] :])
                del path[place[node] :]
            place[node] = len(path)
        return path[::-1]

    def take(self, edges: list[Edge], most: float = float("inf")) -> float:
        """Take as much from all of these edges as there is, up to `most`; return it."""
        rate = min(most, *(self._left[edge.head][edge] for edge in edges))
        for edge in edges:
            self._left[edge.head][edge] -= rate
            if self._left[edge.head][edge] <= FLOW_ROUNDING:
                self._forget(edge)
        return rate

    def _forget(self, edge: Edge) -> None:
        del self._left[edge.head][edge]
