"""`solve`: a problem, an objective and an engine in, a checked and certified allocation out.

Engines differ in how they find rates. What makes an `Allocation` of them is the same for all and lies here:
rates are brought within the limits, checked, and held against a bound that does not trust the engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from gomr.allocation import (
    Allocation,
    PathRate,
    Rates,
    edge_loads,
    fit,
    largest_violation_bps,
    max_utilisation,
    path_rates,
)
from gomr.certificate import bound_bps
from gomr.columns import DemandColumns
from gomr.engines.answer import Answer, Solver
from gomr.engines.native import assembly
from gomr.errors import InvalidProblem, SolverError
from gomr.objectives import Objective, objective_of
from gomr.paths.limits import solve_within_limits
from gomr.problem import Demand, Problem

DEFAULT_ENGINE = "native"

_TRUSTED = 1e-6
"""An engine whose rates are over a limit by more than this share of the largest capacity has failed."""


def _load_native() -> Solver:
    from gomr.engines.native import engine

    return engine.solve


def _load_highs() -> Solver:
    from gomr.engines.highs import engine  # HiGHS and numpy are loaded when they are first used

    return engine.solve


def _load_pulp() -> Solver:
    from gomr.engines.pulp import engine  # PuLP is loaded when it is first used

    return engine.solve


ENGINES: Mapping[str, Callable[[], Solver]] = {
    "native": _load_native,
    "highs": _load_highs,
    "pulp": _load_pulp,
}
"""How to load each engine, by name. Every engine serves every objective."""


def allocate(
    problem: Problem,
    objective: str = "max_throughput_min_delay",
    engine: str = DEFAULT_ENGINE,
    *,
    time_limit_s: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Allocation:
    """Route a problem's demands.

    Equal problems give equal allocations.

    Args:
        problem: What to route, and over what.
        objective: A name in `OBJECTIVES`.
        engine: A name in `ENGINES`.
        time_limit_s: Seconds that it may take; None for no limit. Where they are not enough, the answer is
            the best so far: within all limits, `timed_out`, and `gap` proves how far it can be from the best.
        clock: Seconds, for `Allocation.wall_s`.

    Returns:
        The optimal allocation. With `Demand.max_paths` on a few demands it is the best over all paths where
        the search for them ends (README.md); with many, and with `disjoint`, the best over candidates. `gap`
        tells how far it can be from the best of all.

    Raises:
        InvalidProblem: There is no such objective or engine, or the time limit is no number.
        SolverError: The engine failed.
    """
    check_names(objective, engine, time_limit_s)
    started = clock()
    routed = without_local(problem)
    wanted = objective_of(objective)
    answer = solve_within_limits(routed, wanted, ENGINES[engine](), time_limit_s)
    if answer.native is not None:
        checked = assembly.assemble(problem, routed, wanted, engine, answer.native)
    else:
        checked = assemble(problem, routed, wanted, engine, answer)
    if answer.most_bps is not None:
        checked = _bounded(problem, checked, answer.most_bps)
    return replace(checked, wall_s=clock() - started)


def _bounded(problem: Problem, allocation: Allocation, most_bps: float) -> Allocation:
    """Return the allocation with the better of its bound and one on what is routed."""
    local = [demand for demand in problem.demands if demand.is_local]
    own_bps = {demand.id: demand.rate_bps for demand in local}
    local_bps = objective_of(allocation.objective).value_bps(local, own_bps)
    bound_bps = max(allocation.value_bps, min(allocation.upper_bound_bps, most_bps + local_bps))
    gap = max(0.0, 1 - allocation.value_bps / bound_bps) if bound_bps > 0 else 0.0
    return replace(allocation, upper_bound_bps=bound_bps, gap=gap)


def check_names(objective: str, engine: str, time_limit_s: float | None) -> None:
    """Check what a caller chooses; InvalidProblem names the argument that is wrong."""
    objective_of(objective)
    if engine not in ENGINES:
        raise InvalidProblem("engine", f"{engine!r} is not one of {', '.join(ENGINES)}")
    check_time_limit(time_limit_s)


def check_time_limit(time_limit_s: float | None) -> None:
    """Raise InvalidProblem where it is no number of seconds; None is no limit."""
    if time_limit_s is not None and not time_limit_s >= 0:
        raise InvalidProblem("time_limit_s", f"must be a number of at least 0, not {time_limit_s}")


def without_local(problem: Problem) -> Problem:
    """Return the problem without the demands that stay at their source."""
    if isinstance(problem.demands, DemandColumns):
        routed = problem.demands.routed()
        return problem if routed is problem.demands else replace(problem, demands=routed)
    if not any(demand.is_local for demand in problem.demands):
        return problem
    return replace(problem, demands=tuple(demand for demand in problem.demands if not demand.is_local))


def assemble(
    problem: Problem, routed: Problem, objective: Objective, engine: str, answer: Answer
) -> Allocation:
    """Check an engine's answer and put the allocation together.

    Args:
        problem: The problem.
        routed: The same without the demands that stay at their source, which no engine sees.
        objective: The objective.
        engine: Name of the engine.
        answer: What the engine found for `routed`.

    Returns:
        The allocation; its `wall_s` is 0.

    Raises:
        SolverError: The rates are far over a limit.
    """
    rates, loads_bps, over_bps = _within_limits(routed, engine, answer.rates)
    local = {} if routed is problem else {d.id: local_paths(d) for d in problem.demands if d.is_local}
    paths = {d.id: local[d.id] if d.id in local else path_rates(rates[d.id]) for d in problem.demands}
    every = [path for own in paths.values() for path in own]
    admitted = {name: math.fsum([path.rate_bps for path in own]) for name, own in paths.items()}
    local_bps = objective.value_bps([d for d in problem.demands if d.id in local], admitted)
    reached_bps = objective.value_bps(problem.demands, admitted)
    bound = local_bps + bound_bps(routed, objective, answer, admitted)
    return Allocation(
        paths=paths,
        admitted_bps=math.fsum([path.rate_bps for path in every]),
        requested_bps=math.fsum([demand.rate_bps for demand in problem.demands]),
        cost_bps_s=math.fsum([path.delay_s * path.rate_bps for path in every]),
        objective=objective.name,
        engine=engine,
        upper_bound_bps=bound,
        gap=max(0.0, 1 - reached_bps / bound) if bound > 0 else 0.0,
        max_violation_bps=over_bps,
        wall_s=0.0,
        value_bps=reached_bps,
        max_utilisation=max_utilisation(routed, loads_bps),
        timed_out=not answer.complete,
        prices=answer.prices,
    )


def local_paths(demand: Demand) -> tuple[PathRate, ...]:
    """Return the paths of a demand that stays at its source: one without edges."""
    return (PathRate((), (demand.source,), demand.rate_bps, 0.0),) if demand.rate_bps > 0 else ()


def _within_limits(problem: Problem, engine: str, rates: Rates) -> tuple[Rates, Mapping[str, float], float]:
    """Return the rates within all limits, the load of every edge, and the largest violation that is left."""
    trusted_bps = _TRUSTED * max(edge.capacity_bps for edge in problem.edges)
    loads_bps = edge_loads(problem, rates)
    over_bps = largest_violation_bps(problem, rates, loads_bps)
    if over_bps > trusted_bps:
        raise SolverError(
            engine, f"its rates are over a limit by {over_bps:.6g} bit/s; please report the problem"
        )
    fitted = fit(problem, rates, loads_bps)
    if fitted is not rates:
        loads_bps = edge_loads(problem, fitted)
        over_bps = largest_violation_bps(problem, fitted, loads_bps)
    return fitted, loads_bps, over_bps
