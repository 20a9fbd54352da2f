"""The reference engine: complete, short, exact, and no faster than it needs to be.

It solves the programmes of README.md one after another. Each keeps the optimum of the one before.
"""

from __future__ import annotations

import math
from dataclasses import replace

from controller.errors import SolverError
from controller.gomr.allocation import Rates, edge_loads, fit
from controller.gomr.answer import Answer, Cut, nothing
from controller.gomr.problem import Problem
from controller.gomr.pulp_model import PathSets, RoutingModel, fixed_path_sets
from controller.gomr.pulp_program import TimeBudget, dual, value

_SMALL = 0.25
"""A throughput below this, in the unit of rates, asks for a smaller unit."""
_DUST = 1e-10
"""A path with less than this share of the largest useful rate is dropped as rounding ..."""
_DUST_OF_REQUEST = 1e-3
"""... unless it carries this share of its demand, which is then a small one."""
_STOPS = 1e-9
"""A demand whose constraint has a larger dual value than this is one that stops the level of `max_min`."""


def solve(problem: Problem, objective: str, time_limit_s: float | None) -> Answer:
    """Solve a problem; an engine as `controller.gomr.answer` wants it.

    Raises:
        SolverError: HiGHS failed or ran out of time.
    """
    if problem.unit_bps == 0:
        return nothing(problem)
    budget = TimeBudget(time_limit_s)
    path_sets = fixed_path_sets(problem)
    scale = _scale(problem, path_sets, budget)
    if objective == "max_min":
        return _max_min(problem, path_sets, scale, budget)
    answer = _route(problem, objective, path_sets, scale, budget)
    if objective == "even_split":
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


def _route(problem: Problem, objective: str, path_sets: PathSets, scale: float, budget: TimeBudget) -> Answer:
    """Maximise the first objective, then what comes between, then minimise the delay."""
    model = RoutingModel(problem, scale, path_sets, budget)
    model.program.minimise(model.worthless(objective))
    prices = model.prices()
    model.program.keep_optimum()
    if objective == "min_max_utilisation":
        model.program.minimise(model.utilisation())
        model.program.keep_optimum()
    model.program.minimise(model.delay)
    return Answer(_without_dust(problem, model.rates(), scale), prices)


def _max_min(problem: Problem, path_sets: PathSets, scale: float, budget: TimeBudget) -> Answer:
    """Raise all demands together; what stops stays where it is, and the rest rises on."""
    model = RoutingModel(problem, scale, path_sets, budget)
    held = {demand.id: 0.0 for demand in problem.demands if not model.can_get_something(demand)}
    cuts = [Cut({}, tuple(held))]
    while rising := [demand for demand in problem.demands if demand.id not in held]:
        limit_bps = min(demand.rate_bps / demand.weight for demand in rising)
        model = RoutingModel(problem, scale, path_sets, budget)
        model.hold_at_least(held)
        level, rows = model.raise_together(rising, limit_bps)
        model.program.minimise([(level, -1.0)])
        level_bps = value(level) * scale
        stopped = tuple(name for name, row in rows.items() if -dual(row) > _STOPS)
        cuts.append(Cut(model.prices(), stopped))
        for demand in rising:
            at_request = demand.rate_bps / demand.weight <= level_bps * (1 + _STOPS)
            if at_request or demand.id in stopped:
                held[demand.id] = demand.rate_bps if at_request else level_bps * demand.weight
        if all(demand.id not in held for demand in rising):
            raise SolverError("pulp", f"max_min found nothing that stops a level of {level_bps:.6g} bit/s")
    model = RoutingModel(problem, scale, path_sets, budget)
    model.hold_admitted(held)
    model.program.minimise(model.delay)
    return Answer(_without_dust(problem, model.rates(), scale), cuts=tuple(cuts))


def _without_dust(problem: Problem, rates: Rates, scale: float) -> Rates:
    return {
        demand.id: [
            (path, rate)
            for path, rate in rates[demand.id]
            if rate > min(_DUST * scale, _DUST_OF_REQUEST * demand.rate_bps)
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
