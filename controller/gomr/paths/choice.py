"""Which paths the demands with limits are bound to, by a mixed-integer programme over candidates.

It serves for the choice alone: the rates on the chosen paths come from an engine, free of the integer
solver's tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from controller.errors import SolverError
from controller.gomr.allocation import Rates
from controller.gomr.engines.pulp.model import PathSets, RoutingModel, fixed_path_sets
from controller.gomr.engines.pulp.program import AT_MOST, value
from controller.gomr.engines.time_budget import OutOfTime, TimeBudget
from controller.gomr.paths.finder import PathFinder, are_disjoint
from controller.gomr.paths.graph import Path
from controller.gomr.paths.limits import is_limited, within_limits
from controller.gomr.problem import Demand, Problem

_CHOICE_WEIGHTS = (1e4, 1e-3)
"""Weights of the throughput and of the delay (in units of the longest edge's) when paths are chosen.

Their ratio of 1e7 is the promise; they are this large because HiGHS's integer solver takes objectives for
equal that differ by less than about 1e-7, in absolute terms.
"""
_ALL = 1_000_000
"""More disjoint paths than any network has."""


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
    finder = PathFinder(problem)
    given = fixed_path_sets(problem)
    candidates = {
        demand.id: tuple(
            dict.fromkeys(
                [*_candidates(finder, demand, given, rates, shortest), *(offered or {}).get(demand.id, ())]
            )
        )
        for demand in problem.demands
        if is_limited(demand)
    }
    crowded = [
        demand
        for demand in problem.demands
        if demand.max_paths is not None and len(candidates.get(demand.id, ())) > demand.max_paths
    ]
    if not crowded:
        return candidates
    budget = TimeBudget("pulp", time_limit_s)
    budget.stage = "choice of paths"
    model = RoutingModel(problem, problem.unit_bps, {**given, **candidates}, budget)
    for demand in crowded:
        model.limit_paths(demand, demand.max_paths or 0)
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
    nothing = {d.id: candidates[d.id][: d.max_paths] for d in crowded if not chosen.get(d.id)}
    return candidates | chosen | nothing


def has_more_paths(problem: Problem, count: int) -> bool:
    """Return whether a demand with `max_paths` has more paths to choose from than its `count` shortest."""
    finder = PathFinder(problem)
    free = (demand for demand in problem.demands if demand.max_paths is not None)
    chooses = (demand for demand in free if demand.fixed_paths is None and demand.disjoint is None)
    return any(len(finder.shortest(d.source, d.destination, count + 1)) > count for d in chooses)


def _candidates(
    finder: PathFinder, demand: Demand, given: PathSets, rates: Rates, count: int
) -> tuple[Path, ...]:
    """Return the paths a limited demand may choose from, disjoint already where they must be."""
    used = tuple(path for path, rate_bps in rates[demand.id] if rate_bps > 0)
    if demand.disjoint is not None:
        return used if used and within_limits(demand, used) else _disjoint(finder, demand, given)
    if demand.id in given:
        return given[demand.id]
    shortest = finder.shortest(demand.source, demand.destination, count)
    in_time = (path for path in shortest if not demand.is_too_long(path))
    return tuple(dict.fromkeys([*used, *in_time]))


def _disjoint(finder: PathFinder, demand: Demand, given: PathSets) -> tuple[Path, ...]:
    """Return disjoint paths: those of least total delay, or of given ones the shortest first."""
    nodes = demand.disjoint == "nodes"
    if demand.id not in given:
        most = demand.max_paths or _ALL
        disjoint = finder.disjoint(demand.source, demand.destination, most, nodes=nodes)
        in_time = tuple(path for path in disjoint if not demand.is_too_long(path))
        return in_time or tuple(finder.shortest(demand.source, demand.destination, 1))
    kept: list[Path] = []
    for path in sorted(given[demand.id], key=lambda path: sum(edge.delay_s for edge in path)):
        if are_disjoint([*kept, path], nodes=nodes):
            kept.append(path)
    return tuple(kept[: demand.max_paths])
