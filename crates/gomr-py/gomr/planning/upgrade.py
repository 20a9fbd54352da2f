"""The least upgrade of a network that admits a whole matrix.

A dual proves it: with prices y of at most what a bit/s costs to add, every upgrade costs at least the rates
times the prices of their cheapest paths, less the capacities times their prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gomr.engines.assembly import assemble
from gomr.engines.linear_program import Numbers
from gomr.engines.result import EngineResult
from gomr.errors import InvalidProblem
from gomr.failures import link_failures
from gomr.graphs import problem_of
from gomr.matrices import Matrix
from gomr.objectives import PLAIN
from gomr.paths.finder import Length
from gomr.planning.columns import NAME, PathProgram, gap_of, positive
from gomr.problem import Demand, Path, Problem, check_number
from gomr.solution import Solution

_SERVED_TOLERANCE = 1e-9
"""A demand that misses less than this, in units, is served."""
_ROUNDING = 1e-11
"""An upgrade of less than this, in units, is rounding."""


@dataclass(frozen=True)
class Upgrade:
    """What to add.

    Attributes:
        added_bps: The capacity to add, by edge id; both directions of a link that is upgraded as one.
        cost: What it costs.
        lower_bound: No upgrade that admits the matrix costs less; proved by prices.
        gap: (cost - bound) / cost; 0 is an optimum.
        solution: A routing of the whole matrix over the upgraded network.
    """

    added_bps: Mapping[str, float]
    cost: float
    lower_bound: float
    gap: float
    solution: Solution


def least_upgrade(
    graph: Any,
    demands: Matrix,
    cost: Mapping[str, float] | None = None,
    *,
    links: bool = True,
    time_limit_s: float | None = None,
    **reading: Any,
) -> Upgrade:
    """Find the cheapest capacity to add so that all demands are admitted.

    Args:
        graph: As `gomr.solve`; edges without capacity can be built.
        demands: As `gomr.solve`.
        cost: What a bit/s of each edge costs, by its id; edges that are not named cannot be upgraded. None: 1
            for all.
        links: An edge and its reverse are upgraded together, for the cost of the edge that comes first.
        time_limit_s: Seconds that each programme may take.
        **reading: As `gomr.problem_of`.

    Raises:
        InvalidProblem: No upgrade admits all demands, or something contradicts itself.
        SolverError: HiGHS failed, or the time was up.
    """
    problem = problem_of(graph, demands, **reading)
    cost = {edge.id: 1.0 for edge in problem.edges} if cost is None else cost
    for name, value in cost.items():
        if name not in problem.edges_by_id:
            raise InvalidProblem(f"cost[{name}]", "there is no such edge")
        check_number(f"cost[{name}]", value)
    groups = _groups(problem, cost, links=links)
    question = _UpgradeProgram(problem, groups, time_limit_s)
    duals = question.minimise(question.costs)
    added_bps = question.added_bps()
    edges = tuple(
        replace(edge, capacity_bps=edge.capacity_bps + added_bps.get(edge.id, 0.0)) for edge in problem.edges
    )
    upgraded = replace(problem, edges=edges)
    rates = {
        name: [(path, value * question.unit_bps) for path, value in own]
        for name, own in question.values().items()
    }
    answer = EngineResult(rates, {}, bound_bps=math.fsum(demand.rate_bps for demand in problem.demands))
    total = math.fsum(added_bps[own[0]] * each for own, each in groups if own[0] in added_bps)
    bound = min(total, question.bound(duals))
    solution = Solution.of(upgraded, assemble(upgraded, upgraded, PLAIN, NAME, answer))
    return Upgrade(added_bps, total, bound, gap_of(total, bound), solution)


def _groups(
    problem: Problem, cost: Mapping[str, float], *, links: bool
) -> list[tuple[tuple[str, ...], float]]:
    """Return the edges that are upgraded together, and what a bit/s of them costs."""
    together = link_failures(problem if links else replace(problem, reverse=None))
    costs = [[cost[name] for name in own.edges if name in cost] for own in together]
    return [(own.edges, each[0]) for own, each in zip(together, costs, strict=True) if each]


class _UpgradeProgram(PathProgram):
    """All rates are carried by what is there and what is added.

    Attributes:
        costs: Of the variables of what is added.
    """

    def __init__(
        self, problem: Problem, groups: list[tuple[tuple[str, ...], float]], time_limit_s: float | None
    ) -> None:
        # Every edge that can be built is open to paths.
        named = {name for own, _ in groups for name in own}
        edges = tuple(
            replace(edge, capacity_bps=max(edge.capacity_bps, math.ulp(0.0))) if edge.id in named else edge
            for edge in problem.edges
        )
        super().__init__(replace(problem, edges=edges), time_limit_s)
        self._groups, program = groups, self.program
        rates = [demand.rate_bps for demand in problem.demands]
        self.unit_bps = math.ldexp(1.0, math.frexp(max(rates, default=1.0) or 1.0)[1])
        self._edge = {
            edge.id: program.row({}, upper=min(edge.capacity_bps, math.fsum(rates)) / self.unit_bps)
            for edge in problem.edges
        }
        self._added = list(program.variables(len(groups), math.inf))
        for variable, (own, _) in zip(self._added, groups, strict=True):
            for name in own:
                program.set_factor(self._edge[name], variable, -1.0)
        self.costs = {at: each for at, (_, each) in zip(self._added, groups, strict=True)}
        self._served: dict[str, int] = {}
        self._missing: dict[str, int] = {}
        for demand in problem.demands:
            found = self.cheapest(demand, lambda edge: edge.delay_s)
            if found is None and demand.rate_bps > 0:
                raise InvalidProblem(f"demands[{demand.id}]", "has no path, whatever is added")
            rate = demand.rate_bps / self.unit_bps
            (missing,) = program.variables(1, math.inf)
            self._missing[demand.id] = missing
            self._served[demand.id] = program.row({missing: 1.0}, lower=rate, upper=rate)
        # More than any path can cost, so that nothing is missing where it can be served.
        dear = 1.0 + len(problem.edges) * max((each for _, each in groups), default=0.0)
        self.costs.update(dict.fromkeys(self._missing.values(), dear))

    def entry(self, demand: Demand, path: Path) -> Mapping[int, float]:
        """Return the factor of a path's variable in each row."""
        return {self._served[demand.id]: 1.0, **{self._edge[edge.id]: 1.0 for edge in path}}

    def pricing(self, demand: Demand, duals: Numbers) -> tuple[Length, float]:
        """Return the length of each edge, and what a path has to be shorter than to gain."""
        edges = self._edge
        return lambda edge: positive(-duals[edges[edge.id]]), float(duals[self._served[demand.id]])

    def added_bps(self) -> dict[str, float]:
        """Return what is added to each edge.

        Raises:
            InvalidProblem: No upgrade admits all demands.
        """
        values = self.program.values()
        for name, missing in self._missing.items():
            if values[missing] > _SERVED_TOLERANCE:
                reason = "is not admitted whatever is added to the edges that have a cost; name more of them"
                raise InvalidProblem(f"demands[{name}]", reason)
        return {
            name: float(values[at]) * self.unit_bps
            for at, (own, _) in zip(self._added, self._groups, strict=True)
            for name in own
            if values[at] > _ROUNDING
        }

    def bound(self, duals: Numbers) -> float:
        """Return what every upgrade costs at least, by prices that are brought within the costs."""
        price = {name: positive(-duals[row]) for name, row in self._edge.items()}
        # What can be added for less than its price is no proof: prices come down to the costs.
        sums = [(math.fsum(price[name] for name in own), each) for own, each in self._groups]
        over = max((own / each if each > 0 else math.inf for own, each in sums if own > 0), default=0.0)
        shrink = 1 / max(1.0, over)
        parts = []
        for demand in self.problem.demands:
            found = self.cheapest(demand, lambda edge: price[edge.id])
            parts.append(demand.rate_bps * found[0] if found is not None else 0.0)
        parts += [-price[edge.id] * edge.capacity_bps for edge in self.problem.edges if price[edge.id] > 0]
        return max(0.0, shrink * math.fsum(parts))
