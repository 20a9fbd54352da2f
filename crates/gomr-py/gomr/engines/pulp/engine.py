"""The reference engine: complete, short, exact, and no faster than it needs to be.

It solves the programmes of README.md one after another. Each keeps the optimum of the one before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from gomr.allocation import Rates, edge_loads
from gomr.engines.answer import Answer, Cut, nothing
from gomr.engines.assembly import fit
from gomr.engines.levels import asking, check_fair
from gomr.engines.pulp.model import PathSets, RoutingModel, fixed_path_sets
from gomr.engines.pulp.program import dual, value
from gomr.engines.span import within_span
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.objectives import Objective
from gomr.problem import Demand, Problem

_SMALL = 0.25
"""A throughput below this, in the unit of rates, asks for a smaller unit."""
_RATE_TOLERANCE = 1e-10
"""A path with less than this share of the largest useful rate is dropped as rounding ..."""
_REQUEST_TOLERANCE = 1e-3
"""... unless it carries this share of its demand, which is then a small one."""
_SMALL_LEVEL = 1e-3
"""A level of `max_min` below this share of its limit is searched again under a lower limit."""
_SMALLEST_STEP = 1e-6
_NOTHING = 1e-16
"""A limit below this share of the unit of rates is 0: acknowledgements without a way back stop all."""
_ROUNDING = 1e-13
_STOPS = 1e-9
"""A demand whose constraint has a larger dual value than this is one that stops the level of `max_min`."""


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
    budget = TimeBudget("pulp", time_limit_s, clock)
    with within_span(problem, "pulp"):
        try:
            return _solve(problem, objective, budget)
        except OutOfTime:
            return budget.answer_so_far(problem)


def _solve(problem: Problem, objective: Objective, budget: TimeBudget) -> Answer:
    path_sets = fixed_path_sets(problem)
    if objective.by_level:
        return _max_min(problem, path_sets, budget)
    scale = _scale(problem, path_sets, budget)
    answer = _route(problem, objective, path_sets, scale, budget)
    if objective.evens_split:
        budget.keep(lambda: answer)
        budget.stage = "even split"
        return replace(answer, rates=_spread(problem, answer.rates, budget))
    return answer


def _scale(problem: Problem, path_sets: PathSets, budget: TimeBudget) -> float:
    """Return a unit of rates in which what can be admitted is not lost in the solver's tolerance."""
    scale = problem.unit_bps
    while True:
        model = RoutingModel(problem, scale, path_sets, budget)
        admitted = -model.program.minimise(model.unserved)
        if admitted >= _SMALL or admitted == 0:
            return scale
        scale *= math.ldexp(1.0, math.frexp(max(admitted, 1e-6))[1])


def _route(
    problem: Problem, objective: Objective, path_sets: PathSets, scale: float, budget: TimeBudget
) -> Answer:
    """Maximise the first objective, then what comes between, then minimise the delay."""
    model = RoutingModel(problem, scale, path_sets, budget)
    model.program.minimise(model.worthless(objective))
    prices = model.prices()
    if budget.has_limit:
        first = Answer(_without_rounding(problem, model.rates(), scale), prices)
        budget.keep(lambda: first)
    model.program.keep_optimum()
    if objective.evens_load:
        budget.stage = "utilisation"
        model.program.minimise(model.utilisation())
        model.program.keep_optimum()
    budget.stage = "delay"
    model.program.minimise(model.delay)
    return Answer(_without_rounding(problem, model.rates(), scale), prices)


def _max_min(problem: Problem, path_sets: PathSets, budget: TimeBudget) -> Answer:
    """Raise all demands together; what stops stays where it is, and the rest rises on."""
    budget.stage = "levels"
    model = RoutingModel(problem, problem.unit_bps, path_sets, budget)
    held = {
        demand.id: 0.0
        for demand in problem.demands
        if demand.rate_bps == 0 or not model.can_get_something(demand)
    }
    cuts = [Cut({}, tuple(held))]
    while rising := [demand for demand in problem.demands if demand.id not in held]:
        budget.learn(settled_demands=len(held))
        level_bps, cut = _raise(problem, path_sets, rising, held, budget)
        cuts.append(cut)
        for demand in rising:
            reached_bps = level_bps * demand.weight
            at_request = demand.rate_bps <= reached_bps * (1 + _STOPS)
            if at_request or demand.id in cut.stopped:
                exact = demand.rate_bps <= reached_bps * (1 + _ROUNDING)
                held[demand.id] = demand.rate_bps if exact else min(demand.rate_bps, reached_bps)
        if all(demand.id not in held for demand in rising):
            raise budget.failure(f"max_min found nothing that stops a level of {level_bps:.6g} bit/s")
    budget.stage = "delay"
    routed = asking(problem, held)
    if routed.unit_bps == 0:
        return Answer(nothing(problem).rates, cuts=tuple(cuts))
    model = RoutingModel(routed, routed.unit_bps, path_sets, budget)
    model.hold_admitted(held)
    model.program.minimise(model.delay, refine=True)
    rates = model.rates()
    check_fair(problem, held, rates, budget)
    return Answer(rates, cuts=tuple(cuts))


def _raise(
    problem: Problem, path_sets: PathSets, rising: list[Demand], held: Mapping[str, float], budget: TimeBudget
) -> tuple[float, Cut]:
    """Return the highest level of the rising demands (bit/s per weight), and what stops it.

    Each programme is in a unit of the level it looks for, so that no level lies in HiGHS's tolerance.
    """
    limit_bps = min(demand.rate_bps / demand.weight for demand in rising)
    while True:
        # Twice what the limit grants: what a demand asks for must not be what seems to stop it.
        grown = {demand.id: min(demand.rate_bps, 2 * demand.weight * limit_bps) for demand in rising}
        asked = {**held, **grown}
        scaled = asking(problem, asked)
        model = RoutingModel(scaled, scaled.unit_bps, path_sets, budget)
        model.hold_at_least(held)
        level, rows = model.raise_together(rising, limit_bps)
        model.program.minimise([(level, -1.0)], refine=True)
        level_bps = value(level) * scaled.unit_bps
        if level_bps >= _SMALL_LEVEL * limit_bps or limit_bps < _NOTHING * problem.unit_bps:
            stopped = tuple(name for name, row in rows.items() if -dual(row) > _STOPS)
            return level_bps, Cut(model.prices(), stopped)
        limit_bps *= max(2 * level_bps / limit_bps, _SMALLEST_STEP)


def _without_rounding(problem: Problem, rates: Rates, scale: float) -> Rates:
    return {
        demand.id: [
            (path, rate)
            for path, rate in rates[demand.id]
            if rate > min(_RATE_TOLERANCE * scale, _REQUEST_TOLERANCE * demand.rate_bps)
        ]
        for demand in problem.demands
    }


def _spread(problem: Problem, rates: Rates, budget: TimeBudget) -> Rates:
    """Spread what every demand gets over the paths it has, as evenly as the capacities allow."""
    rates = fit(problem, rates)
    split = tuple(demand for demand in problem.demands if len(rates[demand.id]) > 1)
    if not split:
        return rates
    # Demands with one path have nothing to spread: they only take capacity.
    loads = edge_loads(problem, {**rates, **{demand.id: () for demand in split}})
    own = edge_loads(replace(problem, demands=split), rates)
    edges = tuple(
        # What they have fits, however the difference of two large numbers is rounded.
        replace(edge, capacity_bps=max(own[edge.id], edge.capacity_bps - loads[edge.id]))
        for edge in problem.edges
    )
    rest = replace(problem, edges=edges, demands=split)
    used = {demand.id: tuple(path for path, _ in rates[demand.id]) for demand in split}
    largest_bps = max(rate for demand in split for _, rate in rates[demand.id])
    model = RoutingModel(rest, math.ldexp(1.0, math.frexp(largest_bps)[1]), used, budget)
    model.hold_admitted({name: math.fsum(rate for _, rate in paths) for name, paths in rates.items()})
    model.program.minimise(model.largest_rates())
    if any(len(paths) > 2 for paths in used.values()):
        # The largest rate settles two paths; what lies below it among more is settled here.
        model.program.keep_optimum()
        model.program.minimise(model.differences())
    return {**rates, **model.rates()}
