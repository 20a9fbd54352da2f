"""A linear programme in HiGHS that grows, and is minimised for one objective after another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from gomr.engines.refinement import refined
from gomr.engines.time_budget import TimeBudget

Numbers = NDArray[np.float64]

_TOLERANCE = 1e-10
"""HiGHS's smallest, for feasibility and for optimality."""
_INTEGER_TOLERANCE = 1e-7
"""Tolerance of programmes with integers: at 1e-9 HiGHS cuts optima off in its presolve (1.15)."""
_INTEGER_GAP = 1e-9
"""An integer solution this close to its bound, relative, counts as optimal."""
_OPTIMAL_STATUSES = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kModelEmpty,
    highspy.HighsModelStatus.kSolutionLimit,
)
_ZERO_DUAL = 1e-9
"""A dual value up to this counts as 0. Objectives have coefficients around 1."""

_PRICED, _FAR_ABOVE = 1e-6, 1e3
"""A reduced cost above the first and the second times its variable's value is one at every optimum."""


class LinearProgram:
    """A linear programme over variables of at least 0, in a solver that keeps its basis.

    Attributes:
        budget: The time it may take, and what is known for errors.
    """

    def __init__(self, budget: TimeBudget, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Start empty, with further options of HiGHS."""
        self.budget = budget
        self._refined: tuple[Numbers, Numbers] | None = None
        self._highs: Any = highspy.Highs()
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
            *options.items(),
        ):
            self._highs.setOptionValue(option, setting)

    def variables(self, count: int, upper: float | Sequence[float] | Numbers) -> range:
        """Add variables between 0 and `upper`; return their numbers."""
        first = self._highs.getNumCol()
        self._highs.addVars(count, np.zeros(count), np.broadcast_to(np.asarray(upper, float), count).copy())
        return range(first, first + count)

    def binaries(self, count: int) -> range:
        """Add variables that are 0 or 1; return their numbers."""
        self._highs.setOptionValue("mip_abs_gap", 0.0)
        self._highs.setOptionValue("mip_rel_gap", _INTEGER_GAP)
        for option in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
            self._highs.setOptionValue(option, _INTEGER_TOLERANCE)
        every = self.variables(count, 1.0)
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        self._highs.changeColsIntegrality(count, np.array(every, dtype=np.int32), kinds)
        return every

    def set_option(self, name: str, setting: bool | int) -> None:
        """Take an option of HiGHS for the solves that follow."""
        self._highs.setOptionValue(name, setting)

    @property
    def has_solution(self) -> bool:
        """Whether the last solve met a solution."""
        return bool(
            self._highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        )

    @property
    def bound(self) -> float:
        """What the last costs, in a programme with integers, are not below for any solution."""
        info = self._highs.getInfo()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            value = float(info.objective_function_value)
            return value - _INTEGER_GAP * abs(value)
        return float(info.mip_dual_bound) if info.valid else -math.inf

    def columns(self, costs: Sequence[float], entries: Sequence[Mapping[int, float]]) -> range:
        """Add variables of at least 0 with their factors in constraints; return their numbers.

        Raises:
            SolverError: HiGHS refuses them.
        """
        first = self._highs.getNumCol()
        count = len(costs)
        starts = np.cumsum([0, *map(len, entries)])[:-1].astype(np.int32)
        rows = np.array([row for own in entries for row in own], dtype=np.int32)
        factors = np.array([factor for own in entries for factor in own.values()], dtype=float)
        lower, upper = np.zeros(count), np.full(count, math.inf)
        every = np.asarray(costs, float)
        status = self._highs.addCols(count, every, lower, upper, len(rows), starts, rows, factors)
        if status == highspy.HighsStatus.kError:
            raise self.budget.failure("HiGHS refuses factors above 1e15")
        return range(first, first + count)

    def row(self, terms: Mapping[int, float], *, upper: float, lower: float = -math.inf) -> int:
        """Add a constraint; return its number."""
        self._highs.addRow(lower, upper, len(terms), list(terms), list(terms.values()))
        return int(self._highs.getNumRow()) - 1

    def rows(self, rows: Sequence[tuple[Mapping[int, float], float, float]]) -> None:
        """Add constraints: the factors of each, and what it is at least and at most."""
        terms = [own for own, _, _ in rows]
        starts = np.cumsum([0, *map(len, terms)])[:-1].astype(np.int32)
        columns = np.array([column for own in terms for column in own], dtype=np.int32)
        factors = np.array([factor for own in terms for factor in own.values()], dtype=float)
        lower, upper = (np.array([row[at] for row in rows], dtype=float) for at in (1, 2))
        self._highs.addRows(len(rows), lower, upper, len(columns), starts, columns, factors)

    def set_factor(self, row: int, variable: int, factor: float) -> None:
        """Give a variable a factor in a constraint, in place of the one it may have."""
        self._highs.changeCoeff(row, variable, factor)

    def bound_variable(self, variable: int, lower: float, upper: float) -> None:
        """Give a variable other bounds."""
        self._highs.changeColBounds(variable, lower, upper)

    def minimise(self, costs: Mapping[int, float]) -> None:
        """Solve for other costs; variables that are not named cost nothing.

        Raises:
            OutOfTime: The time is up.
            SolverError: HiGHS found no optimum.
        """
        self._set_costs(costs)
        self.solve()

    def stated(self, costs: Mapping[int, float]) -> Any:
        """Take other costs; return the programme as HiGHS has it (a `HighsLp`)."""
        self._set_costs(costs)
        return self._highs.getLp()

    def _set_costs(self, costs: Mapping[int, float]) -> None:
        every = np.zeros(self._highs.getNumCol())
        every[list(costs)] = list(costs.values())
        self._highs.changeColsCost(len(every), np.arange(len(every), dtype=np.int32), every)

    def solve(self) -> None:
        """Solve again for the same costs, and those of columns that have come since.

        Raises:
            OutOfTime: The time is up.
            SolverError: HiGHS found no optimum.
        """
        left_s = self.budget.left_s()
        if left_s is not None:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left_s)
        self._highs.run()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kUnknown:
            # The basis at hand defeats it now and then; without one it starts over.
            self._highs.clearSolver()
            self._highs.run()
        self._refined = None
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise self.budget.out_of_time()
        if status not in _OPTIMAL_STATUSES:
            state = self._highs.modelStatusToString(status).lower()
            raise self.budget.failure(f"HiGHS found no optimum: {state}")
        self.budget.solved(
            columns=int(self._highs.getNumCol()),
            objective=float(self._highs.getInfo().objective_function_value),
        )

    def refine(self) -> None:
        """Correct the last solution beyond the solver's tolerance."""
        self._refined = refined(self._highs)

    def values(self) -> Numbers:
        """Return the variables of the last solution, rounding below 0 taken away."""
        if self._refined is not None:
            values, _ = self._refined
        else:
            values = np.array(self._highs.getSolution().col_value)
        return np.maximum(values, 0.0)

    def duals(self) -> Numbers:
        """Return how much the last optimum would rise per unit of each constraint's bound."""
        if self._refined is not None:
            return self._refined[1]
        return np.array(self._highs.getSolution().row_dual)

    def keep_optimum(self) -> None:
        """Admit from now on only solutions that are optimal for the costs just minimised.

        By complementary slackness these are exactly the solutions in which every variable with a reduced cost
        stays at its bound and every constraint with a dual value stays tight.
        """
        solution, model = self._highs.getSolution(), self._highs.getLp()
        self._highs.changeColsBounds(*_tight(solution.col_dual, model.col_lower_, model.col_upper_))
        self._highs.changeRowsBounds(*_tight(solution.row_dual, model.row_lower_, model.row_upper_))

    def keep_unpriced(self, options: Mapping[str, Any]) -> None:
        """Take further options, and keep at 0 the variables that no optimum uses.

        In an interior solution of an optimum's accuracy these have a reduced cost far above their value, by
        strict complementarity.
        """
        solution = self._highs.getSolution()
        prices, values = np.array(solution.col_dual), np.array(solution.col_value)
        unused = np.flatnonzero(prices > np.maximum(_PRICED, _FAR_ABOVE * values)).astype(np.int32)
        zeros = np.zeros(len(unused))
        self._highs.changeColsBounds(len(unused), unused, zeros, zeros)
        for option, setting in options.items():
            self._highs.setOptionValue(option, setting)


def _tight(
    duals: Sequence[float], lower: Sequence[float], upper: Sequence[float]
) -> tuple[int, NDArray[np.int32], Numbers, Numbers]:
    """Return how many variables or rows every optimum has at a bound, which, and that bound twice."""
    prices = np.array(duals)
    bound = np.where(prices > 0, np.array(lower), np.array(upper))
    at = np.flatnonzero((np.abs(prices) > _ZERO_DUAL) & np.isfinite(bound)).astype(np.int32)
    return len(at), at, bound[at], bound[at]
