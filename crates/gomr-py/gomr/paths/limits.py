"""Limits that no linear programme knows: at most this many paths, and paths that share nothing.

The problem is solved without them first; basic solutions split few flows, so they are often kept unasked and
the answer is optimal. If not, the demands that have such limits are bound to paths that keep them
(`path_choice`), and the engine finds the best rates on these. README.md says what is promised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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

    def left_s() -> float | None:
        return None if time_limit_s is None else max(0.0, time_limit_s - (clock() - started))

    return _Search(problem, objective, engine, answer, left_s).best()


@dataclass(frozen=True)
class _Search:
    """The best rates within the limits; `free` is the optimum without them, and `left_s` tells the time."""

    problem: Problem
    objective: Objective
    engine: Solver
    free: Answer
    left_s: Callable[[], float | None]

    def best(self) -> Answer:
        """Return the best of what candidates, rounding, and where it can, branch and price find."""
        if not self.free.complete:
            return self._trimmed()
        try:
            best = self._among(_CANDIDATES)
        except OutOfTime:
            return self._trimmed()
        if best.complete and self.objective.is_fair:  # the choice among candidates knows the throughput alone
            best = self._rounded(best)
        return self._with_more(best) if best.complete else best

    def _rounded(self, best: Answer) -> Answer:
        """Return the better of `best` and the best rates over the paths that carry most without limits."""
        trimmed = trimmed_to_limits(self.problem, self.free.rates)
        kept = {
            demand.id: [path for path, bps in trimmed[demand.id] or best.rates[demand.id] if bps > 0]
            for demand in self.problem.demands
            if is_limited(demand)
        }
        limited = self._over(kept)
        return self._better(best, limited) if keeps_limits(self.problem, limited.rates) else best

    def _better(self, one: Answer, other: Answer) -> Answer:
        """Return the answer that the objective prefers, the first where it does not."""
        if not other.complete:
            return one
        if self.objective.by_level:
            levels = zip(self._levels(one), self._levels(other), strict=True)
            unlike = ((mine, its) for mine, its in levels if abs(mine - its) > _CLOSED * max(mine, its))
            mine, its = next(unlike, (0.0, 0.0))
        else:
            mine, its = self._value(one), self._value(other)
        return other if its > mine else one

    def _levels(self, answer: Answer) -> list[float]:
        """Return the rates by weight, the least first."""
        admitted = _admitted(answer)
        return sorted(admitted[demand.id] / demand.weight for demand in self.problem.demands)

    def _with_more(self, best: Answer) -> Answer:
        """Return the best of all paths where that can be proved, else with more and more candidates."""
        from gomr.paths.branch_and_price import can_search  # loads HiGHS
        from gomr.paths.choice import has_more_paths

        if self._costs_nothing(best):
            return best
        if can_search(self.problem, self.objective):
            best = self._searched(best)
            most_bps = math.inf if best.most_bps is None else best.most_bps
            if not best.complete or self._value(best) >= most_bps * (1 - _PROVED):
                return best
        if sum(map(is_limited, self.problem.demands)) > FEW:
            return best
        for count in _MORE_CANDIDATES:
            if self._costs_nothing(best) or not has_more_paths(self.problem, count // _STEP):
                return best
            try:
                other = self._among(count)
            except OutOfTime:
                return replace(best, complete=False)
            best = replace(self._better(best, other), most_bps=best.most_bps)
            if not other.complete:
                return replace(best, complete=False)
        return best

    def _costs_nothing(self, answer: Answer) -> bool:
        """Return whether the limits cost nothing: `free` is the optimum without them."""
        if self.objective.by_level:  # of rates as fair as can be the sum tells little
            return self._better(answer, self.free) is answer
        return self._value(answer) >= self._value(self.free) * (1 - _CLOSED)

    def _searched(self, best: Answer) -> Answer:
        """Return the best that branch and price finds, with its bound."""
        from gomr.paths.branch_and_price import search

        known = {name: tuple(path for path, bps in own if bps > 0) for name, own in best.rates.items()}
        try:
            searched = search(self.problem, self.objective, known, self._value(best), self.left_s())
        except SolverError:
            return best  # rates too far apart for HiGHS: the bound without the limits stands
        timed_out = searched.timed_out
        if searched.paths is not None:
            over = self._over(searched.paths)
            best, timed_out = (over, timed_out) if over.complete else (best, True)
            if over.complete and not self.objective.by_parts:
                # Among choices that admit as much, the delay decides.
                try:
                    best = self._among(_CANDIDATES, searched.paths)
                except OutOfTime:
                    timed_out = True
        return replace(best, complete=best.complete and not timed_out, most_bps=searched.bound_bps)

    def _among(self, count: int, offered: Mapping[str, tuple[Path, ...]] | None = None) -> Answer:
        """Return the best rates on paths chosen among this many shortest, and those offered."""
        from gomr.paths.choice import choose_paths  # loads PuLP, which few problems need

        return self._over(choose_paths(self.problem, self.free.rates, count, self.left_s(), offered))

    def _over(self, chosen: Mapping[str, Sequence[Path]]) -> Answer:
        """Return the best rates on chosen paths; prices and bound stay those of `free`."""
        demands = tuple(
            replace(demand, fixed_paths=_ids(chosen[demand.id])) if chosen.get(demand.id) else demand
            for demand in self.problem.demands
        )
        bound = self.engine(replace(self.problem, demands=demands), self.objective, self.left_s())
        numbered = self.free.numbered and bound.numbered and self.free.numbered.with_paths_of(bound.numbered)
        return replace(self.free, rates=bound.rates, complete=bound.complete, numbered=numbered)

    def _trimmed(self) -> Answer:
        """Return what limits leave of `free`, at the end of the time."""
        rates = trimmed_to_limits(self.problem, fit(self.problem, self.free.rates))
        return replace(self.free, rates=rates, complete=False, numbered=None)

    def _value(self, answer: Answer) -> float:
        """Return the first objective of an answer."""
        return self.objective.value_bps(self.problem.demands, _admitted(answer))


def _admitted(answer: Answer) -> dict[str, float]:
    return {name: math.fsum(rate for _, rate in paths) for name, paths in answer.rates.items()}


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
