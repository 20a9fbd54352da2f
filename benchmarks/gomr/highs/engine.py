"""Column generation on HiGHS: a programme over the paths known so far, and shortest paths over its prices.

A path is worth M times its demand's worth less its delay, so one programme finds the lexicographic optimum;
no general bound on M is known, so every optimum is certified for the first objective alone, and M is raised
if a path could still gain (README.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.gomr.highs.columns import ColumnMaster
from benchmarks.gomr.highs.filling import Throughput, fill
from gomr.allocation import Rates
from gomr.engines.answer import Answer, nothing
from gomr.engines.levels import asking, check_fair
from gomr.engines.linear_program import LinearProgram
from gomr.engines.span import within_span
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.even_split import spread_in_time
from gomr.objectives import OBJECTIVES, Objective
from gomr.problem import Problem

NAME = "highs"
_MAX_MIN = OBJECTIVES["max_min"]
_SMALL = 0.1
"""A throughput below this, in the unit of rates, asks for a smaller unit."""
_SERVED = 1e-6
"""A demand that gets all but this share of its request counts as served ..."""
_LOST = 1e-10
"""... or all but this share of the unit of rates, in which HiGHS may lose a very small demand."""
_MAGNITUDE_BITS = 10
"""Under `max_min`, requests that differ by less than these powers of two share a unit."""


def solve(
    problem: Problem,
    objective: Objective,
    time_limit_s: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> Answer:
    """Solve a problem; an engine as `gomr.engines.answer` wants it.

    Raises:
        SolverError: HiGHS failed, or rates are too far apart for it.
    """
    if problem.unit_bps == 0:
        return nothing(problem)
    budget = TimeBudget(NAME, time_limit_s, clock)
    with within_span(problem, NAME):
        try:
            return _solve(problem, objective, budget)
        except OutOfTime:
            return budget.answer_so_far(problem)


def _solve(problem: Problem, objective: Objective, budget: TimeBudget) -> Answer:
    if objective.by_level:
        return _max_min(problem, budget)
    master = _master(problem, objective, budget)
    budget.stage = "delay"
    rates, proof = master.lexicographic()
    first = Answer(rates, proof.prices)
    budget.keep(lambda: first)
    if objective.evens_load and _serves_all(problem, master, rates):
        budget.stage = "utilisation"
        rates = master.spread_over_edges()
    answer = Answer(rates, proof.prices)
    budget.keep(lambda: answer)
    if objective.evens_split:
        rates, complete = spread_in_time(problem, rates, budget)
        return replace(answer, rates=rates, complete=complete)
    return answer


def _master(problem: Problem, objective: Objective, budget: TimeBudget) -> ColumnMaster:
    """Return a programme in a unit in which what can be admitted is not lost in the solver's tolerance."""
    unit_bps = problem.unit_bps
    while True:
        master = ColumnMaster(problem, objective, unit_bps, LinearProgram(budget))
        admitted_bps = master.throughput().bound_bps
        if admitted_bps >= _SMALL * unit_bps or admitted_bps == 0:
            return master
        unit_bps *= math.ldexp(1.0, math.frexp(max(admitted_bps / unit_bps, 1e-6))[1])


def _max_min(problem: Problem, budget: TimeBudget) -> Answer:
    budget.stage = "levels"
    fair_bps, cuts = fill(problem.demands, _Measure(problem, budget), budget)
    budget.stage = "delay"
    routed = asking(problem, fair_bps)
    if routed.unit_bps == 0:
        return Answer(nothing(problem).rates, cuts=cuts)
    master = _master(routed, _MAX_MIN, budget)
    rates, _ = master.lexicographic(refine=True)
    check_fair(problem, fair_bps, rates, budget)
    return Answer(rates, cuts=cuts)


class _Measure:
    """The largest throughput under some requests, by a programme in a unit of their magnitude.

    In the unit of the whole problem a small level would lie in HiGHS's tolerance.
    """

    def __init__(self, problem: Problem, budget: TimeBudget) -> None:
        self._problem = problem
        self._budget = budget
        self._masters: dict[int, ColumnMaster] = {}

    def __call__(self, asked_bps: Mapping[str, float]) -> Throughput:
        magnitude = math.frexp(max(asked_bps.values()))[1] // _MAGNITUDE_BITS
        if magnitude not in self._masters:
            most_bps = math.ldexp(1.0, (magnitude + 1) * _MAGNITUDE_BITS)
            capped = {demand.id: min(demand.rate_bps, most_bps) for demand in self._problem.demands}
            self._masters[magnitude] = _master(asking(self._problem, capped), _MAX_MIN, self._budget)
        master = self._masters[magnitude]
        master.ask(asked_bps)
        return master.throughput(refine=True)


def _serves_all(problem: Problem, master: ColumnMaster, rates: Rates) -> bool:
    """Return whether every demand that can be reached gets all: else the fullest edge is full anyway."""
    lost_bps = _LOST * problem.unit_bps
    return all(
        sum(rate_bps for _, rate_bps in rates[demand.id]) >= demand.rate_bps * (1 - _SERVED) - lost_bps
        for demand in problem.demands
        if master.can_reach(demand)
    )
