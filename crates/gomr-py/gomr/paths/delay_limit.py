"""The cheapest path within a delay limit, exactly.

Paths grow by labels of (length, delay). A label that is longer and later than another at its node is dropped,
and so is one that cannot reach the destination in time (I. Dumitrescu and N. Boland, "Improved
Preprocessing, Labeling and Scaling Algorithms for the Weight-Constrained Shortest Path Problem", Networks
42, 2003). The worst case is exponential; the limits of real networks are not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from gomr.paths.graph import Graph, Length, Path
from gomr.problem import Demand, Edge


def cheapest_within(graph: Graph, demand: Demand, length: Length) -> tuple[float, Path] | None:
    """Return the demand's path of least length within its delay limit, and the length; None if none is."""
    limit_s = demand.delay_limit_s
    least = _least_delays(graph, demand, length)
    earliest: dict[str, float] = {}
    count = 0  # settles ties by age, so that paths are never compared
    heap: list[tuple[float, float, int, str, Path]] = [(0.0, 0.0, count, demand.source, ())]
    while heap:
        so_far, delay_s, _, node, path = heapq.heappop(heap)
        if node == demand.destination:
            return so_far, path
        if delay_s >= earliest.get(node, math.inf):
            continue
        earliest[node] = delay_s
        for edge in graph.leaving(node, demand.source):
            later_s = delay_s + edge.delay_s
            further = so_far + length(edge)
            in_time = later_s + least.get(edge.head, math.inf) <= limit_s
            if in_time and math.isfinite(further) and later_s < earliest.get(edge.head, math.inf):
                count += 1
                heapq.heappush(heap, (further, later_s, count, edge.head, (*path, edge)))
    return None


def paths_within(graph: Graph, demand: Demand, most: int) -> list[Path]:
    """Return every path within the demand's delay limit that visits no node twice.

    Raises:
        OverflowError: There are more than `most`.
    """
    least = _least_delays(graph, demand, lambda _: 0.0)
    paths: list[Path] = []

    def extend(node: str, path: Path, delay_s: float, visited: frozenset[str]) -> Iterator[Path]:
        if node == demand.destination:
            yield path
            return
        for edge in graph.leaving(node, demand.source):
            later_s = delay_s + edge.delay_s
            in_time = later_s + least.get(edge.head, math.inf) <= demand.delay_limit_s
            if in_time and edge.head not in visited:
                yield from extend(edge.head, (*path, edge), later_s, visited | {edge.head})

    for path in extend(demand.source, (), 0.0, frozenset({demand.source})):
        if len(paths) == most:
            raise OverflowError(f"more than {most} paths")
        paths.append(path)
    return paths


def _least_delays(graph: Graph, demand: Demand, length: Length) -> dict[str, float]:
    """Return the least delay from each node to the destination over edges with a finite length."""
    entering: dict[str, list[Edge]] = {}
    for edge in graph.reachable_edges(demand.source):
        if math.isfinite(length(edge)):
            entering.setdefault(edge.head, []).append(edge)
    least = {demand.destination: 0.0}
    heap = [(0.0, demand.destination)]
    while heap:
        delay_s, node = heapq.heappop(heap)
        if delay_s > least[node]:
            continue
        for edge in entering.get(node, ()):
            candidate = delay_s + edge.delay_s
            if candidate < least.get(edge.tail, math.inf):
                least[edge.tail] = candidate
                heapq.heappush(heap, (candidate, edge.tail))
    return least
