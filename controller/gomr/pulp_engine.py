"""The reference engine: complete, short, exact, and no faster than it needs to be.

It solves the programmes of README.md one after another. Each keeps the optimum of the one before.
"""

from __future__ import annotations

import math
from dataclasses import replace

from controller.gomr.allocation import Rates, edge_loads, fit
from controller.gomr.engines import Answer
from controller.gomr.graph import Graph, Path
from controller.gomr.problem import Demand, Problem
from controller.gomr.pulp_model import PathSets, RoutingModel
from controller.gomr.pulp_program import TimeBudget

_CANDIDATE_PATHS = 8
"""Shortest paths offered to a demand with `max_paths`, besides those of the unlimited optimum."""
_CHOICE_WEIGHTS = (1e4, 1e-3)
"""Weights of the throughput and of the delay (in units of the longest edge's) when paths are chosen.

Their ratio of 1e7 is the promise; they are this large because HiGHS's integer solver takes objectives for
equal that differ by less than about 1e-7, in absolute terms.
"""
_DUST = 1e-9
"""A path with less than this share of the largest useful rate is dropped as rounding ..."""
_DUST_OF_REQUEST = 1e-3
"""... unless it carries this share of its demand, which is then a small one."""


def solve(problem: Problem, objective: str, time_limit_s: float | None) -> Answer:
    """Solve a problem; an engine as `controller.gomr.engines` wants it.

    Raises:
        SolverError: HiGHS failed or ran out of time.
    """
    scale = _scale(problem)
    if scale == 0:
        return Answer({demand.id: () for demand in problem.demands}, prices={})
    budget = TimeBudget(time_limit_s)
    rates, prices = _route(problem, scale, budget)
    if objective == "even_split":
        rates = _spread(problem, rates, budget)
    return Answer(rates, prices)


def _scale(problem: Problem) -> float:
    """Return the unit of rates: the largest useful one, to a power of two, so that scaling rounds nothing."""
    useful_bps = max(problem.useful_capacity_bps(edge) for edge in problem.edges)
    return math.ldexp(1.0, math.frexp(useful_bps)[1]) if useful_bps > 0 else 0.0


def _route(problem: Problem, scale: float, budget: TimeBudget) -> tuple[Rates, dict[str, float]]:
    """Return the rates of least delay at the largest throughput, and the edge prices without path limits."""
    by_id = problem.edges_by_id
    fixed = {
        demand.id: tuple(tuple(by_id[edge_id] for edge_id in path) for path in demand.fixed_paths)
        for demand in problem.demands
        if demand.fixed_paths is not None
    }
    rates, prices = _least_delay(problem, fixed, scale, budget)
    if any(demand.max_paths and len(rates[demand.id]) > demand.max_paths for demand in problem.demands):
        chosen = _choose_paths(problem, fixed, rates, scale, budget)
        rates, _ = _least_delay(problem, fixed | chosen, scale, budget)
    return rates, prices


def _least_delay(
    problem: Problem, path_sets: PathSets, scale: float, budget: TimeBudget
) -> tuple[Rates, dict[str, float]]:
    """Maximise the throughput, then minimise the delay; return the rates and the prices of the first."""
    model = RoutingModel(problem, scale, path_sets, budget)
    model.program.minimise(model.unserved)
    prices = model.prices()
    model.program.keep_optimum()
    model.program.minimise(model.delay)
    return _without_dust(problem, model.rates(), scale), prices


def _without_dust(problem: Problem, rates: Rates, scale: float) -> Rates:
    return {
        demand.id: [
            (path, rate)
            for path, rate in rates[demand.id]
            if rate > min(_DUST * scale, _DUST_OF_REQUEST * demand.rate_bps)
        ]
        for demand in problem.demands
    }


def _choose_paths(
    problem: Problem, fixed: PathSets, rates: Rates, scale: float, budget: TimeBudget
) -> dict[str, tuple[Path, ...]]:
    """Choose at most `max_paths` of the candidate paths of each limited demand, by a mixed-integer programme.

    It serves for the choice alone: the rates on the chosen paths come from linear programmes, free of the
    integer solver's tolerances.
    """
    candidates = {
        demand.id: fixed.get(demand.id) or _candidates(problem, demand, rates)
        for demand in problem.demands
        if demand.max_paths is not None
    }
    model = RoutingModel(problem, scale, {**fixed, **candidates}, budget)
    for demand in problem.demands:
        if demand.max_paths is not None and len(candidates[demand.id]) > demand.max_paths:
            model.limit_paths(demand, demand.max_paths)
    throughput_weight, delay_weight = _CHOICE_WEIGHTS
    unserved = [(variable, throughput_weight * factor) for variable, factor in model.unserved]
    delay = [(variable, delay_weight * cost) for variable, cost in model.delay]
    model.program.minimise(unserved + delay)
    return candidates | model.chosen_paths()


def _candidates(problem: Problem, demand: Demand, rates: Rates) -> tuple[Path, ...]:
    """Return the paths a limited demand may choose from: those of the unlimited optimum, and the shortest."""
    graph = Graph([edge for edge in problem.edges if edge.capacity_bps > 0], problem.endpoints)
    shortest = graph.shortest_paths(
        demand.source, demand.destination, _CANDIDATE_PATHS, lambda edge: edge.delay_s
    )
    return tuple(dict.fromkeys([*(path for path, _ in rates[demand.id]), *shortest]))


def _spread(problem: Problem, rates: Rates, budget: TimeBudget) -> Rates:
    """Spread what every demand gets over the paths it has, as evenly as the capacities allow."""
    rates = fit(problem, rates)
    split = tuple(demand for demand in problem.demands if len(rates[demand.id]) > 1)
    if not split:
        return rates
    # Demands with one path have nothing to spread: they only take capacity.
    loads = edge_loads(problem, {**rates, **{demand.id: () for demand in split}})
    edges = tuple(
        replace(edge, capacity_bps=max(0.0, edge.capacity_bps - loads[edge.id])) for edge in problem.edges
    )
    rest = replace(problem, edges=edges, demands=split)
    used = {demand.id: tuple(path for path, _ in rates[demand.id]) for demand in split}
    model = RoutingModel(rest, _scale(rest), used, budget)
    model.hold_admitted(rates)
    model.program.minimise(model.largest_rates())
    if any(len(paths) > 2 for paths in used.values()):
        # The largest rate settles two paths; what lies below it among more is settled here.
        model.program.keep_optimum()
        model.program.minimise(model.differences())
    return {**rates, **model.rates()}
