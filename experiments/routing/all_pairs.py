"""A whole traffic matrix: one demand between each ordered pair of nodes, by gravity."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gomr import Demand, DemandColumns
from gomr.demands import gravity
from gomr.errors import InvalidProblem

ALL_PAIRS = "all-pairs"


class AllPairs:
    """The demands between all pairs of at least two nodes, in their order (InvalidProblem: there are fewer).

    The seed is of the masses of the nodes (`gomr.demands.gravity`); the same one gives the same demands on
    every machine.
    """

    def __init__(self, nodes: Sequence[str], seed: int) -> None:
        if len(nodes) < 2:
            raise InvalidProblem("demands", f"flows need two nodes to run between, not {len(nodes)}")
        self._nodes = tuple(nodes)
        self._rng = random.Random(seed)
        self._rate_of = gravity(self._nodes, self._rng)

    def flows(self) -> DemandColumns:
        """Return the flows `a->b`, those of one source after the other."""
        rates = [[self._rate_of(a, b) for b in self._nodes] for a in self._nodes]
        return DemandColumns.from_matrix(self._nodes, rates)

    def flow(self, name: str) -> Demand:
        """Return one more flow, between any pair."""
        source, destination = self._rng.sample(self._nodes, 2)
        return Demand(name, source, destination, self._rate_of(source, destination))
