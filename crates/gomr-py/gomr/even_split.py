"""Even split: what each demand gets, and the paths it has, stay; its rates become as alike as they can.

Where every demand can split evenly, that is the answer. If not, two linear programmes in HiGHS find it: the
least sum of the demands' largest path rates and then, for three paths or more, the least sum of differences.
Demands that share no edge which their split could overload have programmes of their own: there can be many
equally even splits, and which of them a demand gets depends only on those that it shares edges with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from gomr.allocation import Rates, edge_loads, loads_of
from gomr.engines.assembly import fit
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.problem import Demand, Path, Problem

if TYPE_CHECKING:
    from gomr.engines.linear_program import LinearProgram

_ROUNDING = 1e-12
"""A load over its capacity by less than this share is rounding, which users of the rates remove."""


def spread(problem: Problem, rates: Rates, budget: TimeBudget) -> Rates:
    """Spread what every demand gets over the paths it has, as evenly as the capacities allow.

    Args:
        problem: The problem.
        rates: Optimal rates.
        budget: The time it may take.

    Raises:
        OutOfTime: The time is up.
        SolverError: HiGHS failed.
    """
    rates = fit(problem, rates)
    split = [demand for demand in problem.demands if len(rates[demand.id]) > 1]
    if not split:
        return rates
    even = {**rates, **{demand.id: _evenly(rates[demand.id]) for demand in split}}
    loads = edge_loads(problem, even)
    overloaded = {edge.id for edge in problem.edges if loads[edge.id] > edge.capacity_bps * (1 + _ROUNDING)}
    if not overloaded:
        return even
    budget.stage = "even split"
    own_ids = {demand.id for demand in split}
    kept = edge_loads(problem, {name: () if name in own_ids else own for name, own in rates.items()})
    for group in _groups(problem, rates, split, kept):
        if not overloaded.isdisjoint(group.edges):
            even.update(_as_evenly_as_fits(problem, rates, group, kept, budget))
    return even


def spread_in_time(problem: Problem, rates: Rates, budget: TimeBudget) -> tuple[Rates, bool]:
    """As `spread`; where the time is up, return the rates as they are, and False."""
    try:
        return spread(problem, rates, budget), True
    except OutOfTime:
        return rates, False


def _evenly(paths: Sequence[tuple[Path, float]]) -> list[tuple[Path, float]]:
    total_bps = math.fsum(rate_bps for _, rate_bps in paths)
    return [(path, total_bps / len(paths)) for path, _ in paths]


@dataclass
class _SplitGroup:
    """Demands that are split together.

    Attributes:
        demands: The demands.
        edges: Ids of the edges that a split of theirs could overload.
    """

    demands: list[Demand] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)


def _groups(
    problem: Problem, rates: Rates, split: Sequence[Demand], kept: Mapping[str, float]
) -> list[_SplitGroup]:
    """Group demands by the edges that they could overload together, beside loads that stay."""
    most_bps: dict[str, dict[str, float]] = {}
    for demand in split:
        total_bps = math.fsum(rate_bps for _, rate_bps in rates[demand.id])
        for path, _ in rates[demand.id]:
            for edge_id, load in _summed(loads_of(problem, demand, path)).items():
                own = most_bps.setdefault(edge_id, {})
                own[demand.id] = max(own.get(demand.id, 0.0), load * total_bps)
    by_id = problem.edges_by_id
    tight = {
        edge_id: own
        for edge_id, own in most_bps.items()
        if kept[edge_id] + math.fsum(own.values()) > by_id[edge_id].capacity_bps
    }
    root = {demand.id: demand.id for demand in split}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = name = root[root[name]]
        return name

    for own in tight.values():
        first, *others = own
        for other in others:
            root[find(other)] = find(first)
    groups: dict[str, _SplitGroup] = {}
    for demand in split:
        groups.setdefault(find(demand.id), _SplitGroup()).demands.append(demand)
    for edge_id, own in tight.items():
        groups[find(next(iter(own)))].edges.append(edge_id)
    return list(groups.values())


def _summed(loads: Sequence[tuple[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for edge_id, load in loads:
        total[edge_id] = total.get(edge_id, 0.0) + load
    return total


def _as_evenly_as_fits(
    problem: Problem, rates: Rates, group: _SplitGroup, kept: Mapping[str, float], budget: TimeBudget
) -> dict[str, list[tuple[Path, float]]]:
    from gomr.engines.linear_program import LinearProgram  # HiGHS is loaded when it is first needed

    unit_bps = max(rate_bps for demand in group.demands for _, rate_bps in rates[demand.id])
    program = LinearProgram(budget)
    variables = {
        demand.id: program.variables(len(rates[demand.id]), upper=math.inf) for demand in group.demands
    }
    _add_limits(program, problem, rates, group, variables, kept, unit_bps)
    costs: dict[int, float] = {}
    for own in variables.values():
        (largest,) = program.variables(1, upper=math.inf)
        costs[largest] = 1.0
        for variable in own:
            program.row({variable: 1.0, largest: -1.0}, upper=0.0)
    program.minimise(costs)
    if any(len(own) > 2 for own in variables.values()):
        # The largest rate settles two paths; what lies below it among more is settled here.
        program.keep_optimum()
        program.minimise(_differences(program, variables))
    values = program.values()
    return {
        demand.id: [
            (path, float(values[variable]) * unit_bps)
            for (path, _), variable in zip(rates[demand.id], variables[demand.id], strict=True)
        ]
        for demand in group.demands
    }


def _add_limits(
    program: LinearProgram,
    problem: Problem,
    rates: Rates,
    group: _SplitGroup,
    variables: Mapping[str, Sequence[int]],
    kept: Mapping[str, float],
    unit_bps: float,
) -> None:
    """Keep what each demand gets, and the capacities that the others leave."""
    loads: dict[str, dict[int, float]] = {edge_id: {} for edge_id in group.edges}
    used: dict[str, list[float]] = {edge_id: [] for edge_id in group.edges}
    for demand in group.demands:
        program.budget.check()
        total = math.fsum(rate_bps for _, rate_bps in rates[demand.id]) / unit_bps
        program.row(dict.fromkeys(variables[demand.id], 1.0), lower=total, upper=total)
        for (path, rate_bps), variable in zip(rates[demand.id], variables[demand.id], strict=True):
            for edge_id, load in loads_of(problem, demand, path):
                if edge_id in loads:
                    loads[edge_id][variable] = loads[edge_id].get(variable, 0.0) + load
                    used[edge_id].append(load * rate_bps)
    for edge_id, terms in loads.items():
        # What they have fits, however the difference of two large numbers is rounded.
        left_bps = max(math.fsum(used[edge_id]), problem.edges_by_id[edge_id].capacity_bps - kept[edge_id])
        program.row(terms, upper=left_bps / unit_bps)


def _differences(program: LinearProgram, variables: Mapping[str, Sequence[int]]) -> dict[int, float]:
    """Add a variable for the difference of each pair of a demand's paths; return them as costs."""
    costs: dict[int, float] = {}
    for own in variables.values():
        program.budget.check()
        pairs = list(combinations(own, 2))
        differences = program.variables(len(pairs), upper=math.inf)
        program.rows(
            [
                ({more: 1.0, less: -1.0, difference: -1.0}, -math.inf, 0.0)
                for (one, other), difference in zip(pairs, differences, strict=True)
                for more, less in ((one, other), (other, one))
            ]
        )
        costs.update(dict.fromkeys(differences, 1.0))
    return costs
