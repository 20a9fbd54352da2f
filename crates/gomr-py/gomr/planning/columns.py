"""Linear programmes over all paths of a network: what is known of them grows until no path could gain.

A question states its rows, and of each path which rows it enters. What a path could gain is found by shortest
paths over the duals, so the optimum is that over all paths, known or not (L. R. Ford and D. R. Fulkerson,
Management Science 5, 1958).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from gomr.engines.linear_program import LinearProgram, Numbers
from gomr.engines.time_budget import TimeBudget
from gomr.errors import InvalidProblem
from gomr.paths.finder import Length, PathFinder
from gomr.problem import Demand, Path, Problem

NAME = "planning"
_MIN_GAIN = 1e-9
"""A path that gains less than this share of what its demand is worth is not added."""
_RATE_ROUNDING = 1e-11
"""Rates up to this, in units, are rounding."""


class PathProgram(ABC):
    """A programme whose columns are paths; a question is a subclass that states its rows.

    Attributes:
        problem: The problem.
        program: The programme.
        unit_bps: What its rates count in.
    """

    def __init__(self, problem: Problem, time_limit_s: float | None = None) -> None:
        check_plain(problem.demands)
        self.problem = problem
        self.program = LinearProgram(TimeBudget(NAME, time_limit_s))
        self.unit_bps = problem.unit_bps or 1.0
        self._finder = PathFinder(problem)
        self._known: dict[str, dict[Path, int]] = {demand.id: {} for demand in problem.demands}

    @abstractmethod
    def entry(self, demand: Demand, path: Path) -> Mapping[int, float]:
        """Return the factor of a path's variable in each row."""

    @abstractmethod
    def pricing(self, demand: Demand, duals: Numbers) -> tuple[Length, float]:
        """Return the length of each edge, and what a path has to be shorter than to gain."""

    def cost(self, path: Path) -> float:
        """Return what a path costs besides; it has to be in the lengths of `pricing` too."""
        del path
        return 0.0

    def minimise(self, costs: Mapping[int, float]) -> Numbers:
        """Solve over all paths, for costs of the other variables; return the duals of the rows.

        Raises:
            SolverError: HiGHS failed, or ran out of time.
        """
        while True:
            of_paths = {at: self.cost(path) for own in self._known.values() for path, at in own.items()}
            self.program.minimise({**costs, **of_paths})
            duals = self.program.duals()
            if not sum(self._price(demand, duals) for demand in self.problem.demands):
                return duals

    def cheapest(self, demand: Demand, length: Length) -> tuple[float, Path] | None:
        """Return the shortest path that a demand may take, and its length; None if there is none."""
        return self._finder.cheapest(demand, length)

    def values(self) -> dict[str, list[tuple[Path, float]]]:
        """Return the paths of each demand whose variable is above rounding, and its value."""
        values = self.program.values()
        return {
            name: [(path, float(values[at])) for path, at in own.items() if values[at] > _RATE_ROUNDING]
            for name, own in self._known.items()
        }

    def _price(self, demand: Demand, duals: Numbers) -> bool:
        length, worth = self.pricing(demand, duals)
        found = self.cheapest(demand, length)
        known = self._known[demand.id]
        if found is None or found[1] in known or found[0] >= worth - _MIN_GAIN * max(1.0, abs(worth)):
            return False
        self.add(demand, found[1])
        return True

    def add(self, demand: Demand, path: Path) -> None:
        """Add a path that is not known."""
        (self._known[demand.id][path],) = self.program.columns([0.0], [self.entry(demand, path)])


def check_plain(demands: Sequence[Demand]) -> None:
    """Refuse demands with limits that these programmes do not have.

    Raises:
        InvalidProblem: One has; `field` names it.
    """
    for demand in demands:
        limits = {
            "max_paths": demand.max_paths is not None,
            "disjoint": demand.disjoint is not None,
            "fixed_paths": demand.fixed_paths is not None,
            "ack_ratio": demand.ack_ratio > 0,
            "destination": demand.is_local,
        }
        for name, is_given in limits.items():
            if is_given:
                said = "is the source too" if name == "destination" else "is not known here"
                raise InvalidProblem(f"demands[{demand.id}].{name}", f"{said}; leave it out")


def positive(value: float) -> float:
    """Return a price without the rounding below 0."""
    return max(0.0, float(value))


def gap_of(value: float, bound: float) -> float:
    """Return by what share a value is away from its bound."""
    return abs(bound - value) / max(abs(bound), abs(value)) if bound != value else 0.0
