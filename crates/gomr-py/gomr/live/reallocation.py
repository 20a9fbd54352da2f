"""What a new allocation means for flows that run: which of them move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import is_not

from gomr.allocation import Allocation, PathRate

SAME_RATE = 1e-9
"""Rates of a path that differ by less than this share of the flow's rate count as the same."""


@dataclass(frozen=True)
class Reallocation:
    """How the flows fared that were there before an event and are still, without the one that caused it.

    Attributes:
        rerouted: Flows with another set of paths.
        resized: Flows with the same paths and other rates.
        unchanged: How many have the same paths with the same rates.
        moved_bps: Sum over these flows and all paths of how much the rate differs.
    """

    rerouted: tuple[str, ...]
    resized: tuple[str, ...]
    unchanged: int
    moved_bps: float

    @property
    def moved(self) -> tuple[str, ...]:
        """The flows that are not unchanged."""
        return self.rerouted + self.resized


def reallocation_between(before: Allocation, after: Allocation, own: str | None = None) -> Reallocation:
    """Compare two allocations.

    Args:
        before: The one before the event.
        after: The one after it.
        own: Flow that caused the event, by asking for another rate.
    """
    rerouted: list[str] = []
    resized: list[str] = []
    moved: list[float] = []
    # Most flows keep their paths as they are, and an event must not cost a step for each.
    known = before.paths.get
    differs = map(is_not, map(known, after.paths), after.paths.values())
    others = list(compress(after.paths, differs))
    unchanged = len(after.paths) - len(others) - (own in after.paths and own not in others)
    for name in others:
        old, paths = known(name), after.paths[name]
        if old is None or name == own:
            continue
        if is_same(old, paths):
            unchanged += 1
            continue
        was = {path.edges: path.rate_bps for path in old}
        now = {path.edges: path.rate_bps for path in paths}
        (resized if was.keys() == now.keys() else rerouted).append(name)
        moved += [abs(now.get(path, 0.0) - was.get(path, 0.0)) for path in was.keys() | now.keys()]
    return Reallocation(tuple(rerouted), tuple(resized), unchanged, math.fsum(moved))


def is_same(one: Sequence[PathRate], other: Sequence[PathRate]) -> bool:
    """Return whether a flow has the same paths with the same rates, but for rounding."""
    if len(one) != len(other):
        return False
    rates = {path.edges: path.rate_bps for path in one}
    rounding_bps = SAME_RATE * math.fsum(rates.values())
    return all(
        path.edges in rates and abs(path.rate_bps - rates[path.edges]) <= rounding_bps for path in other
    )
