"""Max-min fair rates by Newton's method on the largest throughput.

All demands rise together to min(r_d, w_d t), until the largest throughput falls short of their sum. The
shortfall is convex in t, and the prices of each throughput give its slope, so Newton's method from the right
meets the largest t in finitely many steps. There the prices form a tight cut: demands in it cannot rise and
stop; the rest rises on (D. Nace and M. Pioro, "Max-Min Fairness and Its Applications to Routing and
Load-Balancing in Communication Networks: A Tutorial", IEEE Communications Surveys 10(4), 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gomr.engines.answer import Cut
from gomr.engines.time_budget import TimeBudget
from gomr.problem import Demand

_MOST_STEPS = 200
_FITS = 1e-13
"""What falls short by less than this share is rounding."""
_SPREAD = 1e3
"""Requests per weight that differ by less than this factor rise in one search."""
_NO_SHARE = 1e-9
"""A demand whose path costs less than this is not in a cut."""


@dataclass(frozen=True)
class Throughput:
    """The largest throughput under some requests.

    Attributes:
        bound_bps: What it cannot exceed.
        room_bps: Sum over the edges of capacity times price.
        share: The price of each demand's cheapest path, at most 1, by id.
        prices: The price of each edge, by id.
    """

    bound_bps: float
    room_bps: float
    share: Mapping[str, float]
    prices: Mapping[str, float]


Measure = Callable[[Mapping[str, float]], Throughput]
"""The largest throughput when the demands ask for these rates (bit/s, by id)."""


def fill(
    demands: Sequence[Demand], measure: Measure, budget: TimeBudget
) -> tuple[dict[str, float], tuple[Cut, ...]]:
    """Return the max-min fair rate of each demand, and what stops those that get less than they ask for.

    Raises:
        SolverError: Rounding defeats the search.
    """
    rates = {demand.id: 0.0 for demand in demands if demand.rate_bps == 0}
    cuts = []
    while len(rates) < len(demands):
        budget.learn(settled_demands=len(rates))
        level, cut = _highest_level(demands, rates, measure, budget)
        stopped = []
        for demand in demands:
            if demand.id in rates:
                continue
            # As the level was made of it: weight times level may be a hair below the request.
            at_request = demand.rate_bps / demand.weight <= level
            in_cut = cut is not None and cut.share[demand.id] > _NO_SHARE
            if at_request or in_cut:
                reached = demand.rate_bps if at_request else demand.weight * level
                rates[demand.id] = min(demand.rate_bps, reached)
                stopped.append(demand.id)
        if not stopped:
            raise budget.failure("max_min found no bottleneck")
        if cut is not None:
            cuts.append(Cut(cut.prices, tuple(stopped)))
    return rates, tuple(cuts)


def _highest_level(
    demands: Sequence[Demand], rates: Mapping[str, float], measure: Measure, budget: TimeBudget
) -> tuple[float, Throughput | None]:
    """Return the largest level that all demands without a rate can reach, and what stops it."""
    levels = [demand.rate_bps / demand.weight for demand in demands if demand.id not in rates]
    # What the smallest falls short of must not be lost in the sum of far larger ones.
    level = max(level for level in levels if level <= _SPREAD * min(levels))
    cut = None
    for _ in range(_MOST_STEPS):
        asked = {
            demand.id: rates.get(demand.id, min(demand.rate_bps, demand.weight * level)) for demand in demands
        }
        total_bps = math.fsum(asked.values())
        measured = measure(asked)
        if total_bps - measured.bound_bps <= _FITS * total_bps:
            return level, cut
        cut = measured
        lower = _root(demands, rates, measured, level)
        if lower >= level * (1 - 1e-13):
            return min(lower, level), cut
        level = lower
    raise budget.failure("max_min does not settle")


def _root(demands: Sequence[Demand], rates: Mapping[str, float], cut: Throughput, level: float) -> float:
    """Return the largest t up to `level` at which the demands fit into the cut."""
    left = cut.room_bps
    slope = 0.0
    steps = []
    for demand in demands:
        share = cut.share[demand.id]
        if demand.id in rates:
            left -= share * rates[demand.id]
        elif share > 0:
            slope += share * demand.weight
            steps.append((demand.rate_bps / demand.weight, share * demand.weight))
    t = 0.0
    for until, weight in sorted(steps):
        if slope > 0 and t + left / slope <= until:
            return min(max(t + left / slope, 0.0), level)
        left -= slope * (until - t)
        t = until
        slope -= weight
    return level
