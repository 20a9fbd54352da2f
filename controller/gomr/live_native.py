"""The compiled engine over a problem that changes: it goes on from the basis of its last optimum.

Only what changed is converted. Three things are solved anew from all rates, since the compiled engine does
not know them: the spread of `even_split`, and the limits `max_paths` and `disjoint` where its optimum breaks
them.
"""

from __future__ import annotations

import math

from controller.gomr.allocation import Allocation, PathRate, Rates, path_rates
from controller.gomr.answer import Answer
from controller.gomr.engines import assemble, local_paths, solve, without_local
from controller.gomr.even_split import spread
from controller.gomr.graph import Path
from controller.gomr.limits import is_limited, within_limits
from controller.gomr.live_sessions import LiveProblem
from controller.gomr.native_engine import NAME, failure, refusal, start
from controller.gomr.native_network import NativeNetwork
from controller.gomr.objectives import value_bps
from controller.gomr.problem import Demand
from mstcp._core.gomr import InvalidInput, NotSolved, Summary

_ROUNDING = 1e-11
"""Rates over a limit by more than this share of the largest capacity are scaled down to it."""


class NativeSession:
    """The engine `native` as a `Session`."""

    def __init__(self, problem: LiveProblem, objective: str, time_limit_s: float | None) -> None:
        """Start with a problem as it is.

        Raises:
            InvalidProblem: A number is beyond what the engine takes.
        """
        self._problem = problem
        self._objective = objective
        self._time_limit_s = time_limit_s
        routed = without_local(problem.problem())
        self._network = NativeNetwork(routed)
        try:
            self._engine = start(self._network, routed, objective)
        except InvalidInput as error:
            raise refusal(error) from error
        self._number = {demand.id: number for number, demand in enumerate(routed.demands)}
        self._name = dict(enumerate(self._number))
        self._local = {demand.id: demand for demand in problem.demands.values() if demand.is_local}
        self._limited = {demand.id: demand for demand in routed.demands if is_limited(demand)}
        self._rates: dict[str, list[tuple[Path, float]]] = {}
        self._paths: dict[str, tuple[PathRate, ...]] = {}

    def add(self, demand: Demand) -> None:
        """Take a checked demand in."""
        if demand.is_local:
            self._local[demand.id] = demand
            return
        try:
            number = self._engine.add_flow(self._network.flow(demand))
        except InvalidInput as error:
            raise refusal(error) from error
        self._number[demand.id] = number
        self._name[number] = demand.id
        if is_limited(demand):
            self._limited[demand.id] = demand

    def remove(self, demand: Demand) -> None:
        """Let a demand go."""
        if self._local.pop(demand.id, None) is not None:
            return
        number = self._number.pop(demand.id)
        self._engine.remove_flow(number)
        del self._name[number]
        self._limited.pop(demand.id, None)
        self._rates.pop(demand.id, None)
        self._paths.pop(demand.id, None)

    def resize(self, demand: Demand) -> None:
        """Take a demand's new rate."""
        if demand.is_local:
            self._local[demand.id] = demand
            return
        self._engine.change_rate(self._number[demand.id], float(demand.rate_bps))
        if demand.id in self._limited:
            self._limited[demand.id] = demand

    def set_capacity(self, edge_id: str, capacity_bps: float) -> None:
        """Take an edge's new capacity, 0 while it is down."""
        self._engine.set_capacity(self._network.number[edge_id], float(capacity_bps))

    def solve(self) -> Allocation:
        """Return the optimum of what it was told.

        Raises:
            SolverError: The engine failed or ran out of time.
        """
        try:
            summary, flows = self._engine.changes(time_limit_s=self._time_limit_s)
        except NotSolved as error:
            raise failure(error, self._time_limit_s) from error
        for number, paths in flows:
            name = self._name[number]
            self._rates[name] = [(self._network.path(edges), rate_bps) for edges, rate_bps in paths]
            self._paths[name] = path_rates(self._rates[name])
        if not self._keeps_limits():
            problem = self._problem.problem()
            return solve(problem, self._objective, NAME, time_limit_s=self._time_limit_s)
        largest_bps = max(self._problem.capacity_bps.values())
        if self._objective == "even_split" or summary.max_violation_bps > _ROUNDING * largest_bps:
            return self._from_all_rates(summary)
        return self._allocation(summary)

    def _keeps_limits(self) -> bool:
        return all(
            within_limits(demand, [path for path, rate_bps in self._rates[name] if rate_bps > 0])
            for name, demand in self._limited.items()
        )

    def _from_all_rates(self, summary: Summary) -> Allocation:
        """Put an allocation together as for a solve from scratch: rates are spread and scaled."""
        problem = self._problem.problem()
        routed = without_local(problem)
        rates: Rates = {demand.id: self._rates[demand.id] for demand in routed.demands}
        if self._objective == "even_split":
            rates = spread(routed, rates, NAME, self._time_limit_s)
        answer = Answer(rates, bound_bps=summary.upper_bound)
        return assemble(problem, routed, self._objective, NAME, answer)

    def _allocation(self, summary: Summary) -> Allocation:
        local_bps = {name: demand.rate_bps for name, demand in self._local.items()}
        local_value_bps = value_bps(self._local.values(), self._objective, local_bps)
        local_sum_bps = math.fsum(local_bps.values())
        paths = {
            name: local_paths(demand) if demand.is_local else self._paths[name]
            for name, demand in self._problem.demands.items()
        }
        return Allocation(
            paths=paths,
            admitted_bps=summary.admitted_bps + local_sum_bps,
            requested_bps=summary.requested_bps + local_sum_bps,
            cost_bps_s=summary.cost_bps_s,
            objective=self._objective,
            engine=NAME,
            upper_bound_bps=summary.upper_bound + local_value_bps,
            gap=summary.gap,
            max_violation_bps=max(0.0, summary.max_violation_bps),
            wall_s=0.0,
            value_bps=summary.value + local_value_bps,
            max_utilisation=summary.max_utilisation,
        )
