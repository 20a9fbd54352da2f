"""Networks whose links are alike: where the compiled engine takes long, HiGHS has an interior point.

Nearly every pivot of a simplex is degenerate there, while an interior point needs some tens of steps whatever
the network. It serves the largest factor of all demands, and the least utilisation, which is one over it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gomr.allocation import Rates
from gomr.engines.assembly import NativeResult
from gomr.engines.result import EngineResult
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.errors import SolverError
from gomr.objectives import PLAIN
from gomr.problem import Problem

Found = TypeVar("Found")

FEW_LOOKS = 500
"""Looks at the time of the compiled engine before HiGHS has its turn: half a second, the same anywhere ..."""
MAX_LOOKS = 4_000
"""... and where demands have far to go, which leaves them few paths of a length, and HiGHS many steps."""
_LONG_MEAN_HOPS = 4.0
"""Mean number of edges between the ends of demands, ..."""
_SOURCES_LOOKED_AT = 16
"""... those of this number of sources or of twice as many."""
_MAX_VARIABLES = 250_000
"""Sources times edges up to which HiGHS ends within half a minute."""
_INTERIOR_POINT = {"solver": "ipm", "run_crossover": "off", "ipm_optimality_tolerance": 1e-10}
_CROSSOVER = {"run_crossover": "on"}
_ROUNDING = 1e-10
"""By so much the largest factor is lowered before the delay is minimised, relative."""


def are_links_alike(problem: Problem) -> bool:
    """Return whether edges are of at most two capacities and two delays, as in fat-trees and tori."""
    usable = [edge for edge in problem.edges if edge.capacity_bps > 0]
    values = ({edge.capacity_bps for edge in usable}, {edge.delay_s for edge in usable})
    return all(len(own) <= 2 for own in values)


def suits(problem: Problem) -> bool:
    """Return whether links are alike, and few enough for an interior point."""
    sources = {demand.source for demand in problem.demands}
    return len(sources) * len(problem.edges) <= _MAX_VARIABLES and are_links_alike(problem)


def raced(
    problem: Problem,
    by_pivots: Callable[[int | None], tuple[Found, bool]],
    by_interior_point: Callable[[Found], Found],
) -> Found:
    """Return what the compiled engine finds within some looks at the time, else what HiGHS does.

    Args:
        problem: The problem.
        by_pivots: Returns what it finds within looks (None: no limit), and whether that is optimal.
        by_interior_point: Returns the optimum, given what pivots found.
    """
    found, is_optimal = by_pivots(MAX_LOOKS if _mean_hops(problem) > _LONG_MEAN_HOPS else FEW_LOOKS)
    if is_optimal:
        return found
    try:
        return by_interior_point(found)
    except OutOfTime:
        return found
    except SolverError:
        return by_pivots(None)[0]


def _mean_hops(problem: Problem) -> float:
    """Return the mean number of edges on the shortest paths of demands, those of some sources."""
    heads: dict[str, list[str]] = defaultdict(list)
    for edge in problem.edges:
        if edge.capacity_bps > 0:
            heads[edge.tail].append(edge.head)
    targets: dict[str, list[str]] = defaultdict(list)
    for demand in problem.demands:
        targets[demand.source].append(demand.destination)
    lengths = []
    for source, own in list(targets.items())[:: 1 + len(targets) // _SOURCES_LOOKED_AT]:
        hops = {source: 0}
        nodes = [source]
        for node in nodes:  # grows while it is read
            for head in heads[node]:
                if head not in hops:
                    hops[head] = hops[node] + 1
                    nodes.append(head)
        lengths += [hops[target] for target in own if target in hops]
    return math.fsum(lengths) / max(1, len(lengths))


def least_utilisation(problem: Problem, budget: TimeBudget) -> EngineResult:
    """Return what serves all demands with the fullest edge as empty as can be, and of that the least delay.

    Raises:
        SolverError: They do not fit, HiGHS failed, or the time is up.
    """
    rise = _ConcurrentFlowProgram(problem, 1 / _least_by_ends(problem), budget)
    if rise.factor < 1:
        raise budget.failure("all demands together do not fit")
    return EngineResult(rise.of_least_delay())


def _least_by_ends(problem: Problem) -> float:
    """Return the utilisation that what leaves each node makes of its edges, at least."""
    room_bps: dict[str, float] = defaultdict(float)
    sent_bps: dict[str, float] = defaultdict(float)
    for edge in problem.edges:
        room_bps[edge.tail] += edge.capacity_bps
    for demand in problem.demands:
        sent_bps[demand.source] += demand.rate_bps
    return max(sent / room_bps[node] for node, sent in sent_bps.items() if sent > 0)


def largest_factor(problem: Problem, most: float, budget: TimeBudget) -> tuple[float, float]:
    """Return the largest factor by which all demands can be multiplied, and a bound of it that prices prove.

    Args:
        problem: The problem; all its demands have a path.
        most: No larger factor is possible.
        budget: The time it may take.

    Raises:
        SolverError: HiGHS failed, or the time is up.
    """
    rise = _ConcurrentFlowProgram(problem, most, budget)
    return rise.factor, _proven(problem, rise.model.prices())


class _ConcurrentFlowProgram:
    """The programme that multiplies all demands by the same factor, solved.

    Attributes:
        factor: The largest factor.
        model: The programme, whose duals prove it.
    """

    def __init__(self, problem: Problem, most: float, budget: TimeBudget) -> None:
        from gomr.engines.by_edges.highs_program import HighsProgram  # loads HiGHS
        from gomr.engines.by_edges.model import RoutingModel, fixed_path_sets

        budget.check()
        total_bps = math.fsum(demand.rate_bps for demand in problem.demands)
        demands = tuple(
            replace(demand, rate_bps=2 * most * demand.rate_bps, weight=demand.rate_bps / total_bps)
            for demand in problem.demands
            if demand.rate_bps > 0
        )
        rising = replace(problem, demands=demands)
        self._problem = problem
        self._program = HighsProgram(budget, _INTERIOR_POINT)
        self.model = RoutingModel(rising, rising.unit_bps, fixed_path_sets(rising), self._program)
        with_path = [demand for demand in demands if self.model.can_get_something(demand)]
        self._level, _ = self.model.raise_together(with_path, 2 * most * total_bps)
        self._program.minimise([(self._level, -1.0)])
        self.factor = self._program.value(self._level) * rising.unit_bps / total_bps

    def of_least_delay(self) -> Rates:
        """Return the paths of the demands, and rates that leave the fullest edge as empty as can be."""
        factor = self.factor * (1 - _ROUNDING)
        self._program.keep_unpriced(_CROSSOVER)
        self.model.hold_admitted({demand.id: factor * demand.rate_bps for demand in self._problem.demands})
        self._program.minimise(self.model.delay)
        found, by_id = self.model.rates(), self._problem.edges_by_id
        return {
            demand.id: [
                (tuple(by_id[edge.id] for edge in path), rate_bps / factor)
                for path, rate_bps in found.get(demand.id, ())
            ]
            for demand in self._problem.demands
        }


def _proven(problem: Problem, prices: Mapping[str, float]) -> float:
    """Return what prices prove of the largest factor: the price of all capacity over that of all ways."""
    total = math.fsum(max(0.0, price) for price in prices.values())
    per_edge = {name: max(0.0, price) / total for name, price in prices.items()}
    nothing = EngineResult({demand.id: () for demand in problem.demands}, per_edge)
    native = NativeResult.of(problem, nothing)
    audit = native.audit(PLAIN)
    room_bps = float(np.dot(native.network.capacity_bps, native.prices))
    # No way is longer than all edges together: each demand adds its rate, less the price of its way.
    return room_bps / (audit.requested_bps - (audit.upper_bound - room_bps))
