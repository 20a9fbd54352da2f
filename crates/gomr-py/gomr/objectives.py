"""The objectives: what each maximises first, and what else is asked of it.

README.md of the folder has the formulas and what each does to a congested network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gomr.errors import InvalidProblem
from gomr.problem import Demand

SEGMENTS = 8
"""Parts of a request that `fair` values differently."""


@dataclass(frozen=True)
class Objective:
    """What an allocation is to be best at.

    Attributes:
        name: Its name.
        summary: One line on it.
        by_parts: The parts of a request are worth less and less, so that every demand gets some first.
        by_level: Rates per weight rise together until something stops them.
        evens_load: Of all optima the one whose fullest edge is emptiest is chosen.
        evens_split: Each demand is then spread evenly over its paths.
    """

    name: str
    summary: str
    by_parts: bool = False
    by_level: bool = False
    evens_load: bool = False
    evens_split: bool = False

    @property
    def is_fair(self) -> bool:
        """Whether it gives up throughput for fairness."""
        return self.by_parts or self.by_level

    @property
    def is_plain(self) -> bool:
        """Whether it is the largest throughput at the least delay, and nothing else."""
        return not (self.is_fair or self.evens_load or self.evens_split)

    @property
    def solved_as(self) -> str:
        """The objective that the compiled engine solves for: an even split is made of its answer."""
        return PLAIN.name if self.evens_split else self.name

    def worths(self, demand: Demand) -> list[tuple[float, float]]:
        """Return the parts of a demand: what a bit/s is worth in the first objective, and the part's rate.

        The parts of `fair` are worth the slopes of the logarithm, 1, 1/2, 1/3 ... of the demand's weight, so
        it is proportional fairness (F. P. Kelly, European Transactions on Telecommunications 8, 1997) in
        steps.
        """
        if not self.by_parts:
            return [(1.0, demand.rate_bps)]
        return [(demand.weight / (part + 1), demand.rate_bps / SEGMENTS) for part in range(SEGMENTS)]

    def value_bps(self, demands: Iterable[Demand], admitted_bps: Mapping[str, float]) -> float:
        """Return the first objective of the rates admitted for the demands."""
        parts = []
        for demand in demands:
            left = admitted_bps[demand.id]
            for worth, rate_bps in self.worths(demand):
                parts.append(worth * min(left, rate_bps))
                left = max(0.0, left - rate_bps)
        return math.fsum(parts)


PLAIN = Objective("max_throughput_min_delay", "admit as much as possible, then keep the mean delay lowest")

OBJECTIVES: Mapping[str, Objective] = {
    objective.name: objective
    for objective in (
        PLAIN,
        Objective(
            "fair",
            "give every flow a part of its request before any gets all, then keep the mean delay lowest",
            by_parts=True,
        ),
        Objective(
            "max_min",
            "no flow gets more at the cost of one that has less, then keep the mean delay lowest",
            by_level=True,
        ),
        Objective(
            "min_max_utilisation",
            "admit as much as possible, keep the fullest link emptiest, then the delay lowest",
            evens_load=True,
        ),
        Objective(
            "even_split",
            "max_throughput_min_delay, then spread each flow evenly over its paths",
            evens_split=True,
        ),
    )
}
"""The objectives, by name; README.md has the formulas."""


def objective_of(name: str) -> Objective:
    """Return the objective of a name; InvalidProblem where there is none."""
    if name not in OBJECTIVES:
        raise InvalidProblem("objective", f"{name!r} is not one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
