"""Which paths the demands with limits are bound to, by a mixed-integer programme over candidates.

It serves for the choice alone: the rates on the chosen paths come from an engine, free of the integer
solver's tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from gomr.allocation import Rates
from gomr.engines.pulp.model import PathSets, RoutingModel, fixed_path_sets
from gomr.engines.pulp.program import AT_MOST, value
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.errors import SolverError
from gomr.paths.finder import PathFinder
from gomr.paths.limits import FEW, first_within, is_limited, within_limits
from gomr.problem import Demand, Path, Problem

_CHOICE_WEIGHTS = (1e4, 1e-3)
"""Weights of the throughput and of the delay (in units of the longest edge's) when paths are chosen.

Their ratio of 1e7 is the promise; they are this large because HiGHS's integer solver takes objectives for
equal that differ by less than about 1e-7, in absolute terms.
"""
_ALL = 1_000_000
"""More disjoint paths than any network has."""
_MOST_WIDTHS = 8
"""Widths over which a demand's disjoint paths are looked for."""


def choose_paths(
    problem: Problem,
    rates: Rates,
    shortest: int,
    time_limit_s: float | None,
    offered: Mapping[str, tuple[Path, ...]] | None = None,
) -> dict[str, tuple[Path, ...]]:
    """Choose the paths of each demand that has a limit.

    Args:
        problem: The problem.
        rates: The optimum without these limits.
        shortest: Shortest paths offered to a demand with `max_paths`, besides those of that optimum.
        time_limit_s: Seconds of solver time; None for no limit.
        offered: Further candidates, by demand id.

    Returns:
        Paths that keep the limits together, by demand id.

    Raises:
        SolverError: HiGHS failed or ran out of time.
    """
    finder = _Finder(problem)
    given = fixed_path_sets(problem)
    limited = list(filter(is_limited, problem.demands))
    offers = partial(_candidates, finder, given, rates, shortest, few=len(limited) <= FEW)
    candidates = {
        demand.id: tuple(dict.fromkeys([*offers(demand), *(offered or {}).get(demand.id, ())]))
        for demand in limited
    }
    crowded = [demand for demand in limited if not within_limits(demand, candidates[demand.id])]
    if not crowded:
        return candidates
    budget = TimeBudget("pulp", time_limit_s)
    budget.stage = "choice of paths"
    model = RoutingModel(problem, problem.unit_bps, {**given, **candidates}, budget)
    for demand in crowded:
        model.limit_paths(demand)
    throughput_weight, delay_weight = _CHOICE_WEIGHTS
    unserved = [(variable, throughput_weight * factor) for variable, factor in model.unserved]
    delay = [(variable, delay_weight * cost) for variable, cost in model.delay]
    model.program.minimise(unserved + delay)
    # Of what admits as much, the integer solver's gap on the large weight hides up to 1 % of the delay.
    left = math.fsum(factor * value(variable) for variable, factor in model.unserved)
    chosen = model.chosen_paths()
    model.program.row(model.unserved, AT_MOST, left)
    try:
        model.program.minimise(delay)
        chosen = model.chosen_paths()
    except OutOfTime:
        raise
    except SolverError:
        pass  # The integer solver's tolerance may leave nothing that admits as much: the first choice stands.
    # What gets nothing here may get something by another objective, within its limit too.
    nothing = {d.id: first_within(d, candidates[d.id]) for d in crowded if not chosen.get(d.id)}
    return candidates | chosen | nothing


def has_more_paths(problem: Problem, count: int) -> bool:
    """Return whether a demand with limits has more paths to choose from than its `count` shortest."""
    finder = PathFinder(problem)
    free = (demand for demand in problem.demands if is_limited(demand) and demand.fixed_paths is None)
    return any(len(finder.shortest(d.source, d.destination, count + 1)) > count for d in free)


class _Finder:
    """Finds paths over all edges, and over those wide enough for a rate."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.all = PathFinder(problem)
        self._wide: dict[float, PathFinder] = {}

    def disjoint_sets(self, demand: Demand) -> list[tuple[Path, ...]]:
        """Return sets of disjoint paths, each of least total delay over the edges of some width."""
        ends, most = (demand.source, demand.destination), demand.max_paths or _ALL
        nodes = demand.disjoint == "nodes"
        found = [self.all.disjoint(*ends, most, nodes=nodes)]
        wide = map(self._over, self._widths(demand))
        found += [finder.disjoint(*ends, most, nodes=nodes) for finder in wide]
        in_time = (tuple(path for path in own if not demand.is_too_long(path)) for own in found)
        return list(dict.fromkeys(own for own in in_time if own))

    def _widths(self, demand: Demand) -> list[float]:
        """Return capacities up to the demand's rate, and the least one beyond."""
        widths = sorted({edge.capacity_bps for edge in self._problem.edges if edge.capacity_bps > 0})
        useful = widths[: sum(width < demand.rate_bps for width in widths) + 1]
        return useful[1 :: max(1, -(-len(useful) // _MOST_WIDTHS))]

    def _over(self, width_bps: float) -> PathFinder:
        if width_bps not in self._wide:
            edges = tuple(
                edge if edge.capacity_bps >= width_bps else replace(edge, capacity_bps=0.0)
                for edge in self._problem.edges
            )
            self._wide[width_bps] = PathFinder(replace(self._problem, edges=edges, demands=()))
        return self._wide[width_bps]


def _candidates(
    finder: _Finder, given: PathSets, rates: Rates, count: int, demand: Demand, *, few: bool
) -> tuple[Path, ...]:
    """Return the paths a limited demand may choose from; of many demands disjoint ones choose nothing."""
    used = tuple(path for path, rate_bps in rates[demand.id] if rate_bps > 0)
    if demand.disjoint is not None and not few:
        return used if used and within_limits(demand, used) else _disjoint(finder, demand, given)
    if demand.id in given:
        return given[demand.id]
    shortest = finder.all.shortest(demand.source, demand.destination, count)
    in_time = [path for path in shortest if not demand.is_too_long(path)]
    sets = finder.disjoint_sets(demand) if demand.disjoint is not None else []
    return tuple(dict.fromkeys([*used, *in_time, *chain.from_iterable(sets)]))


def _disjoint(finder: _Finder, demand: Demand, given: PathSets) -> tuple[Path, ...]:
    """Return disjoint paths: those that carry most, or of given ones the shortest first."""
    if demand.id not in given:
        sets = finder.disjoint_sets(demand)
        widest = max(sets, key=lambda own: min(demand.rate_bps, math.fsum(map(_width_bps, own))), default=())
        return widest or tuple(finder.all.shortest(demand.source, demand.destination, 1))
    by_delay = sorted(given[demand.id], key=lambda path: sum(edge.delay_s for edge in path))
    return first_within(demand, by_delay)


def _width_bps(path: Path) -> float:
    return min(edge.capacity_bps for edge in path)
