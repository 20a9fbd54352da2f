"""A linear programme in HiGHS that grows, and is minimised for one objective after another."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from controller.errors import SolverError

Numbers = NDArray[np.float64]

_TOLERANCE = 1e-10
"""HiGHS's smallest, for feasibility and for optimality."""
_ZERO_DUAL = 1e-9
"""A dual value up to this counts as 0. Objectives have coefficients around 1."""


class Program:
    """A linear programme over variables of at least 0, in a solver that keeps its basis.

    Attributes:
        engine: Name of the engine it serves, for errors.
    """

    def __init__(
        self, engine: str, time_limit_s: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Start empty.

        Args:
            engine: Name of the engine it serves, for errors.
            time_limit_s: Seconds for all solves together; None for no limit.
            clock: Seconds.
        """
        self.engine = engine
        self._limit_s = time_limit_s
        self._spent_s = 0.0
        self._solves = 0
        self._clock = clock
        self._highs: Any = highspy.Highs()
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
        ):
            self._highs.setOptionValue(option, setting)

    def variables(self, count: int, upper: float | Numbers) -> range:
        """Add variables between 0 and `upper`; return their numbers."""
        first = self._highs.getNumCol()
        self._highs.addVars(count, np.zeros(count), np.broadcast_to(np.asarray(upper, float), count).copy())
        return range(first, first + count)

    def columns(self, costs: Sequence[float], entries: Sequence[Mapping[int, float]]) -> range:
        """Add variables of at least 0 with their factors in constraints; return their numbers."""
        first = self._highs.getNumCol()
        count = len(costs)
        starts = np.cumsum([0, *map(len, entries)])[:-1].astype(np.int32)
        rows = np.array([row for own in entries for row in own], dtype=np.int32)
        factors = np.array([factor for own in entries for factor in own.values()], dtype=float)
        lower, upper = np.zeros(count), np.full(count, math.inf)
        self._highs.addCols(count, np.asarray(costs, float), lower, upper, len(rows), starts, rows, factors)
        return range(first, first + count)

    def row(self, terms: Mapping[int, float], *, upper: float, lower: float = -math.inf) -> int:
        """Add a constraint; return its number."""
        self._highs.addRow(lower, upper, len(terms), list(terms), list(terms.values()))
        return int(self._highs.getNumRow()) - 1

    def set_factor(self, row: int, variable: int, factor: float) -> None:
        """Give a variable a factor in a constraint, in place of the one it may have."""
        self._highs.changeCoeff(row, variable, factor)

    def bound_variable(self, variable: int, lower: float, upper: float) -> None:
        """Give a variable other bounds."""
        self._highs.changeColBounds(variable, lower, upper)

    def bound_row(self, row: int, lower: float, upper: float) -> None:
        """Give a constraint other bounds."""
        self._highs.changeRowBounds(row, lower, upper)

    def expect_new_costs(self) -> None:
        """Solve by the primal simplex from now on: the last solution stays feasible when costs change."""
        self._highs.setOptionValue("simplex_strategy", 4)

    def minimise(self, costs: Mapping[int, float]) -> None:
        """Solve for other costs; variables that are not named cost nothing.

        Raises:
            SolverError: HiGHS found no optimum or the time is up.
        """
        every = np.zeros(self._highs.getNumCol())
        every[list(costs)] = list(costs.values())
        self._highs.changeColsCost(len(every), np.arange(len(every), dtype=np.int32), every)
        self.solve()

    def solve(self) -> None:
        """Solve again for the same costs, and those of columns that have come since.

        Raises:
            SolverError: HiGHS found no optimum or the time is up.
        """
        if self._limit_s is not None:
            if self._spent_s >= self._limit_s:
                raise SolverError(
                    self.engine,
                    f"the time limit of {self._limit_s:g} s is used up before the optimum",
                    self._state(),
                )
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + self._limit_s - self._spent_s)
        started = self._clock()
        self._highs.run()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kUnknown:
            # The basis at hand defeats it now and then; without one it begins anew.
            self._highs.clearSolver()
            self._highs.run()
        self._spent_s += self._clock() - started
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            state = self._highs.modelStatusToString(status).lower()
            raise SolverError(self.engine, f"HiGHS found no optimum: {state}", self._state())
        self._solves += 1

    def _state(self) -> dict[str, float]:
        known: dict[str, float] = {"solves": self._solves, "columns": int(self._highs.getNumCol())}
        if self._solves:
            known["objective"] = float(self._highs.getInfo().objective_function_value)
        return known

    def spend(self, seconds: float) -> None:
        """Count time that the caller took towards the limit."""
        self._spent_s += seconds

    def values(self) -> Numbers:
        """Return the variables of the last solution, rounding below 0 taken away."""
        found: Numbers = np.array(self._highs.getSolution().col_value)
        return np.maximum(found, 0.0)

    def duals(self) -> Numbers:
        """Return how much the last optimum would rise per unit of each constraint's bound."""
        return np.array(self._highs.getSolution().row_dual)

    def keep_optimum(self) -> None:
        """Admit from now on only solutions that are optimal for the costs just minimised.

        By complementary slackness these are exactly the solutions in which every variable with a reduced cost
        stays at its bound and every constraint with a dual value stays tight.
        """
        solution, model = self._highs.getSolution(), self._highs.getLp()
        for variable, reduced in enumerate(solution.col_dual):
            if abs(reduced) > _ZERO_DUAL:
                low, upper = model.col_lower_[variable], model.col_upper_[variable]
                at = low if reduced > 0 else upper
                if math.isfinite(at):
                    self.bound_variable(variable, at, at)
        for row, price in enumerate(solution.row_dual):
            if abs(price) > _ZERO_DUAL:
                at = model.row_lower_[row] if price > 0 else model.row_upper_[row]
                if math.isfinite(at):
                    self.bound_row(row, at, at)
