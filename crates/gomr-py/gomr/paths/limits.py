"""Limits that no linear programme knows: at most so many paths, and paths that share nothing.

The problem is solved without them first; basic solutions split few flows, so they are often kept unasked and
the answer is optimal. If not, the demands that have such limits are bound to paths that keep them
(`path_choice`), and the engine finds the best rates on these. README.md says what is promised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gomr.allocation import Rates
from gomr.columns import DemandColumns
from gomr.engines.answer import Answer, Solver
from gomr.engines.assembly import fit
from gomr.engines.time_budget import OutOfTime
from gomr.errors import SolverError
from gomr.objectives import Objective
from gomr.paths.finder import are_disjoint
from gomr.problem import Demand, Path, Problem

_CANDIDATES = 8
"""Shortest paths offered to a limited demand at first."""
_STEP = 4
_MORE_CANDIDATES = (32, 128, 512)
"""And then, each `_STEP` times the one before, while the limits cost something."""
FEW = 10
"""Limited demands that are offered more: the choice takes long where there are many."""
_CLOSED = 1e-9
"""Share of the value that counts as nothing."""
_PROVED = 1e-8
"""A value that is less below its bound is the best."""


def solve_within_limits(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    time_limit_s: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> Answer:
    """Solve with an engine that knows neither `max_paths` nor `disjoint`, and keep both.

    Args:
        problem: The problem, without demands that stay at their source.
        objective: The objective.
        engine: The engine.
        time_limit_s: Seconds for all of it; None for no limit.
        clock: Seconds.

    Returns:
        The rates; prices and bound are those of the problem without these limits.

    Raises:
        SolverError: A solver failed.
    """
    started = clock()
    answer = engine(problem, objective, time_limit_s)
    if keeps_limits(problem, answer.rates):
        return answer
    if not answer.complete:
        return _trimmed(problem, answer)

    def left_s() -> float | None:
        return None if time_limit_s is None else max(0.0, time_limit_s - (clock() - started))

    try:
        best = _limited(problem, objective, engine, answer, _CANDIDATES, left_s())
    except OutOfTime:
        return _trimmed(problem, answer)
    if best.complete and objective.is_fair:  # the choice among candidates knows the throughput alone
        best = _rounded(problem, objective, engine, answer, best, left_s())
    return best if not best.complete else _with_more(problem, objective, engine, answer, best, left_s)


def _rounded(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    answer: Answer,
    best: Answer,
    left_s: float | None,
) -> Answer:
    """Return the better of `best` and the best rates over the paths that carry most without the limits."""
    trimmed = trimmed_to_limits(problem, answer.rates)
    kept = {
        demand.id: [path for path, bps in trimmed[demand.id] or best.rates[demand.id] if bps > 0]
        for demand in problem.demands
        if is_limited(demand)
    }
    limited = _over(problem, objective, engine, answer, kept, left_s)
    return _better(problem, objective, best, limited) if keeps_limits(problem, limited.rates) else best


def _better(problem: Problem, objective: Objective, one: Answer, other: Answer) -> Answer:
    """Return the answer that the objective prefers, the first where it does not."""
    if not other.complete:
        return one
    if objective.by_level:
        levels = zip(_levels(problem, one), _levels(problem, other), strict=True)
        unlike = ((mine, its) for mine, its in levels if abs(mine - its) > _CLOSED * max(mine, its))
        mine, its = next(unlike, (0.0, 0.0))
    else:
        mine, its = _value(problem, objective, one), _value(problem, objective, other)
    return other if its > mine else one


def _levels(problem: Problem, answer: Answer) -> list[float]:
    """Return the rates by weight, the least first."""
    rates = answer.rates
    return sorted(math.fsum(bps for _, bps in rates[d.id]) / d.weight for d in problem.demands)


def _with_more(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    answer: Answer,
    best: Answer,
    left_s: Callable[[], float | None],
) -> Answer:
    """Return the best of all paths where that can be proved, else with more and more candidates."""
    from gomr.paths.branch_and_price import can_search  # loads HiGHS

    if _reaches(problem, objective, best, answer):
        return best
    if can_search(problem, objective):
        best = _searched(problem, objective, engine, answer, best, left_s)
        most_bps = math.inf if best.most_bps is None else best.most_bps
        if not best.complete or _value(problem, objective, best) >= most_bps * (1 - _PROVED):
            return best
    limited = sum(map(is_limited, problem.demands))
    for count in _MORE_CANDIDATES:
        if limited > FEW or not _may_gain(problem, objective, answer, best, count):
            return best
        try:
            other = _limited(problem, objective, engine, answer, count, left_s())
        except OutOfTime:
            return replace(best, complete=False)
        best = replace(_better(problem, objective, best, other), most_bps=best.most_bps)
        if not other.complete:
            return replace(best, complete=False)
    return best


def _reaches(problem: Problem, objective: Objective, answer: Answer, free: Answer) -> bool:
    """Return whether the limits cost nothing: `free` is the optimum without them."""
    if objective.by_level:  # of rates as fair as can be the sum tells little
        return _better(problem, objective, answer, free) is answer
    return _value(problem, objective, answer) >= _value(problem, objective, free) * (1 - _CLOSED)


def _searched(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    answer: Answer,
    best: Answer,
    left_s: Callable[[], float | None],
) -> Answer:
    """Return the best that branch and price finds, with its bound."""
    from gomr.paths.branch_and_price import search

    known = {name: tuple(path for path, rate_bps in own if rate_bps > 0) for name, own in best.rates.items()}
    try:
        searched = search(problem, objective, known, _value(problem, objective, best), left_s())
    except SolverError:
        return best  # rates too far apart for HiGHS: the bound without the limits stands
    if searched.paths is not None:
        over = _over(problem, objective, engine, answer, searched.paths, left_s())
        if not over.complete:
            return replace(best, complete=False, most_bps=searched.bound_bps)
        best = over
        if not objective.by_parts:
            # Among choices that admit as much, the delay decides.
            try:
                best = _limited(problem, objective, engine, answer, _CANDIDATES, left_s(), searched.paths)
            except OutOfTime:
                return replace(best, complete=False, most_bps=searched.bound_bps)
    return replace(best, complete=best.complete and not searched.timed_out, most_bps=searched.bound_bps)


def _limited(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    answer: Answer,
    count: int,
    left_s: float | None,
    offered: Mapping[str, tuple[Path, ...]] | None = None,
) -> Answer:
    """Return the best rates on paths chosen among so many; prices and bound stay those of `answer`."""
    from gomr.paths.choice import choose_paths  # loads PuLP, which few problems need

    chosen = choose_paths(problem, answer.rates, count, left_s, offered)
    return _over(problem, objective, engine, answer, chosen, left_s)


def _over(
    problem: Problem,
    objective: Objective,
    engine: Solver,
    answer: Answer,
    chosen: Mapping[str, Sequence[Path]],
    left_s: float | None,
) -> Answer:
    """Return the best rates on chosen paths; prices and bound stay those of `answer`."""
    demands = tuple(
        replace(demand, fixed_paths=_ids(chosen[demand.id])) if chosen.get(demand.id) else demand
        for demand in problem.demands
    )
    bound = engine(replace(problem, demands=demands), objective, left_s)
    numbered = answer.numbered and bound.numbered and answer.numbered.with_paths_of(bound.numbered)
    return replace(answer, rates=bound.rates, complete=bound.complete, numbered=numbered)


def _trimmed(problem: Problem, answer: Answer) -> Answer:
    """Return what limits leave of an answer, at the end of the time."""
    rates = trimmed_to_limits(problem, fit(problem, answer.rates))
    return replace(answer, rates=rates, complete=False, numbered=None)


def trimmed_to_limits(problem: Problem, rates: Rates) -> Rates:
    """Return the rates without those paths of limited demands that limits forbid; the largest rates stay."""
    kept = {demand.id: rates[demand.id] for demand in problem.demands}
    for demand in filter(is_limited, problem.demands):
        own = {path: rate_bps for path, rate_bps in rates[demand.id] if rate_bps > 0}
        first = first_within(demand, sorted(own, key=lambda path: -own[path]))
        kept[demand.id] = [(path, own[path]) for path in first]
    return kept


def _may_gain(problem: Problem, objective: Objective, free: Answer, limited: Answer, count: int) -> bool:
    """Return whether the limits cost something, and more candidates could be offered than were."""
    from gomr.paths.choice import has_more_paths

    return not _reaches(problem, objective, limited, free) and has_more_paths(problem, count // _STEP)


def _value(problem: Problem, objective: Objective, answer: Answer) -> float:
    """Return the first objective of an answer."""
    admitted = {name: math.fsum(rate for _, rate in paths) for name, paths in answer.rates.items()}
    return objective.value_bps(problem.demands, admitted)


def is_limited(demand: Demand) -> bool:
    """Return whether the demand has a limit that engines do not know."""
    return demand.max_paths is not None or demand.disjoint is not None


def keeps_limits(problem: Problem, rates: Rates) -> bool:
    """Return whether no demand uses too many paths, or paths that share what they must not."""
    if isinstance(problem.demands, DemandColumns):
        return True
    return all(
        within_limits(demand, [path for path, rate_bps in rates[demand.id] if rate_bps > 0])
        for demand in problem.demands
        if is_limited(demand)
    )


def within_limits(demand: Demand, used: Sequence[Path]) -> bool:
    """Return whether a demand may use these paths together."""
    if demand.max_paths is not None and len(used) > demand.max_paths:
        return False
    return demand.disjoint is None or are_disjoint(list(used), nodes=demand.disjoint == "nodes")


def first_within(demand: Demand, paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths, one after another, that the demand may use beside those before."""
    kept: list[Path] = []
    for path in paths:
        if within_limits(demand, [*kept, path]):
            kept.append(path)
    return tuple(kept)


def _ids(paths: Sequence[Path]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(edge.id for edge in path) for path in paths)
