"""What an engine answers becomes an `Allocation`: checked, held to the limits, and certified.

The certificate is computed from the paths, their rates and the prices alone, by a function that knows nothing
of the engines (`gomr._native.audit`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

import gomr._native
from gomr.allocation import ROUNDING, Allocation, PathRate, Rates, path_rates
from gomr.columns import DemandColumns, PathColumns, PathTable
from gomr.engines.native.network import NativeNetwork
from gomr.engines.result import EngineResult
from gomr.errors import SolverError
from gomr.objectives import Objective
from gomr.problem import Demand, Problem

_MAX_VIOLATION = 1e-6
"""An engine whose rates are over a limit by more than this share of the largest capacity has failed."""
Paths: TypeAlias = tuple[PathRate, ...]


@dataclass(frozen=True)
class NativeResult:
    """An answer in the terms of the compiled engine.

    Attributes:
        network: The network in its terms.
        flows: The demands.
        paths: Their paths and rates.
        prices: Price of each edge, by its place.
        cuts: What stops demands under `max_min`: prices, and places of demands.
        complete: Whether the engine came to its end; else rates may be over limits.
    """

    network: NativeNetwork
    flows: gomr._native.Flows
    paths: gomr._native.PathRates
    prices: list[float]
    cuts: list[tuple[list[float], list[int]]]
    complete: bool = True

    @classmethod
    def of(cls, problem: Problem, answer: EngineResult) -> NativeResult:
        """Return any engine's answer in these terms."""
        if answer.native is not None:
            return answer.native
        network, ids = NativeNetwork(problem), ids_of(problem.demands)
        number, place = network.number, {name: at for at, name in enumerate(ids)}
        paths = [
            (place[name], [number[edge.id] for edge in path], rate_bps)
            for name in ids
            for path, rate_bps in answer.rates[name]
            if rate_bps > 0
        ]
        columns = (
            np.array([flow for flow, _, _ in paths], dtype=np.uint32),
            np.array([rate_bps for _, _, rate_bps in paths], dtype=np.float64),
            np.cumsum([0, *(len(path) for _, path, _ in paths)], dtype=np.uint32),
            np.array([edge for _, path, _ in paths for edge in path], dtype=np.uint32),
        )
        return cls(
            network,
            network.flows(problem.demands),
            gomr._native.PathRates(*(column.tobytes() for column in columns)),
            [answer.prices.get(name, 0.0) for name in number],
            [
                ([cut.prices.get(name, 0.0) for name in number], [place[name] for name in cut.stopped])
                for cut in answer.cuts
            ],
            answer.complete,
        )

    def answer(self, problem: Problem) -> EngineResult:
        """Return it as an engine's answer to a problem."""
        prices = dict(zip(self.network.number, self.prices, strict=True))
        return EngineResult(self.rates(problem), prices, complete=self.complete, native=self)

    @cached_property
    def columns(self) -> PathColumns:
        """The paths as arrays."""
        return PathColumns(self.paths.flow, self.paths.rate_bps, self.paths.start, self.paths.arcs)

    def rates(self, problem: Problem) -> Rates:
        """Return the paths of each demand as an engine's rates."""
        columns, path = self.columns, self.network.path
        return PathTable(
            ids_of(problem.demands), lambda flow: [(path(edges), rate) for edges, rate in columns.of(flow)]
        )

    def with_paths_of(self, other: NativeResult) -> NativeResult:
        """Return the answer with the paths of another one, to the same demands with tighter limits."""
        return replace(self, paths=other.paths, complete=other.complete)

    def fitted(self) -> NativeResult:
        """Return it with rates scaled down to every limit."""
        return replace(self, paths=gomr._native.fit(self.network.network, self.flows, self.paths))

    def audit(self, objective: Objective) -> gomr._native.Audit:
        """Check the answer and compute what its prices prove."""
        first = objective.solved_as
        return gomr._native.audit(self.network.network, self.flows, self.paths, first, self.prices, self.cuts)


def ids_of(demands: Sequence[Demand]) -> Sequence[str]:
    """Return the ids of demands, in their order."""
    return demands.ids if isinstance(demands, DemandColumns) else [demand.id for demand in demands]


def fit(problem: Problem, rates: Rates) -> Rates:
    """Scale rates down where rounding put them over a limit, each path by the tightest of its edges."""
    return NativeResult.of(problem, EngineResult(rates)).fitted().rates(problem)


def assemble(
    problem: Problem, routed: Problem, objective: Objective, engine: str, answer: EngineResult
) -> Allocation:
    """Check an engine's answer and put the allocation together.

    Args:
        problem: The problem.
        routed: The same without the demands that stay at their source, which no engine sees.
        objective: The objective.
        engine: Name of the engine.
        answer: What the engine found for `routed`.

    Returns:
        The allocation; its `wall_s` is 0.

    Raises:
        SolverError: The rates are far over a limit.
    """
    native = NativeResult.of(routed, answer)
    capacity_bps = native.network.capacity_bps
    largest_bps = float(capacity_bps.max())
    if not native.complete:
        native = native.fitted()
    audit = native.audit(objective)
    if audit.max_violation_bps > _MAX_VIOLATION * largest_bps:
        over = f"its rates are over a limit by {audit.max_violation_bps:.6g} bit/s"
        raise SolverError(engine, f"{over}; please report the problem")
    loads_bps = np.array(audit.loads_bps)
    # Each edge by its own capacity, however small beside the largest.
    is_over = bool((loads_bps > capacity_bps * (1 + ROUNDING)).any())
    if is_over or audit.max_violation_bps > ROUNDING * largest_bps:
        native = native.fitted()
        audit = native.audit(objective)
        loads_bps = np.array(audit.loads_bps)
    bound_bps = audit.upper_bound if answer.bound_bps is None else answer.bound_bps
    if answer.most_bps is not None:
        bound_bps = max(audit.value, min(bound_bps, answer.most_bps))
    is_open = capacity_bps > 0
    shares = loads_bps[is_open] / capacity_bps[is_open]
    every = problem.demands if routed is not problem else ()
    local = LocalDemands.of([demand for demand in every if demand.is_local], objective)
    columns, path = native.columns, native.network.path
    paths: PathTable[Paths] = PathTable(
        ids_of(routed.demands),
        lambda flow: path_rates([(path(edges), rate) for edges, rate in columns.of(flow)]),
    )
    every_path = local.merged(paths, problem)
    most = float(shares.max(initial=0.0))
    return replace(
        allocation_of(audit, objective, engine, every_path, local, bound_bps, most),
        timed_out=not native.complete,
        columns=None if local.demands else columns,
        prices=answer.prices,
    )


@dataclass(frozen=True)
class LocalDemands:
    """The demands that stay at their source, which no engine sees, and what they add to the totals."""

    demands: Mapping[str, Demand]
    rate_bps: float
    value_bps: float

    @classmethod
    def of(cls, demands: Iterable[Demand], objective: Objective) -> LocalDemands:
        """Return these demands with their sums."""
        by_id = {demand.id: demand for demand in demands}
        own_bps = {name: demand.rate_bps for name, demand in by_id.items()}
        return cls(by_id, sum(own_bps.values()), objective.value_bps(by_id.values(), own_bps))

    def merged(self, paths: PathTable[Paths], problem: Problem) -> PathTable[Paths]:
        """Return the paths of all demands of a problem."""
        if not self.demands:
            return paths
        own = {name: local_paths(demand) for name, demand in self.demands.items()}
        order = ids_of(problem.demands)
        return PathTable(order, lambda at: own[order[at]] if order[at] in own else paths[order[at]])


def local_paths(demand: Demand) -> Paths:
    """Return the paths of a demand that stays at its source: one without edges."""
    return (PathRate((), (demand.source,), demand.rate_bps, 0.0),) if demand.rate_bps > 0 else ()


def allocation_of(
    totals: gomr._native.Audit | gomr._native.Summary,
    objective: Objective,
    engine: str,
    paths: Mapping[str, Paths],
    local: LocalDemands,
    bound_bps: float,
    max_utilisation: float,
) -> Allocation:
    """Return the allocation of these totals, which local demands add to; its `wall_s` is 0."""
    reached_bps, bound_bps = totals.value + local.value_bps, bound_bps + local.value_bps
    return Allocation(
        paths=paths,
        admitted_bps=totals.admitted_bps + local.rate_bps,
        requested_bps=totals.requested_bps + local.rate_bps,
        cost_bps_s=totals.cost_bps_s,
        objective=objective.name,
        engine=engine,
        upper_bound_bps=bound_bps,
        gap=max(0.0, 1 - reached_bps / bound_bps) if bound_bps > 0 else 0.0,
        max_violation_bps=max(0.0, totals.max_violation_bps),
        wall_s=0.0,
        value_bps=reached_bps,
        max_utilisation=max_utilisation,
    )
