"""Better paths for a few running flows: at most this many moves, and only for a gain that is worth them.

Who re-plans running flows wants the optimum, and every flow that moves is a risk. So flows keep their paths,
but for those to which the optimum gives most on new ones: some of these are freed together, the ones that
then gain most stay free, and the best rates on the paths of all others are found. Which flows move is a
heuristic; the rates, the gain and the bound told of it are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gomr.allocation import Allocation
from gomr.errors import InvalidProblem
from gomr.live.reallocation import is_same
from gomr.problem import Demand, Problem, check_number
from gomr.solving import allocate

Paths = tuple[tuple[str, ...], ...]
"""Paths as edge ids."""

_FREED_PER_MOVE = 4
"""This many times as many flows as may move are freed to see which of them gain."""


@dataclass(frozen=True)
class Moves:
    """What a few moves make of running flows.

    Attributes:
        before: The best rates if no flow moves.
        after: The best rates with the moves; `before` where they are not worth it.
        moved: The flows with other paths than before.
    """

    before: Allocation
    after: Allocation
    moved: tuple[str, ...]

    @property
    def gain(self) -> float:
        """By what share of its value the first objective grows."""
        return _gain(self.before, self.after)


def bounded_moves(
    problem: Problem,
    running: Mapping[str, Paths],
    *,
    most_moves: int,
    least_gain: float,
    objective: str = "max_throughput_min_delay",
    time_limit_s: float | None = None,
) -> Moves:
    """Re-route at most this many flows, if that gains enough.

    Args:
        problem: The network as it is and all flows.
        running: The paths of the flows that run, as edge ids. Flows that are not in it may take any path and
            are no moves.
        most_moves: How many running flows may get other paths.
        least_gain: Share of its value by which the first objective must grow, as 0.01.
        objective: A name in `OBJECTIVES`.
        time_limit_s: Seconds for each of the three solves.

    Raises:
        InvalidProblem: A flow runs that the problem does not have, or a number makes no sense.
        SolverError: The engine failed.
    """
    check_number("least_gain", least_gain)
    check_number("most_moves", most_moves)
    known = {demand.id for demand in problem.demands}
    for name in running:
        if name not in known:
            raise InvalidProblem(f"running[{name}]", "there is no such flow")

    def best(free: set[str]) -> Allocation:
        demands = tuple(_bound(demand, running, free) for demand in problem.demands)
        bound = replace(problem, demands=demands)
        return allocate(bound, objective, time_limit_s=time_limit_s)

    before = best(set())
    wanted = allocate(problem, objective, time_limit_s=time_limit_s)
    if most_moves == 0 or _gain(before, wanted) < least_gain:
        return Moves(before, before, ())
    chosen = _most_different(before, wanted, running)[: _FREED_PER_MOVE * most_moves]
    tried = best(set(chosen))
    final = best(set(_most_different(before, tried, running)[:most_moves]))
    moved = tuple(name for name in running if _edges(final, name) - set(running[name]))
    if _gain(before, final) < least_gain or not moved:
        return Moves(before, before, ())
    return Moves(before, final, moved)


def _bound(demand: Demand, running: Mapping[str, Paths], free: set[str]) -> Demand:
    if demand.id not in running or demand.id in free or not running[demand.id]:
        return demand
    return replace(demand, fixed_paths=running[demand.id])


def _most_different(one: Allocation, other: Allocation, running: Mapping[str, Paths]) -> Sequence[str]:
    """Return the running flows that have other paths, those first that get most on new paths."""
    on_new: dict[str, float] = {}
    for name, paths in running.items():
        if not is_same(one.paths[name], other.paths[name]):
            new = [path.rate_bps for path in other.paths[name] if path.edges not in paths]
            on_new[name] = sum(new)
    return sorted((name for name in on_new if on_new[name] > 0), key=lambda name: -on_new[name])


def _edges(allocation: Allocation, name: str) -> set[tuple[str, ...]]:
    return {path.edges for path in allocation.paths[name]}


def _gain(before: Allocation, after: Allocation) -> float:
    if before.value_bps == 0:
        return float("inf") if after.value_bps > 0 else 0.0
    return after.value_bps / before.value_bps - 1
