"""One routing for several cases: traffic matrices that may come, and links that may fail.

`robust_splits` finds the shares in which each demand splits over paths, the same for all matrices, that keep
the largest utilisation of any edge under any of them lowest. `failure_proof` finds rates and paths that stay
within all capacities whichever single link fails and senders turn to the paths that are left (forward fault
correction: H. Liu et al., "Traffic Engineering with Forward Fault Correction", SIGCOMM 2014); here over all
paths of the network, not over tunnels that are given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gomr.engines.linear_program import Numbers
from gomr.errors import InvalidProblem
from gomr.failures import Failure, link_failures
from gomr.graphs import problem_of
from gomr.matrices import Matrix
from gomr.paths.finder import Length
from gomr.planning.columns import PathProgram, gap_of, positive
from gomr.problem import Demand, Edge, Path, Problem

Splits = Mapping[str, tuple[tuple[tuple[str, ...], float], ...]]
"""The paths of each demand, as nodes, and a number for each."""


@dataclass(frozen=True)
class RobustSplits:
    """Shares that serve all matrices.

    Attributes:
        shares: The paths of each demand and the share of its rate on each, 1 in all.
        utilisation: The largest share of its capacity that any edge carries, for each matrix.
        max_utilisation: The largest of all. Above 1 the matrices do not fit as they are.
        lower_bound: No shares have a smaller one; proved by prices.
        gap: (largest - bound) / largest; 0 is an optimum.
    """

    shares: Splits
    utilisation: tuple[float, ...]
    max_utilisation: float
    lower_bound: float
    gap: float


@dataclass(frozen=True)
class FailureProof:
    """Rates that no failure takes away.

    Attributes:
        rates_bps: What each demand is granted.
        reserved_bps: The paths of each demand, and what is reserved on each: without those that a failure
            breaks, what is left carries the whole rate.
        admitted_bps: Sum of the rates.
        upper_bound_bps: No such rates have a larger sum; proved by prices.
        gap: (bound - sum) / bound; 0 is an optimum.
    """

    rates_bps: Mapping[str, float]
    reserved_bps: Splits
    admitted_bps: float
    upper_bound_bps: float
    gap: float


def robust_splits(
    graph: Any, matrices: Sequence[Matrix], *, time_limit_s: float | None = None, **reading: Any
) -> RobustSplits:
    """Split demands over paths so that one routing is the best for the worst of several matrices.

    Args:
        graph: As `gomr.solve`; capacities are finite.
        matrices: Demands in any form that `gomr.solve` takes.
        time_limit_s: Seconds that each programme may take.
        **reading: As `gomr.problem_of`.

    Raises:
        InvalidProblem: A demand has no path, or something contradicts itself.
        SolverError: HiGHS failed, or the time was up.
    """
    read = [problem_of(graph, matrix, **reading) for matrix in matrices]
    every = {demand.id: demand for problem in read for demand in problem.demands if demand.rate_bps > 0}
    if not every:
        raise InvalidProblem("matrices", "ask for nothing; give at least one rate above 0")
    rates = [{demand.id: demand.rate_bps for demand in problem.demands} for problem in read]
    question = _SplitProgram(replace(read[0], demands=tuple(every.values())), rates, time_limit_s)
    duals = question.minimise({question.largest: 1.0})
    shares = question.values()
    utilisation = tuple(question.utilisation(shares, own) for own in rates)
    worst, bound = max(utilisation), question.bound(duals)
    return RobustSplits(
        _named(shares, 1.0), utilisation, worst, min(worst, bound), gap_of(worst, min(worst, bound))
    )


def failure_proof(
    graph: Any,
    demands: Matrix,
    failures: Sequence[Failure] | None = None,
    *,
    time_limit_s: float | None = None,
    **reading: Any,
) -> FailureProof:
    """Grant the largest rates that survive every failure without a new routing.

    Args:
        graph: As `gomr.solve`.
        demands: As `gomr.solve`.
        failures: What may fail, one at a time; None: each link, both directions together.
        time_limit_s: Seconds that each programme may take.
        **reading: As `gomr.problem_of`.

    Raises:
        InvalidProblem: Something contradicts itself.
        SolverError: HiGHS failed, or the time was up.
    """
    problem = problem_of(graph, demands, **reading)
    question = _FailureProgram(
        problem, link_failures(problem) if failures is None else failures, time_limit_s
    )
    duals = question.minimise(dict.fromkeys(question.granted.values(), -1.0))
    values = question.program.values()
    unit_bps = question.unit_bps
    rates = {name: float(values[at]) * unit_bps for name, at in question.granted.items()}
    total_bps = math.fsum(rates.values())
    bound_bps = max(total_bps, question.bound_bps(duals))
    reserved = _named(question.values(), unit_bps)
    return FailureProof(rates, reserved, total_bps, bound_bps, gap_of(total_bps, bound_bps))


def _named(paths: Mapping[str, Sequence[tuple[Path, float]]], factor: float) -> Splits:
    return {
        name: tuple(((path[0].tail, *(edge.head for edge in path)), value * factor) for path, value in own)
        for name, own in paths.items()
    }


class _SplitProgram(PathProgram):
    """The shares of each demand are 1 in all, and no edge carries more than the largest under any matrix.

    Attributes:
        largest: The variable of the largest utilisation.
    """

    def __init__(
        self, problem: Problem, rates_bps: Sequence[Mapping[str, float]], time_limit_s: float | None
    ) -> None:
        super().__init__(problem, time_limit_s)
        self._rates_bps, program = rates_bps, self.program
        (self.largest,) = program.variables(1, math.inf)
        self._rows = {
            (case, edge.id): program.row({self.largest: -1.0}, upper=0.0)
            for case in range(len(rates_bps))
            for edge in problem.edges
            if 0 < edge.capacity_bps < math.inf
        }
        self._whole: dict[str, int] = {}
        for demand in problem.demands:
            found = self.cheapest(demand, lambda edge: edge.delay_s)
            if found is None:
                raise InvalidProblem(f"demands[{demand.id}]", "has no path; leave it out")
            self._whole[demand.id] = program.row({}, lower=1.0, upper=1.0)
            self.add(demand, found[1])

    def _asked(self, demand: Demand) -> list[tuple[int, float]]:
        return [(case, own[demand.id]) for case, own in enumerate(self._rates_bps) if own.get(demand.id)]

    def entry(self, demand: Demand, path: Path) -> Mapping[int, float]:
        """Return the factor of a path's variable in each row."""
        rows = {
            self._rows[case, edge.id]: rate_bps / edge.capacity_bps
            for case, rate_bps in self._asked(demand)
            for edge in path
            if (case, edge.id) in self._rows
        }
        return {self._whole[demand.id]: 1.0, **rows}

    def pricing(self, demand: Demand, duals: Numbers) -> tuple[Length, float]:
        """Return the length of each edge, and what a path has to be shorter than to gain."""
        return self._length(demand, duals), float(duals[self._whole[demand.id]])

    def _length(self, demand: Demand, duals: Numbers) -> Length:
        asked, rows = self._asked(demand), self._rows

        def length(edge: Edge) -> float:
            return math.fsum(
                positive(-duals[rows[case, edge.id]]) * rate_bps / edge.capacity_bps
                for case, rate_bps in asked
                if (case, edge.id) in rows
            )

        return length

    def utilisation(
        self, shares: Mapping[str, Sequence[tuple[Path, float]]], rates_bps: Mapping[str, float]
    ) -> float:
        """Return the largest utilisation of an edge under one matrix."""
        loads: dict[Edge, float] = {}
        for name, own in shares.items():
            for path, share in own:
                for edge in path:
                    loads[edge] = loads.get(edge, 0.0) + share * rates_bps.get(name, 0.0)
        return max((load / edge.capacity_bps for edge, load in loads.items()), default=0.0)

    def bound(self, duals: Numbers) -> float:
        """Return what the largest utilisation cannot be below, by any prices of edges and matrices."""
        weight = math.fsum(positive(-duals[row]) for row in self._rows.values())
        if weight <= 0:
            return 0.0
        found = [self.cheapest(demand, self._length(demand, duals)) for demand in self.problem.demands]
        return math.fsum(one[0] for one in found if one is not None) / weight


class _FailureProgram(PathProgram):
    """After each failure the paths that are left carry what each demand is granted.

    Attributes:
        granted: The variable of each demand's rate.
    """

    def __init__(self, problem: Problem, failures: Sequence[Failure], time_limit_s: float | None) -> None:
        super().__init__(problem, time_limit_s)
        program = self.program
        self._edge = {
            edge.id: program.row({}, upper=edge.capacity_bps / self.unit_bps) for edge in problem.edges
        }
        self._breaking: dict[str, list[int]] = {}
        for number, failure in enumerate(failures, start=1):
            for edge_id in failure.edges:
                self._breaking.setdefault(edge_id, []).append(number)
        self.granted = {
            demand.id: program.variables(1, demand.rate_bps / self.unit_bps)[0] for demand in problem.demands
        }
        # Case 0 is that nothing fails.
        self._left = {
            name: [program.row({at: -1.0}, lower=0.0, upper=math.inf) for _ in range(len(failures) + 1)]
            for name, at in self.granted.items()
        }

    def entry(self, demand: Demand, path: Path) -> Mapping[int, float]:
        """Return the factor of a path's variable in each row."""
        broken = {number for edge in path for number in self._breaking.get(edge.id, ())}
        left = {row: 1.0 for number, row in enumerate(self._left[demand.id]) if number not in broken}
        return {**left, **{self._edge[edge.id]: 1.0 for edge in path}}

    def pricing(self, demand: Demand, duals: Numbers) -> tuple[Length, float]:
        """Return the length of each edge, and what a path has to be shorter than to gain.

        A failure that breaks two edges of a path is counted twice: no path is taken that does not gain, and
        with links failing one by one none is missed, since no path uses both directions of a link.
        """
        prices, edges, breaking = self._prices(demand, duals), self._edge, self._breaking

        def length(edge: Edge) -> float:
            return positive(-duals[edges[edge.id]]) + sum(
                prices[number] for number in breaking.get(edge.id, ())
            )

        return length, math.fsum(prices)

    def _prices(self, demand: Demand, duals: Numbers) -> list[float]:
        return [positive(duals[row]) for row in self._left[demand.id]]

    def bound_bps(self, duals: Numbers) -> float:
        """Return what no such rates exceed in all, by any prices of edges and failures."""
        parts = [
            positive(-duals[self._edge[edge.id]]) * edge.capacity_bps
            for edge in self.problem.edges
            if edge.capacity_bps < math.inf
        ]
        for demand in self.problem.demands:
            length, worth = self.pricing(demand, duals)
            found = self.cheapest(demand, length)
            if found is None:
                continue
            # What a path is cheaper than the failures' prices is rounding, and paid at the source's capacity.
            short = max(0.0, worth - found[0]) * self.problem.useful_rate_bps(
                replace(demand, rate_bps=math.inf)
            )
            parts += [demand.rate_bps * max(0.0, 1 - worth), short if short > 0 else 0.0]
        return math.fsum(parts)
