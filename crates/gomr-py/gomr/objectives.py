"""The objectives by name, and what each maximises first.

README.md of the folder has the formulas and what each does to a congested network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gomr.problem import Demand

OBJECTIVES: Mapping[str, str] = {
    "max_throughput_min_delay": "admit as much as possible, then keep the mean delay lowest",
    "fair": "give every flow a part of its request before any gets all, then keep the mean delay lowest",
    "max_min": "no flow gets more at the cost of one that has less, then keep the mean delay lowest",
    "min_max_utilisation": "admit as much as possible, keep the fullest link emptiest, then the delay lowest",
    "even_split": "max_throughput_min_delay, then spread each flow evenly over its paths",
}
"""One line on each objective, by name; README.md has the formulas."""

SEGMENTS = 8
"""Parts of a request that `fair` values differently."""


def worths(demand: Demand, objective: str) -> list[tuple[float, float]]:
    """Return the parts of a demand: what a bit/s is worth in the first objective, and the part's rate.

    The parts of `fair` are worth the slopes of the logarithm, 1, 1/2, 1/3 ... of the demand's weight, so it
    is proportional fairness (F. P. Kelly, European Transactions on Telecommunications 8, 1997) in steps.
    """
    if objective != "fair":
        return [(1.0, demand.rate_bps)]
    return [(demand.weight / (s + 1), demand.rate_bps / SEGMENTS) for s in range(SEGMENTS)]


def value_bps(demands: Iterable[Demand], objective: str, admitted_bps: Mapping[str, float]) -> float:
    """Return the first objective of the rates admitted for the demands."""
    if objective != "fair":
        return math.fsum([min(admitted_bps[demand.id], demand.rate_bps) for demand in demands])
    parts = []
    for demand in demands:
        left = admitted_bps[demand.id]
        for worth, rate_bps in worths(demand, objective):
            parts.append(worth * min(left, rate_bps))
            left = max(0.0, left - rate_bps)
    return math.fsum(parts)
