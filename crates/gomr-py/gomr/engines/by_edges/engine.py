"""The reference engine: complete, short and exact.

It solves the programmes of README.md one after another. Each keeps the optimum of the one before. In PuLP
they are the text to read, and no faster than they need to be; in HiGHS they serve large problems.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from gomr.allocation import Rates
from gomr.engines.by_edges.model import RoutingModel, fixed_path_sets
from gomr.engines.by_edges.program import Program
from gomr.engines.result import Cut, EngineResult, nothing
from gomr.engines.span import within_span
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.even_split import spread_in_time
from gomr.objectives import Objective
from gomr.problem import Demand, Problem

_MIN_THROUGHPUT = 0.25
"""A throughput below this, in the unit of rates, asks for a smaller unit."""
_RATE_TOLERANCE = 1e-10
"""A path with less than this share of the largest useful rate is dropped as rounding ..."""
_REQUEST_TOLERANCE = 1e-3
"""... unless it carries this share of its demand, which is then a small one."""
_MIN_LEVEL = 1e-3
"""A level of `max_min` below this share of its limit is searched again under a lower limit."""
_SMALLEST_STEP = 1e-6
_ZERO_LIMIT = 1e-16
"""A limit below this share of the unit of rates is 0: acknowledgements without a way back stop all."""
_ROUNDING = 1e-13
_FAIR_TOLERANCE = 1e-9
"""A rate is fair to this share of it ..."""
_FAIR_TOLERANCE_OF_UNIT = 1e-12
"""... or to this share of the unit of rates."""
_MIN_DUAL = 1e-9
"""A demand whose constraint has a larger dual value than this is one that stops the level of `max_min`."""


Programs = Callable[[TimeBudget], Program]
"""Makes an empty programme; the budget has the name of the engine."""


class ClockedSolver(Protocol):
    """An engine as `gomr.engines.result` wants it, whose clock may be another."""

    def __call__(
        self,
        problem: Problem,
        objective: Objective,
        time_limit_s: float | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> EngineResult:
        """Solve a problem."""


def engine(programs: Programs, name: str) -> ClockedSolver:
    """Return the engine of this name that states its programmes in some form."""
    return partial(solve, programs, name)


def solve(
    programs: Programs,
    name: str,
    problem: Problem,
    objective: Objective,
    time_limit_s: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> EngineResult:
    """Solve a problem; an engine as `gomr.engines.result` wants it, once it is told its programmes and name.

    Raises:
        SolverError: HiGHS failed, or rates are too far apart for it.
    """
    if problem.unit_bps == 0:
        return nothing(problem)
    budget = TimeBudget(name, time_limit_s, clock)
    with within_span(problem, name):
        try:
            return _Stages(problem, budget, programs).solve(objective)
        except OutOfTime:
            return budget.result_so_far(problem)


class _Stages:
    """The programmes of a problem, one after another."""

    def __init__(self, problem: Problem, budget: TimeBudget, programs: Programs) -> None:
        self._problem = problem
        self._budget = budget
        self._programs = programs
        self._path_sets = fixed_path_sets(problem)

    def solve(self, objective: Objective) -> EngineResult:
        """Return the answer under an objective."""
        if objective.by_level:
            return self._max_min()
        answer = self._route(objective)
        if objective.evens_split:
            rates, complete = spread_in_time(self._problem, answer.rates, self._budget)
            return replace(answer, rates=rates, complete=complete)
        return answer

    def _model(self, problem: Problem, scale: float) -> RoutingModel:
        return RoutingModel(problem, scale, self._path_sets, self._programs(self._budget))

    def _of_most_throughput(self) -> tuple[RoutingModel, float]:
        """Return the model, solved for the throughput, in a unit of rates that shows it; and the unit."""
        scale = self._problem.unit_bps
        while True:
            model = self._model(self._problem, scale)
            admitted = -model.program.minimise(model.unserved)
            if admitted >= _MIN_THROUGHPUT or admitted == 0:
                return model, scale
            scale *= math.ldexp(1.0, math.frexp(max(admitted, 1e-6))[1])

    def _route(self, objective: Objective) -> EngineResult:
        """Maximise the first objective, then what comes between, then minimise the delay."""
        model, scale = self._of_most_throughput()
        if objective.by_parts:
            model.program.minimise(model.worthless(objective))
        prices = model.prices()
        if self._budget.has_limit:
            first = EngineResult(_without_rounding(self._problem, model.rates(), scale), prices)
            self._budget.keep(lambda: first)
        model.program.keep_optimum()
        if objective.evens_load:
            self._budget.stage = "utilisation"
            model.program.minimise(model.utilisation())
            model.program.keep_optimum()
        self._budget.stage = "delay"
        model.program.minimise(model.delay)
        return EngineResult(_without_rounding(self._problem, model.rates(), scale), prices)

    def _max_min(self) -> EngineResult:
        """Raise all demands together; what stops stays where it is, and the rest rises on."""
        problem, budget = self._problem, self._budget
        budget.stage = "levels"
        model = self._model(problem, problem.unit_bps)
        held = {
            demand.id: 0.0
            for demand in problem.demands
            if demand.rate_bps == 0 or not model.can_get_something(demand)
        }
        cuts = [Cut({}, tuple(held))]
        while rising := [demand for demand in problem.demands if demand.id not in held]:
            budget.learn(settled_demands=len(held))
            level_bps, cut = self._raise(rising, held)
            cuts.append(cut)
            for demand in rising:
                reached_bps = level_bps * demand.weight
                at_request = demand.rate_bps <= reached_bps * (1 + _MIN_DUAL)
                if at_request or demand.id in cut.stopped:
                    exact = demand.rate_bps <= reached_bps * (1 + _ROUNDING)
                    held[demand.id] = demand.rate_bps if exact else min(demand.rate_bps, reached_bps)
            if all(demand.id not in held for demand in rising):
                raise budget.failure(f"max_min found nothing that stops a level of {level_bps:.6g} bit/s")
        budget.stage = "delay"
        routed = _asking(problem, held)
        if routed.unit_bps == 0:
            return EngineResult(nothing(problem).rates, cuts=tuple(cuts))
        model = self._model(routed, routed.unit_bps)
        model.hold_admitted(held)
        model.program.minimise(model.delay, refine=True)
        rates = model.rates()
        self._check_fair(held, rates)
        return EngineResult(rates, cuts=tuple(cuts))

    def _check_fair(self, fair_bps: Mapping[str, float], rates: Rates) -> None:
        """Check that the rates on paths are the fair ones.

        Raises:
            SolverError: One is not; the engine must not pass it off as such.
        """
        lost_bps = _FAIR_TOLERANCE_OF_UNIT * self._problem.unit_bps
        for demand in self._problem.demands:
            fair, carried_bps = fair_bps[demand.id], math.fsum(rate_bps for _, rate_bps in rates[demand.id])
            if abs(fair - carried_bps) > max(_FAIR_TOLERANCE * fair, lost_bps):
                raise self._budget.failure(
                    f"max_min gives demands[{demand.id}] {fair:.9g} bit/s, but its paths carry "
                    f"{carried_bps:.9g}; use the engine native and report the problem"
                )

    def _raise(self, rising: list[Demand], held: Mapping[str, float]) -> tuple[float, Cut]:
        """Return the highest level of the rising demands (bit/s per weight), and what stops it.

        Each programme is in a unit of the level it looks for, so that no level lies in HiGHS's tolerance.
        """
        limit_bps = min(demand.rate_bps / demand.weight for demand in rising)
        while True:
            # Twice what the limit grants: what a demand asks for must not be what seems to stop it.
            grown = {demand.id: min(demand.rate_bps, 2 * demand.weight * limit_bps) for demand in rising}
            asked = {**held, **grown}
            scaled = _asking(self._problem, asked)
            model = self._model(scaled, scaled.unit_bps)
            model.hold_at_least(held)
            level, rows = model.raise_together(rising, limit_bps)
            model.program.minimise([(level, -1.0)], refine=True)
            level_bps = model.program.value(level) * scaled.unit_bps
            if level_bps >= _MIN_LEVEL * limit_bps or limit_bps < _ZERO_LIMIT * self._problem.unit_bps:
                stopped = tuple(name for name, row in rows.items() if -model.program.dual(row) > _MIN_DUAL)
                return level_bps, Cut(model.prices(), stopped)
            limit_bps *= max(2 * level_bps / limit_bps, _SMALLEST_STEP)


def _asking(problem: Problem, rates_bps: Mapping[str, float]) -> Problem:
    """Return the problem with other requests."""
    demands = tuple(replace(demand, rate_bps=rates_bps[demand.id]) for demand in problem.demands)
    return replace(problem, demands=demands)


def _without_rounding(problem: Problem, rates: Rates, scale: float) -> Rates:
    return {
        demand.id: [
            (path, rate)
            for path, rate in rates[demand.id]
            if rate > min(_RATE_TOLERANCE * scale, _REQUEST_TOLERANCE * demand.rate_bps)
        ]
        for demand in problem.demands
    }
