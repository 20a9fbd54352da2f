"""What a linear programme is stated in.

PuLP is for those who read it (`pulp_program`), HiGHS alone for its speed (`highs_program`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

Variable = Any
"""A variable, as the programme at hand has it."""
Row = Any
"""A constraint."""
Terms = Iterable[tuple[Variable, float]]
"""A linear expression: variables with their coefficients. A variable that comes twice counts twice."""


class Program(Protocol):
    """A linear programme over variables of at least 0 that is minimised for one objective after another."""

    def variable(self, upper: float | None = None) -> Variable:
        """Add a variable between 0 and `upper` (None: no upper limit)."""

    def row(self, terms: Terms, right: float, *, equal: bool = False) -> Row:
        """Add the constraint that `terms` are at most `right`, or equal to it."""

    def minimise(self, terms: Terms, *, refine: bool = False) -> float:
        """Solve for an objective.

        Args:
            terms: The objective.
            refine: Correct the solution beyond the solver's tolerance.

        Returns:
            The optimum.

        Raises:
            OutOfTime: The time is up.
            SolverError: The solver found no optimum; says what it reported.
        """

    def keep_optimum(self) -> None:
        """Admit from now on only solutions that are optimal for the objective just minimised.

        By complementary slackness these are exactly the solutions in which every variable with a reduced cost
        stays at its bound and every constraint with a dual value stays tight. The usual alternative, a
        constraint "at least the optimum, less a slack", gives the next objective the slack to trade away.
        """

    def value(self, variable: Variable) -> float:
        """Return a variable's value in the last solution, at least 0."""

    def dual(self, row: Row) -> float:
        """Return how much the last optimum would rise per unit of a constraint's right side."""


def summed(terms: Terms) -> dict[Variable, float]:
    """Return the coefficient of each variable."""
    total: dict[Variable, float] = {}
    for variable, coefficient in terms:
        total[variable] = total.get(variable, 0.0) + coefficient
    return total
