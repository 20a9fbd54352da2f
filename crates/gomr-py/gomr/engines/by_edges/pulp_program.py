"""A linear programme in PuLP.

PuLP states it, HiGHS solves it in this process: no solver is started, nothing passes through files, and the
answers are exact to rounding. (CBC, PuLP's default, reads and writes text files, which costs a process start
and leaves errors of 1e-5 of the rates.)
"""

from __future__ import annotations

from typing import Any

import highspy
import pulp

from gomr.engines.by_edges.program import Row, Terms, Variable, summed
from gomr.engines.refinement import refined
from gomr.engines.time_budget import TimeBudget

_TOLERANCE = 1e-10
"""HiGHS's smallest, for feasibility and for optimality."""
_ZERO_DUAL = 1e-9
"""A dual value up to this counts as 0. Objectives have coefficients around 1."""


class PulpProgram:
    """A `Program` in PuLP."""

    def __init__(self, budget: TimeBudget) -> None:
        self._lp = pulp.LpProblem("gomr", pulp.LpMinimize)
        self._variables: list[Variable] = []
        self._rows: list[Row] = []
        self._budget = budget

    def variable(self, upper: float | None = None) -> Variable:
        """Add a variable."""
        # PuLP orders variables by name: padded numbers keep the order in which they are made.
        variable = self._lp.add_variable(f"x{len(self._variables):07}", 0, upper)
        self._variables.append(variable)
        return variable

    def row(self, terms: Terms, right: float, *, equal: bool = False) -> Row:
        """Add a constraint."""
        sense = pulp.LpConstraintEQ if equal else pulp.LpConstraintLE
        row = pulp.LpConstraint(_expression(terms), sense, f"r{len(self._rows):07}", right)
        self._lp.addConstraint(row)
        self._rows.append(row)
        return row

    def minimise(self, terms: Terms, *, refine: bool = False) -> float:
        """Solve for an objective; return the optimum."""
        self._lp.setObjective(_expression(terms))
        solver = pulp.HiGHS(
            msg=False,
            timeLimit=self._budget.left_s(),
            primal_feasibility_tolerance=_TOLERANCE,
            dual_feasibility_tolerance=_TOLERANCE,
            **({"presolve": "off"} if refine else {}),
        )
        try:
            self._lp.solve(solver)
        except pulp.PulpError as error:
            raise self._budget.failure(f"PuLP could not run HiGHS: {error}") from error
        # PuLP reports a time limit as an optimal status with a merely feasible solution: look at both.
        if (self._lp.status, self._lp.sol_status) != (pulp.LpStatusOptimal, pulp.LpSolutionOptimal):
            highs = self._lp.solverModel
            status = highs.getModelStatus()
            if status == highspy.HighsModelStatus.kTimeLimit:
                raise self._budget.out_of_time()
            state = highs.modelStatusToString(status)
            raise self._budget.failure(f"HiGHS found no optimum: {state.lower()}")
        if refine:
            values, duals = refined(self._lp.solverModel)
            for variable, value in zip(self._lp.variables(), values, strict=True):
                variable.varValue = float(value)
            for row, price in zip(self._rows, duals, strict=True):
                row.pi = float(price)
        objective = float(pulp.value(self._lp.objective) or 0.0)
        self._budget.solved(objective=objective)
        return objective

    def keep_optimum(self) -> None:
        """Admit only solutions that are optimal for the objective just minimised."""
        for variable in self._variables:
            if variable.dj is not None and abs(variable.dj) > _ZERO_DUAL:
                low, upper = variable.lowBound, variable.upBound
                at_upper = upper is not None and variable.varValue - low > upper - variable.varValue
                variable.lowBound = variable.upBound = upper if at_upper else low
        for row in self._rows:
            if row.pi is not None and abs(row.pi) > _ZERO_DUAL:
                row.sense = pulp.LpConstraintEQ

    def value(self, variable: Variable) -> float:
        """Return a variable's value in the last solution; 0 if it occurred nowhere."""
        return max(0.0, float(variable.varValue or 0.0))

    def dual(self, row: Row) -> float:
        """Return a constraint's dual value."""
        return float(row.pi or 0.0)


def _expression(terms: Terms) -> Any:
    return pulp.LpAffineExpression(summed(terms))
