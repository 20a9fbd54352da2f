"""Paths out of arc flows: what a source sends over each edge, taken apart into rates on paths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gomr.paths.finder import PathFinder
from gomr.problem import Demand, Edge, Path

NEGLIGIBLE = 1e-13
"""Flow at or below this is rounding (in units of the problem's scale)."""


def decompose(
    flow: Mapping[Edge, float],
    admitted: Iterable[tuple[Demand, float]],
    finder: PathFinder,
) -> dict[str, list[tuple[Path, float]]]:
    """Take the flow of one source apart into paths, the one with the shortest delay first.

    Each demand, in turn, takes the path of shortest delay that still has flow, as much as the path's smallest
    flow, until it has its rate. Every such step leaves a flow that serves the rest. Cycles reach no
    destination: they stay behind and are dropped with the rounding.

    Args:
        flow: What the source sends over each edge.
        admitted: Demands of that source, with the rate admitted for each.
        finder: Finds paths over the edges.

    Returns:
        Paths and rates by demand id.
    """
    left = {edge: rate for edge, rate in flow.items() if rate > NEGLIGIBLE}
    paths: dict[str, list[tuple[Path, float]]] = {}
    for demand, wanted in admitted:
        taken: list[tuple[Path, float]] = []
        while wanted > 0:
            found = finder.cheapest(demand, lambda edge: edge.delay_s if edge in left else math.inf)
            if found is None:
                break
            _, path = found
            rate = min(wanted, *(left[edge] for edge in path))
            wanted -= rate
            taken.append((path, rate))
            for edge in path:
                left[edge] -= rate
                if left[edge] <= NEGLIGIBLE:
                    del left[edge]
        paths[demand.id] = taken
    return paths
