"""Classes of demands by priority: each is admitted as far as it can be beside all classes before it.

The routing of a class is not fixed when the next one is admitted, only what it gets in all: lexicographic
optima, each proved by prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gomr.engines.assembly import assemble
from gomr.engines.linear_program import Numbers
from gomr.engines.result import EngineResult
from gomr.errors import InvalidProblem
from gomr.graphs import problem_of
from gomr.matrices import Matrix
from gomr.objectives import PLAIN
from gomr.paths.finder import Length
from gomr.planning.columns import NAME, PathProgram, gap_of, positive
from gomr.problem import Demand, Path, Problem
from gomr.solution import Certificate, Solution

_KEPT_SHARE = 1 - 1e-13
"""Share of what a class gets that the classes after it leave, and the delay."""


@dataclass(frozen=True)
class Priorities:
    """What each class gets.

    Attributes:
        solution: The routing of all demands; the demand `a->b` of the second class is called `2:a->b`.
        classes: The proof for each class: no routing in which the classes before it get as much admits more
            of it than `upper_bound_bps`.
    """

    solution: Solution
    classes: tuple[Certificate, ...]


def solve_priorities(
    graph: Any, classes: Sequence[Matrix], *, time_limit_s: float | None = None, **reading: Any
) -> Priorities:
    """Admit classes of demands one after another, the most important first, then keep the mean delay lowest.

    Args:
        graph: As `gomr.solve`.
        classes: The demands of each class in any form that `gomr.solve` takes; limits on delays are kept.
        time_limit_s: Seconds that each programme may take.
        **reading: As `gomr.problem_of`.

    Raises:
        InvalidProblem: Something contradicts itself, or a demand has a limit that is not known here.
        SolverError: HiGHS failed, or the time was up.
    """
    if not classes:
        raise InvalidProblem("classes", "are none; give the demands of at least one")
    read = [problem_of(graph, own, **reading) for own in classes]
    of_class = [
        tuple(replace(demand, id=f"{number}:{demand.id}") for demand in problem.demands)
        for number, problem in enumerate(read, start=1)
    ]
    problem = replace(read[0], demands=tuple(demand for own in of_class for demand in own))
    question = _PriorityProgram(problem, time_limit_s)
    proofs = tuple(question.admit(own) for own in of_class)
    rates = question.least_delay()
    bound_bps = math.fsum(proof.upper_bound_bps for proof in proofs)
    answer = EngineResult(rates, question.prices, bound_bps=bound_bps)
    return Priorities(Solution.of(problem, assemble(problem, problem, PLAIN, NAME, answer)), proofs)


class _PriorityProgram(PathProgram):
    """Capacities, what each demand gets, and what each class has to get.

    Attributes:
        prices: What a bit/s more of each edge adds to the first class.
    """

    def __init__(self, problem: Problem, time_limit_s: float | None) -> None:
        super().__init__(problem, time_limit_s)
        program = self.program
        self._edge = {
            edge.id: program.row({}, upper=problem.useful_capacity_bps(edge) / self.unit_bps)
            for edge in problem.edges
        }
        self._admitted = {
            demand.id: program.variables(1, demand.rate_bps / self.unit_bps)[0] for demand in problem.demands
        }
        self._balance = {
            name: program.row({variable: -1.0}, lower=0.0, upper=0.0)
            for name, variable in self._admitted.items()
        }
        self._delay_unit_s = math.inf
        self._held: list[tuple[Sequence[Demand], int, float]] = []
        self.prices: Mapping[str, float] = {}

    def entry(self, demand: Demand, path: Path) -> Mapping[int, float]:
        """Return the factor of a path's variable in each row."""
        return {self._balance[demand.id]: 1.0, **{self._edge[edge.id]: 1.0 for edge in path}}

    def cost(self, path: Path) -> float:
        """Return the delay of a path in units; nothing while classes are admitted."""
        return math.fsum(edge.delay_s for edge in path) / self._delay_unit_s

    def pricing(self, demand: Demand, duals: Numbers) -> tuple[Length, float]:
        """Return the length of each edge, and what a path has to be shorter than to gain."""
        edges, unit_s = self._edge, self._delay_unit_s
        worth = float(duals[self._balance[demand.id]])
        return lambda edge: positive(-duals[edges[edge.id]]) + edge.delay_s / unit_s, worth

    def admit(self, own: Sequence[Demand]) -> Certificate:
        """Admit the most of a class, and hold it from now on."""
        variables = [self._admitted[demand.id] for demand in own]
        duals = self.minimise(dict.fromkeys(variables, -1.0))
        values = self.program.values()
        got = math.fsum(float(values[variable]) for variable in variables)
        bound_bps = max(got * self.unit_bps, self._bound_bps(own, duals))
        row = self.program.row(dict.fromkeys(variables, 1.0), lower=got * _KEPT_SHARE, upper=math.inf)
        self._held.append((own, row, got * _KEPT_SHARE))
        self.prices = self.prices or {name: positive(-duals[row]) for name, row in self._edge.items()}
        return Certificate(got * self.unit_bps, bound_bps, gap_of(got * self.unit_bps, bound_bps), 0.0)

    def least_delay(self) -> dict[str, list[tuple[Path, float]]]:
        """Return the rates on paths of least delay in all, of those in which each class gets what it has."""
        self._delay_unit_s = max(edge.delay_s for edge in self.problem.edges) or math.inf
        self.minimise({})
        return {
            name: [(path, value * self.unit_bps) for path, value in own]
            for name, own in self.values().items()
        }

    def _bound_bps(self, own: Sequence[Demand], duals: Numbers) -> float:
        """Return what the class cannot exceed, by the weak duality of any prices."""
        price = {name: positive(-duals[row]) for name, row in self._edge.items()}
        worth = dict.fromkeys(self._admitted, 0.0)
        parts = [self.problem.useful_capacity_bps(edge) * price[edge.id] for edge in self.problem.edges]
        for earlier, row, held in self._held:
            worth.update(dict.fromkeys([demand.id for demand in earlier], positive(duals[row])))
            parts.append(-positive(duals[row]) * held * self.unit_bps)
        worth.update(dict.fromkeys([demand.id for demand in own], 1.0))
        for demand in self.problem.demands:
            found = self.cheapest(demand, lambda edge: price[edge.id]) if worth[demand.id] > 0 else None
            if found is not None:
                parts.append(demand.rate_bps * max(0.0, worth[demand.id] - found[0]))
        return math.fsum(parts)
