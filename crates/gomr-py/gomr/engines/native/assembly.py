"""What the compiled engine answers becomes an `Allocation`: checked, held to the limits, and certified.

The certificate is computed from the paths, their rates and the prices alone, by a function that knows nothing
of the engine (`gomr._native.audit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import gomr._native
from gomr.allocation import Allocation, PathRate, Rates, path_rates
from gomr.columns import Floats, PathColumns, PathTable
from gomr.engines.native.network import NativeNetwork
from gomr.errors import SolverError
from gomr.objectives import Objective
from gomr.problem import Demand, Problem

_TRUSTED = 1e-6
"""An engine whose rates are over a limit by more than this share of the largest capacity has failed."""
_ROUNDING = 1e-13


@dataclass(frozen=True)
class NativeAnswer:
    """Paths and prices of the compiled engine.

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
    paths: gomr._native.Answer
    prices: list[float]
    cuts: list[tuple[list[float], list[int]]]
    complete: bool = True

    def columns(self) -> PathColumns:
        """Return the paths as arrays."""
        return PathColumns(self.paths.flow, self.paths.rate_bps, self.paths.start, self.paths.arcs)

    def rates(self, problem: Problem) -> Rates:
        """Return the paths of each demand as an engine's rates."""
        columns, path = self.columns(), self.network.path
        return PathTable(
            ids_of(problem.demands), lambda flow: [(path(edges), rate) for edges, rate in columns.of(flow)]
        )

    def with_paths_of(self, other: NativeAnswer) -> NativeAnswer:
        """Return the answer with the paths of another one, to the same demands with tighter limits."""
        return replace(self, paths=other.paths, complete=other.complete)

    def fitted(self) -> NativeAnswer:
        """Return it with rates scaled down to every limit."""
        return replace(self, paths=gomr._native.fit(self.network.network, self.flows, self.paths))

    def audit(self, objective: Objective) -> gomr._native.Audit:
        """Check the answer and compute what its prices prove."""
        first = objective.solved_as
        return gomr._native.audit(self.network.network, self.flows, self.paths, first, self.prices, self.cuts)


def ids_of(demands: Sequence[Demand]) -> Sequence[str]:
    """Return the ids of demands, in their order."""
    from gomr.columns import DemandColumns

    return demands.ids if isinstance(demands, DemandColumns) else [demand.id for demand in demands]


def assemble(
    problem: Problem, routed: Problem, objective: Objective, engine: str, answer: NativeAnswer
) -> Allocation:
    """Check an answer and put the allocation together; arguments as `gomr.solving.assemble`.

    Raises:
        SolverError: The rates are far over a limit.
    """
    capacity_bps = answer.network.capacity_bps
    largest_bps = float(capacity_bps.max())
    if not answer.complete:
        answer = answer.fitted()
    audit = answer.audit(objective)
    if audit.max_violation_bps > _TRUSTED * largest_bps:
        over = f"its rates are over a limit by {audit.max_violation_bps:.6g} bit/s"
        raise SolverError(engine, f"{over}; please report the problem")
    if audit.max_violation_bps > _ROUNDING * largest_bps or _is_over(capacity_bps, audit.loads_bps):
        answer = answer.fitted()
        audit = answer.audit(objective)
    local = _Local(problem, routed, objective)
    reached_bps, bound_bps = audit.value + local.value_bps, audit.upper_bound + local.value_bps
    is_open = capacity_bps > 0
    shares = np.array(audit.loads_bps)[is_open] / capacity_bps[is_open]
    columns, path = answer.columns(), answer.network.path
    table: PathTable[tuple[PathRate, ...]] = PathTable(
        ids_of(routed.demands),
        lambda flow: path_rates([(path(edges), rate) for edges, rate in columns.of(flow)]),
    )
    return Allocation(
        paths=local.merged(table),
        admitted_bps=audit.admitted_bps + local.rate_bps,
        requested_bps=audit.requested_bps + local.rate_bps,
        cost_bps_s=audit.cost_bps_s,
        objective=objective.name,
        engine=engine,
        upper_bound_bps=bound_bps,
        gap=max(0.0, 1 - reached_bps / bound_bps) if bound_bps > 0 else 0.0,
        max_violation_bps=audit.max_violation_bps,
        wall_s=0.0,
        value_bps=reached_bps,
        max_utilisation=float(shares.max(initial=0.0)),
        timed_out=not answer.complete,
        columns=columns if not local.demands else None,
        prices=dict(zip(answer.network.number, answer.prices, strict=True)),
    )


def _is_over(capacity_bps: Floats, loads_bps: Sequence[float]) -> bool:
    """Return whether an edge carries more than its own capacity, however small beside the largest."""
    return bool((np.array(loads_bps) > capacity_bps * (1 + _ROUNDING)).any())


class _Local:
    """The demands that stay at their source, which no engine sees."""

    def __init__(self, problem: Problem, routed: Problem, objective: Objective) -> None:
        everywhere = problem.demands if routed is not problem else ()
        self.demands = [demand for demand in everywhere if demand.is_local]
        self._order = ids_of(problem.demands)
        self.rate_bps = sum(demand.rate_bps for demand in self.demands)
        self.value_bps = self.rate_bps
        if objective.by_parts:
            own_bps = {demand.id: demand.rate_bps for demand in self.demands}
            self.value_bps = objective.value_bps(self.demands, own_bps)

    def merged(self, table: PathTable[tuple[PathRate, ...]]) -> PathTable[tuple[PathRate, ...]]:
        """Return the paths of all demands."""
        if not self.demands:
            return table
        from gomr.solving import local_paths

        own = {demand.id: local_paths(demand) for demand in self.demands}
        order = self._order
        return PathTable(order, lambda at: own[order[at]] if order[at] in own else table[order[at]])
