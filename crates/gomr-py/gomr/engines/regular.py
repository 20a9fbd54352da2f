"""Networks whose links are alike: where the compiled engine takes long, HiGHS has an interior point.

Nearly every pivot of a simplex is degenerate there, while an interior point needs some tens of steps whatever
the network. It serves the two programmes that take minutes by pivots: the largest factor of all demands, and
the least utilisation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gomr.engines.answer import Answer
from gomr.engines.assembly import NumberedAnswer
from gomr.engines.time_budget import TimeBudget
from gomr.objectives import PLAIN
from gomr.problem import Problem

MOST_LOOKS = 4_000
"""Looks at the time of the compiled engine before HiGHS has its turn: some seconds, the same anywhere."""
_MOST_VARIABLES = 250_000
"""Sources times edges up to which HiGHS ends within half a minute."""
_INTERIOR = {"solver": "ipm", "run_crossover": "off", "ipm_optimality_tolerance": 1e-10}
_TO_VERTEX = {"solver": "ipm"}
_ROUNDING = 1e-10
"""By so much the least utilisation is raised before the delay is minimised, relative."""


def are_links_alike(problem: Problem) -> bool:
    """Return whether edges are of at most two capacities and two delays, as in fat-trees and tori."""
    usable = [edge for edge in problem.edges if edge.capacity_bps > 0]
    values = ({edge.capacity_bps for edge in usable}, {edge.delay_s for edge in usable})
    return all(len(own) <= 2 for own in values)


def suits(problem: Problem) -> bool:
    """Return whether links are alike, and few enough for an interior point."""
    sources = {demand.source for demand in problem.demands}
    return len(sources) * len(problem.edges) <= _MOST_VARIABLES and are_links_alike(problem)


def least_utilisation(problem: Problem, budget: TimeBudget) -> Answer:
    """Return what serves all demands with the fullest edge as empty as can be, and of that the least delay.

    Raises:
        SolverError: They do not fit, HiGHS failed, or the time is up.
    """
    from gomr.engines.by_edges.highs_program import HighsProgram  # loads HiGHS
    from gomr.engines.by_edges.model import RoutingModel, fixed_path_sets

    rates_bps = {demand.id: demand.rate_bps for demand in problem.demands}
    path_sets = fixed_path_sets(problem)
    # In a unit of what the fullest edges carry, the level is well above the solver's tolerance.
    unit_bps = _least_by_ends(problem) * problem.unit_bps
    model = RoutingModel(problem, unit_bps, path_sets, HighsProgram(budget, _INTERIOR))
    model.hold_admitted(rates_bps)
    level = model.program.minimise(model.utilisation()) * (1 + _ROUNDING)
    edges = tuple(replace(edge, capacity_bps=edge.capacity_bps * level) for edge in problem.edges)
    narrow, program = replace(problem, edges=edges), HighsProgram(budget, _TO_VERTEX)
    model = RoutingModel(narrow, unit_bps, path_sets, program)
    model.hold_admitted(rates_bps)
    model.program.minimise(model.delay)
    by_id = problem.edges_by_id
    return Answer(
        {
            name: [(tuple(by_id[edge.id] for edge in path), rate_bps) for path, rate_bps in paths]
            for name, paths in model.rates().items()
        }
    )


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
        problem: The problem; all its demands may take any path, and have one.
        most: No larger factor is possible.
        budget: The time it may take.

    Raises:
        SolverError: HiGHS failed, or the time is up.
    """
    from gomr.engines.by_edges.highs_program import HighsProgram  # loads HiGHS
    from gomr.engines.by_edges.model import RoutingModel

    total_bps = math.fsum(demand.rate_bps for demand in problem.demands)
    demands = tuple(
        replace(demand, rate_bps=2 * most * demand.rate_bps, weight=demand.rate_bps / total_bps)
        for demand in problem.demands
        if demand.rate_bps > 0
    )
    rising = replace(problem, demands=demands)
    model = RoutingModel(rising, rising.unit_bps, {}, HighsProgram(budget, _INTERIOR))
    level, _ = model.raise_together(demands, 2 * most * total_bps)
    model.program.minimise([(level, -1.0)])
    factor = model.program.value(level) * rising.unit_bps / total_bps
    return factor, _proven(problem, model.prices())


def _proven(problem: Problem, prices: Mapping[str, float]) -> float:
    """Return what prices prove of the largest factor: the price of all capacity over that of all ways."""
    total = math.fsum(max(0.0, price) for price in prices.values())
    per_edge = {name: max(0.0, price) / total for name, price in prices.items()}
    nothing = Answer({demand.id: () for demand in problem.demands}, per_edge)
    numbered = NumberedAnswer.of(problem, nothing)
    audit = numbered.audit(PLAIN)
    room_bps = float(np.dot(numbered.network.capacity_bps, numbered.prices))
    # No way is longer than all edges together: each demand adds its rate, less the price of its way.
    return room_bps / (audit.requested_bps - (audit.upper_bound - room_bps))
