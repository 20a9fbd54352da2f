"""A linear programme in HiGHS at once: PuLP would take most of the time for a hundred thousand variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gomr.engines.by_edges.program import Terms, summed
from gomr.engines.linear_program import LinearProgram, Numbers
from gomr.engines.time_budget import TimeBudget


class HighsProgram:
    """A `Program` whose variables and rows are numbers."""

    def __init__(self, budget: TimeBudget, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Start empty, with options of HiGHS."""
        self._program = LinearProgram(budget, options)
        self._variables = self._rows = 0
        self._new_variables: list[float] = []
        self._new_rows: list[tuple[dict[int, float], float, float]] = []
        self._values: Numbers
        self._duals: Numbers

    def variable(self, upper: float | None = None) -> int:
        """Add a variable."""
        self._new_variables.append(math.inf if upper is None else upper)
        self._variables += 1
        return self._variables - 1

    def row(self, terms: Terms, right: float, *, equal: bool = False) -> int:
        """Add a constraint."""
        self._new_rows.append((summed(terms), right if equal else -math.inf, right))
        self._rows += 1
        return self._rows - 1

    def stated(self, terms: Terms) -> Any:
        """Return the programme of an objective as HiGHS has it (a `HighsLp`)."""
        self._state()
        return self._program.stated(summed(terms))

    def _state(self) -> None:
        self._program.variables(len(self._new_variables), self._new_variables)
        self._program.rows(self._new_rows)
        self._new_variables, self._new_rows = [], []

    def minimise(self, terms: Terms, *, refine: bool = False) -> float:
        """Solve for an objective; return the optimum."""
        self._state()
        costs = summed(terms)
        self._program.minimise(costs)
        if refine:
            self._program.refine()
        self._values, self._duals = self._program.values(), self._program.duals()
        return math.fsum(cost * self.value(variable) for variable, cost in costs.items())

    def keep_optimum(self) -> None:
        """Admit only solutions that are optimal for the objective just minimised."""
        self._program.keep_optimum()

    def keep_unpriced(self, options: Mapping[str, Any]) -> None:
        """Take further options, and keep only variables that some optimum uses, by an interior solution."""
        self._program.keep_unpriced(options)

    def value(self, variable: int) -> float:
        """Return a variable's value in the last solution; 0 if it came since."""
        return float(self._values[variable]) if variable < len(self._values) else 0.0

    def dual(self, row: int) -> float:
        """Return a constraint's dual value."""
        return float(self._duals[row]) if row < len(self._duals) else 0.0
