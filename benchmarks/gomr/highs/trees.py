"""Shortest paths from many nodes at once, in numpy: Bellman and Ford's algorithm, one column per source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Trees:
    """Shortest paths from some sources.

    Attributes:
        row: The row of each source in the arrays.
        distance: Of each node from each source; infinite where no path leads.
        last: The last edge of the path to each node; -1 where there is none.
        tails: Where each edge begins.
    """

    row: dict[int, int]
    distance: Numbers
    last: Indices
    tails: Indices

    def path(self, source: int, node: int) -> list[int]:
        """Return the edges of the path to a node that can be reached."""
        row = self.row[source]
        edges: list[int] = []
        while node != source:
            edges.append(int(self.last[row, node]))
            node = int(self.tails[edges[-1]])
        return edges[::-1]


class Relaxation:
    """Edges sorted by where they end, so that one pass finds the best edge into every node."""

    def __init__(self, nodes: int, tails: Indices, heads: Indices) -> None:
        self._nodes = nodes
        self._tails = tails
        self._order = np.argsort(heads, kind="stable")
        self._entered, self._first, self._segment = np.unique(
            heads[self._order], return_index=True, return_inverse=True
        )

    def trees(self, sources: list[int], lengths: Numbers) -> Trees:
        """Return the shortest paths from `sources`; lengths are at least 0, infinite ones close an edge."""
        distance = np.full((len(sources), self._nodes), np.inf)
        distance[np.arange(len(sources)), sources] = 0.0
        last = np.full(distance.shape, -1, dtype=np.int64)
        lengths = lengths[self._order]
        moving = np.arange(len(sources))
        for _ in range(self._nodes):
            through = distance[moving][:, self._tails[self._order]] + lengths
            best = np.minimum.reduceat(through, self._first, axis=1)
            better = best < distance[moving][:, self._entered]
            still = better.any(axis=1)
            if not still.any():
                break
            moving, through, best, better = moving[still], through[still], best[still], better[still]
            # The first of the edges into each node that reach its best.
            places = np.where(through == best[:, self._segment], np.arange(len(lengths)), len(lengths))
            edges = self._order[np.minimum.reduceat(places, self._first, axis=1).clip(max=len(lengths) - 1)]
            rows, entered = np.nonzero(better)
            distance[moving[rows], self._entered[entered]] = best[rows, entered]
            last[moving[rows], self._entered[entered]] = edges[rows, entered]
        return Trees({source: row for row, source in enumerate(sources)}, distance, last, self._tails)
