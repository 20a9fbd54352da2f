"""Limits that no linear programme knows: at most this many paths, and paths that share nothing.

The problem is solved without them first; basic solutions split few flows, so they are often kept unasked and
the answer is optimal. If not, the demands that have such limits are bound to paths that keep them
(`paths.choice`), and the engine finds the best rates on these. README.md says what is promised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gomr.allocation import Rates
from gomr.columns import DemandColumns
from gomr.engines.assembly import fit
from gomr.engines.result import EngineResult, Solver
from gomr.engines.time_budget import OutOfTime
from gomr.errors import SolverError
from gomr.objectives import Objective
from gomr.paths.finder import are_disjoint
from gomr.problem import Demand, Path, Problem

Choice = Mapping[str, tuple[Path, ...]]
"""The paths of demands with limits, by their ids."""


def solve_within_limits(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    time_limit_s: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> EngineResult:
    """Solve with an engine that knows neither `max_paths` nor `disjoint`, and keep both.

    Args:
        problem: The problem, without demands that stay at their source.
        objective: The objective.
        engine: The engine.
        time_limit_s: Seconds for all of it; None for no limit.
        clock: Seconds.

    Returns:
        The rates; prices and bound are those of the problem without these limits, `most_bps` knows them.

    Raises:
        SolverError: A solver failed.
    """
    started = clock()
    free = engine(problem, objective, time_limit_s)
    if keeps_limits(problem, free.rates):
        return free

    def left_s() -> float | None:
        return None if time_limit_s is None else max(0.0, time_limit_s - (clock() - started))

    def over(chosen: Choice) -> EngineResult:
        """Return the best rates on chosen paths; prices and bound stay those of `free`.

        Raises:
            OutOfTime: The engine did not come to its end.
        """
        demands = tuple(
            replace(demand, fixed_paths=_ids(chosen[demand.id])) if chosen.get(demand.id) else demand
            for demand in problem.demands
        )
        bound = engine(replace(problem, demands=demands), objective, left_s())
        if not bound.complete:
            raise OutOfTime("limits", "the time is up before the best rates on the chosen paths")
        native = free.native and bound.native and free.native.with_paths_of(bound.native)
        return replace(free, rates=bound.rates, native=native)

    if free.complete:
        try:
            return _best_choice(problem, objective, free, over, left_s)
        except OutOfTime:
            pass
    trimmed = trimmed_to_limits(problem, fit(problem, free.rates))
    return replace(free, rates=trimmed, complete=False, native=None)


def _best_choice(
    problem: Problem,
    objective: Objective,
    free: EngineResult,
    over: Callable[[Choice], EngineResult],
    left_s: Callable[[], float | None],
) -> EngineResult:
    """Return the best rates on paths chosen among candidates and, where that can be done, among all paths."""
    from gomr.paths.choice import can_search, candidates_of, choices, search  # loads HiGHS

    def worth(answer: EngineResult) -> list[float]:
        """Return what the objective compares first, without rounding: the value, or the levels by size."""
        admitted = {name: math.fsum(rate for _, rate in paths) for name, paths in answer.rates.items()}
        values = [objective.value_bps(problem.demands, admitted)]
        if objective.by_level:
            values = sorted(admitted[demand.id] / demand.weight for demand in problem.demands)
        return [float(f"{value:.9g}") for value in values]

    candidates = candidates_of(problem, free.rates)
    steps = choices(problem, objective, candidates, left_s())
    chosen = next(steps)
    best = over(chosen)
    if objective.by_level:  # the programmes know no levels
        kept = trimmed_to_limits(problem, free.rates)
        widest = {name: tuple(path for path, _ in kept[name]) or chosen[name] for name in candidates}
        best = max(best, over(widest), key=worth)

    def with_least_delay(best: EngineResult) -> EngineResult:
        """Return an answer, or one as good on the choices that follow, for which a search need not wait."""
        try:
            return max([best, *map(over, steps)][::-1], key=worth)
        except OutOfTime:
            return replace(best, complete=False)

    if worth(best) >= worth(free) or not can_search(problem):
        return with_least_delay(best)
    left = left_s()
    try:
        found = search(problem, objective, candidates, None if left is None else left / 2)
    except SolverError:
        return with_least_delay(best)  # rates too far apart for HiGHS: the bound without the limits stands
    best = replace(
        best,
        complete=not found.timed_out,
        most_bps=None if objective.by_level else found.bound_bps,
    )
    more = {
        name: tuple(dict.fromkeys((*own, *found.paths.get(name, ())))) for name, own in candidates.items()
    }
    try:
        *_, chosen = choices(problem, objective, more, left_s())
        other = over(chosen)
    except OutOfTime:
        return replace(best, complete=False)
    if worth(other) < worth(best):
        return replace(with_least_delay(best), complete=best.complete, most_bps=best.most_bps)
    return replace(other, complete=best.complete, most_bps=best.most_bps)


def trimmed_to_limits(problem: Problem, rates: Rates) -> Rates:
    """Return the rates without those paths of limited demands that limits forbid; the largest rates stay."""
    kept = {demand.id: rates[demand.id] for demand in problem.demands}
    for demand in filter(is_limited, problem.demands):
        own = {path: rate_bps for path, rate_bps in rates[demand.id] if rate_bps > 0}
        first = first_within(demand, sorted(own, key=lambda path: -own[path]))
        kept[demand.id] = [(path, own[path]) for path in first]
    return kept


def is_limited(demand: Demand) -> bool:
    """Return whether the demand has a limit that engines do not know."""
    return demand.max_paths is not None or demand.disjoint is not None


def keeps_limits(problem: Problem, rates: Rates) -> bool:
    """Return whether no demand uses too many paths, or paths that share what they must not."""
    return isinstance(problem.demands, DemandColumns) or all(
        within_limits(demand, [path for path, rate_bps in rates[demand.id] if rate_bps > 0])
        for demand in filter(is_limited, problem.demands)
    )


def within_limits(demand: Demand, used: Sequence[Path]) -> bool:
    """Return whether a demand may use these paths together."""
    if demand.max_paths is not None and len(used) > demand.max_paths:
        return False
    return demand.disjoint is None or are_disjoint(used, nodes=demand.disjoint == "nodes")


def first_within(demand: Demand, paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths, one after another, that the demand may use beside those before."""
    kept: list[Path] = []
    for path in paths:
        if within_limits(demand, [*kept, path]):
            kept.append(path)
    return tuple(kept)


def _ids(paths: Sequence[Path]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(edge.id for edge in path) for path in paths)
