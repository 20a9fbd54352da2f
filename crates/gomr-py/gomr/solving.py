"""`solve`: a problem, an objective and an engine in, a checked and certified allocation out.

Engines differ in how they find rates. What makes an `Allocation` of them is the same for all (`assemble`):
rates are brought within the limits, checked, and held against a bound that does not trust the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from gomr.allocation import Allocation
from gomr.columns import DemandColumns
from gomr.engines.assembly import assemble
from gomr.engines.result import Solver
from gomr.errors import InvalidProblem
from gomr.objectives import objective_of
from gomr.paths.limits import solve_within_limits
from gomr.problem import Problem

DEFAULT_ENGINE = "native"


def _load_native() -> Solver:
    from gomr.engines.native import engine

    return engine.solve


def _load_highs() -> Solver:
    from gomr.engines.by_edges.engine import engine
    from gomr.engines.by_edges.highs_program import HighsProgram  # HiGHS is loaded when it is first used

    return engine(HighsProgram, "highs")


def _load_pulp() -> Solver:
    from gomr.engines.by_edges.engine import engine
    from gomr.engines.by_edges.pulp_program import PulpProgram  # and so is PuLP

    return engine(PulpProgram, "pulp")


ENGINES: dict[str, Callable[[], Solver]] = {
    "native": _load_native,
    "highs": _load_highs,
    "pulp": _load_pulp,
}
"""How to load each engine, by name; another one can be added. Every engine serves every objective."""


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
    allocation = assemble(problem, routed, wanted, engine, answer)
    return replace(allocation, wall_s=clock() - started)


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
