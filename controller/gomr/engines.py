"""`solve`: a problem, an objective and an engine in, a checked and certified allocation out.

Engines differ in how they find rates. What makes an `Allocation` of them is the same for all and lies here:
rates are brought within the limits, checked, and held against a bound that does not trust the engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controller.errors import InvalidProblem, SolverError
from controller.gomr.allocation import Allocation, Rates, fit, largest_violation_bps, path_rates
from controller.gomr.certificate import upper_bound_bps
from controller.gomr.problem import Problem

OBJECTIVES: Mapping[str, str] = {
    "max_throughput_min_delay": "admit as much as possible, then keep the mean delay lowest",
    "even_split": "the same rates and paths, then spread each flow evenly over its paths",
}
"""One line on each objective, by name; README.md has the formulas."""

_TRUSTED = 1e-6
"""An engine whose rates are over a limit by more than this share of the largest capacity has failed."""


@dataclass(frozen=True)
class Answer:
    """What an engine finds.

    Attributes:
        rates: Paths and rates of every demand.
        prices: For each edge, what one more bit/s of it would admit: the dual values of maximising the
            throughput. Missing ones count as 0.
    """

    rates: Rates
    prices: Mapping[str, float]


Engine = Callable[[Problem, str, float | None], Answer]
"""Takes a problem, the name of an objective, and the seconds of solver time it may take (None: no limit)."""


def _load_pulp() -> Engine:
    from controller.gomr import pulp_engine  # PuLP is loaded when it is first used

    return pulp_engine.solve


ENGINES: Mapping[str, Callable[[], Engine]] = {"pulp": _load_pulp}
"""How to load each engine, by name."""


def solve(
    problem: Problem,
    objective: str = "max_throughput_min_delay",
    engine: str = "pulp",
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
        time_limit_s: Seconds of solver time; None for no limit.
        clock: Seconds, for `Allocation.wall_s`.

    Returns:
        The optimal allocation. With `Demand.max_paths` it is the best over the candidate paths (README.md);
        `gap` tells how far it can be from the best of all.

    Raises:
        InvalidProblem: There is no such objective or engine.
        SolverError: The engine failed or ran out of time; there is no partial answer.
    """
    if objective not in OBJECTIVES:
        raise InvalidProblem("objective", f"{objective!r} is not one of {', '.join(OBJECTIVES)}")
    if engine not in ENGINES:
        raise InvalidProblem("engine", f"{engine!r} is not one of {', '.join(ENGINES)}")
    started = clock()
    answer = ENGINES[engine]()(problem, objective, time_limit_s)
    trusted_bps = _TRUSTED * max(edge.capacity_bps for edge in problem.edges)
    over_bps = largest_violation_bps(problem, answer.rates)
    if over_bps > trusted_bps:
        raise SolverError(
            engine, f"its rates are over a limit by {over_bps:.6g} bit/s; please report the problem"
        )
    rates = fit(problem, answer.rates)
    paths = {demand.id: path_rates(rates[demand.id]) for demand in problem.demands}
    every = [path for demand_paths in paths.values() for path in demand_paths]
    admitted_bps = math.fsum(path.rate_bps for path in every)
    bound_bps = upper_bound_bps(problem, answer.prices)
    return Allocation(
        paths=paths,
        admitted_bps=admitted_bps,
        requested_bps=math.fsum(demand.rate_bps for demand in problem.demands),
        cost_bps_s=math.fsum(path.delay_s * path.rate_bps for path in every),
        objective=objective,
        engine=engine,
        upper_bound_bps=bound_bps,
        gap=max(0.0, 1 - admitted_bps / bound_bps) if bound_bps > 0 else 0.0,
        max_violation_bps=largest_violation_bps(problem, rates),
        wall_s=clock() - started,
    )
