"""GOMR as linear programmes over edges, in scipy, from the definitions: it shares nothing with the engines.

A variable is the rate of one demand on one edge. That is slow, and plain enough to be believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from gomr import Problem

Terms = Mapping[int, float]
SEGMENTS = 8
"""Parts of a request that `fair` values by 1, 1/2, 1/3 ... of the weight."""
_LEVEL_TOLERANCE = 1e-9
"""A level that a demand cannot exceed by more than this share is its last one."""


@dataclass(frozen=True)
class Optimum:
    """What every optimal allocation has in common; None where the objective leaves it open.

    Attributes:
        value_bps: The first objective.
        cost_bps_s: Sum of rates times delays.
        rates_bps: What each demand gets.
        max_utilisation: The largest share of a capacity in use.
    """

    value_bps: float
    cost_bps_s: float | None
    rates_bps: tuple[float, ...] | None = None
    max_utilisation: float | None = None


class EdgeProgram:
    """Flow conservation, capacities and requests of a problem; rates in units of `unit_bps`."""

    def __init__(self, problem: Problem) -> None:
        """Take a problem of demands without limits on their paths."""
        self.problem = problem
        self.unit_bps = max(edge.capacity_bps for edge in problem.edges)
        self._rows: list[Terms] = []
        self._bounds: list[tuple[float, float]] = []
        self._equal: list[tuple[Terms, float]] = []
        self._most: list[tuple[Terms, float]] = []
        self.on_edge = [[self.variable() for _ in problem.edges] for _ in problem.demands]
        self.served = [self.variable(demand.rate_bps / self.unit_bps) for demand in problem.demands]
        for demand in range(len(problem.demands)):
            self._conserve(demand)
        self.capacity_rows = []
        for place, edge in enumerate(problem.edges):
            terms = {own[place]: 1.0 for own in self.on_edge}
            self.capacity_rows.append(terms)
            self.at_most(terms, edge.capacity_bps / self.unit_bps)

    def variable(self, most: float = math.inf) -> int:
        """Return a new variable from 0 to `most`."""
        self._bounds.append((0.0, most))
        return len(self._bounds) - 1

    def equals(self, terms: Terms, value: float) -> None:
        """Demand that a sum has a value."""
        self._equal.append((terms, value))

    def at_most(self, terms: Terms, value: float) -> None:
        """Demand that a sum is at most a value."""
        self._most.append((terms, value))

    def copy(self) -> EdgeProgram:
        """Return one to which rows can be added without changing this one."""
        other = object.__new__(EdgeProgram)
        other.__dict__.update(self.__dict__)
        other._bounds, other._equal, other._most = self._bounds[:], self._equal[:], self._most[:]
        return other

    def minimise(self, costs: Terms) -> tuple[float, Sequence[float]]:
        """Return the least sum, and the variables there."""
        size = len(self._bounds)
        objective = np.zeros(size)
        for variable, cost in costs.items():
            objective[variable] += cost
        solution = linprog(
            objective,
            *_matrix(self._most, size),
            *_matrix(self._equal, size),
            bounds=self._bounds,
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if solution.status != 0:
            raise ArithmeticError(f"scipy: {solution.message}")
        return float(solution.fun), solution.x

    def _conserve(self, demand: int) -> None:
        ends = self.problem.demands[demand]
        at: dict[str, dict[int, float]] = {}
        for variable, edge in zip(self.on_edge[demand], self.problem.edges, strict=True):
            at.setdefault(edge.tail, {})[variable] = 1.0
            at.setdefault(edge.head, {})[variable] = -1.0
        at.setdefault(ends.source, {})[self.served[demand]] = -1.0
        at.setdefault(ends.destination, {})[self.served[demand]] = 1.0
        for terms in at.values():
            self.equals(terms, 0.0)

    def delay_costs(self) -> dict[int, float]:
        """Return the delay of each edge as the cost of all that is on it, in that of the longest."""
        longest = self.longest_s
        return {
            variable: edge.delay_s / longest
            for own in self.on_edge
            for variable, edge in zip(own, self.problem.edges, strict=True)
        }

    @property
    def longest_s(self) -> float:
        """The longest delay of an edge; 1 where there is none."""
        return max(edge.delay_s for edge in self.problem.edges) or 1.0

    def least_cost_bps_s(self) -> float:
        """Return the least sum of rates times delays."""
        return self.minimise(self.delay_costs())[0] * self.longest_s * self.unit_bps


def _matrix(rows: list[tuple[Terms, float]], size: int) -> tuple[csr_matrix | None, list[float] | None]:
    if not rows:
        return None, None
    at = [row for row, (terms, _) in enumerate(rows) for _ in terms]
    variables = [variable for terms, _ in rows for variable in terms]
    values = [value for terms, _ in rows for value in terms.values()]
    return csr_matrix((values, (at, variables)), shape=(len(rows), size)), [value for _, value in rows]


def optimum(problem: Problem, objective: str) -> Optimum:
    """Return what every optimum of a problem has, by the definition of its objective."""
    return _OPTIMA[objective](EdgeProgram(problem))


def _most_throughput(program: EdgeProgram) -> Optimum:
    admitted = dict.fromkeys(program.served, 1.0)
    value = -program.minimise(dict.fromkeys(program.served, -1.0))[0]
    program.equals(admitted, value)
    return Optimum(value * program.unit_bps, program.least_cost_bps_s())


def _even_split(program: EdgeProgram) -> Optimum:
    return Optimum(_most_throughput(program).value_bps, None)


def _least_utilisation(program: EdgeProgram) -> Optimum:
    admitted = dict.fromkeys(program.served, 1.0)
    value = -program.minimise(dict.fromkeys(program.served, -1.0))[0]
    program.equals(admitted, value)
    level = program.variable(1.0)
    for terms, edge in zip(program.capacity_rows, program.problem.edges, strict=True):
        program.at_most({**terms, level: -edge.capacity_bps / program.unit_bps}, 0.0)
    least = program.minimise({level: 1.0})[0]
    program.equals({level: 1.0}, least)
    return Optimum(value * program.unit_bps, program.least_cost_bps_s(), None, least)


def _fair(program: EdgeProgram) -> Optimum:
    worth: dict[int, float] = {}
    for demand, served in zip(program.problem.demands, program.served, strict=True):
        parts = [program.variable(demand.rate_bps / program.unit_bps / SEGMENTS) for _ in range(SEGMENTS)]
        program.equals({**dict.fromkeys(parts, 1.0), served: -1.0}, 0.0)
        worth |= {part: demand.weight / (place + 1) for place, part in enumerate(parts)}
    value = -program.minimise({part: -each for part, each in worth.items()})[0]
    program.equals(worth, value)
    return Optimum(value * program.unit_bps, program.least_cost_bps_s())


def _max_min(program: EdgeProgram) -> Optimum:
    """All rise together; who can rise no further while no other falls has its rate (Nace and Pióro 2008)."""
    demands = program.problem.demands
    asked = [demand.rate_bps / program.unit_bps for demand in demands]
    settled: dict[int, float] = {place: 0.0 for place, rate in enumerate(asked) if rate == 0}
    while len(settled) < len(demands):
        rising = [place for place in range(len(demands)) if place not in settled]
        level = _highest_level(program, settled, rising, asked)
        for place in rising:
            if demands[place].weight * level >= asked[place] * (1 - _LEVEL_TOLERANCE):
                settled[place] = asked[place]
        held = program.copy()
        for place in range(len(demands)):
            fair = settled.get(place, demands[place].weight * level)
            held.at_most({program.served[place]: -1.0}, -fair)
        for place in rising:
            if place not in settled:
                most = -held.minimise({program.served[place]: -1.0})[0]
                if most <= demands[place].weight * level * (1 + _LEVEL_TOLERANCE):
                    settled[place] = demands[place].weight * level
    for place, rate in settled.items():
        program.equals({program.served[place]: 1.0}, rate)
    rates_bps = tuple(settled[place] * program.unit_bps for place in range(len(demands)))
    return Optimum(sum(rates_bps), program.least_cost_bps_s(), rates_bps)


def _highest_level(
    program: EdgeProgram, settled: Mapping[int, float], rising: Sequence[int], asked: Sequence[float]
) -> float:
    """Return the most that all rising demands get for each unit of weight, until one has all it asks for."""
    trial = program.copy()
    level = trial.variable(min(asked[place] / program.problem.demands[place].weight for place in rising))
    for place, rate in settled.items():
        trial.at_most({program.served[place]: -1.0}, -rate)
    for place in rising:
        trial.equals({program.served[place]: 1.0, level: -program.problem.demands[place].weight}, 0.0)
    return -trial.minimise({level: -1.0})[0]


_OPTIMA = {
    "max_throughput_min_delay": _most_throughput,
    "even_split": _even_split,
    "min_max_utilisation": _least_utilisation,
    "fair": _fair,
    "max_min": _max_min,
}
