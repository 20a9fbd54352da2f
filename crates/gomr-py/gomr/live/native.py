"""The compiled engine over a problem that changes: it goes on from the basis of its last optimum.

Only what changed is converted. Three things are solved from scratch, since the compiled engine does
not know them: the spread of `even_split`, and the limits `max_paths` and `disjoint` where its optimum breaks
them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from gomr._native import InvalidInput, NotSolved, Summary, TimeIsUp
from gomr.allocation import Allocation, PathRate, Rates, path_rates
from gomr.columns import DemandColumns
from gomr.engines.assembly import LocalDemands, allocation_of, assemble, local_paths
from gomr.engines.native.engine import NAME, failure, refusal, result_of, start
from gomr.engines.native.network import NativeNetwork, finite_bps
from gomr.engines.result import EngineResult
from gomr.engines.time_budget import TimeBudget
from gomr.even_split import spread_in_time
from gomr.live.sessions import LiveProblem, Session
from gomr.objectives import Objective
from gomr.paths.limits import is_limited, trimmed_to_limits, within_limits
from gomr.problem import Demand, Path, Problem
from gomr.solving import allocate, without_local

RateList: TypeAlias = list[tuple[Path, float]]
"""The paths of a flow and the rate of each."""

_ROUNDING = 1e-11
"""Rates over a limit by more than this share of it are scaled down to it."""


class NativeSession(Session):
    """The engine `native` as a `Session`.

    Attributes:
        time_limit_s: Seconds that a solve may take; None for no limit.
    """

    def __init__(
        self,
        problem: LiveProblem,
        objective: Objective,
        time_limit_s: float | None,
        *,
        min_reallocation: bool,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start with a problem as it is.

        Raises:
            InvalidProblem: A number is beyond what the engine takes.
        """
        self._problem = problem
        self._objective = objective
        self.time_limit_s = time_limit_s
        self._clock = clock
        self._until_s = math.inf
        self._min_reallocation = min_reallocation
        whole = problem.problem()
        routed = without_local(whole)
        # The engine's flows in their order, where they are columns.
        self._columns: DemandColumns | None = None
        if routed is whole and isinstance(routed.demands, DemandColumns):
            self._columns = routed.demands
        # Whether the answer of the next solve is wanted in arrays.
        self._all_resized = self._serves_columns
        self._network = NativeNetwork(routed)
        self._capacities_changed = False
        try:
            self._engine = start(self._network, self._network.flows(routed.demands), objective)
        except InvalidInput as error:
            raise refusal(error) from error
        self._number = {demand.id: number for number, demand in enumerate(routed.demands)}
        self._name = dict(enumerate(self._number))
        self._local = {demand.id: demand for demand in whole.demands if demand.is_local}
        self._limited = {demand.id: demand for demand in routed.demands if is_limited(demand)}
        self._rates: dict[str, RateList] = {}
        # In the order of the problem's demands.
        self._paths: dict[str, tuple[PathRate, ...]] = {
            demand.id: local_paths(demand) if demand.is_local else () for demand in whole.demands
        }
        # Flows that asked for another rate since the last solve.
        self._resized: set[str] = set()
        if min_reallocation:
            self._engine.keep_shares()

    def copy(self, problem: LiveProblem) -> NativeSession:
        """Return the same session of a copy of its problem; what happens to one does not touch the other."""
        made = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(made, name, value.copy() if isinstance(value, dict | set) else value)
        made._problem, made._engine = problem, self._engine.copy()
        return made

    def add(self, demand: Demand) -> None:
        """Add a checked demand."""
        self._columns = None
        if demand.is_local:
            self._take_local(demand)
            return
        try:
            number = self._engine.add_flow(self._network.flow(demand))
        except InvalidInput as error:
            raise refusal(error) from error
        self._number[demand.id] = number
        self._name[number] = demand.id
        self._paths[demand.id] = ()
        if is_limited(demand):
            self._limited[demand.id] = demand

    def remove(self, demand: Demand) -> None:
        """Let a demand go."""
        self._columns = None
        del self._paths[demand.id]
        if self._local.pop(demand.id, None) is not None:
            return
        number = self._number.pop(demand.id)
        self._engine.remove_flow(number)
        del self._name[number]
        self._limited.pop(demand.id, None)
        self._rates.pop(demand.id, None)
        self._resized.discard(demand.id)

    def rebind(self, before: Demand, demand: Demand) -> None:
        """Replace the demand of this id by one that comes last in order and has had its rates."""
        rates, paths = self._rates.get(demand.id), self._paths[demand.id]
        self.remove(before)
        self.add(demand)
        if rates is not None:
            self._rates[demand.id], self._paths[demand.id] = rates, paths
            self._tell(demand.id, rates)

    def resize(self, demand: Demand) -> None:
        """Take a demand's new rate."""
        if demand.is_local:
            self._take_local(demand)
            return
        self._resized.add(demand.id)
        self._engine.change_rate(self._number[demand.id], float(demand.rate_bps))
        if demand.id in self._limited:
            self._limited[demand.id] = demand

    def resize_all(self, demands: DemandColumns) -> bool:
        """Take new rates of all demands, those in the columns; False where that must go one by one."""
        if self._columns is None or not (self._serves_columns and demands.has_ends_of(self._columns)):
            return False
        self._engine.change_rates(demands.rate_bps.tobytes())
        self._all_resized = True
        return True

    @property
    def _serves_columns(self) -> bool:
        return self._columns is not None and not (self._min_reallocation or self._objective.evens_split)

    def _take_local(self, demand: Demand) -> None:
        self._local[demand.id] = demand
        self._paths[demand.id] = local_paths(demand)

    def set_capacity(self, edge_id: str, capacity_bps: float) -> None:
        """Take an edge's new capacity, 0 while it is down."""
        self._capacities_changed = True
        self._engine.set_capacity(self._network.number[edge_id], finite_bps(capacity_bps))

    def start_from(self, rates: Mapping[str, Mapping[tuple[str, ...], float]]) -> None:
        """Take rates (by flow and path) for those that flows had before the next event."""
        for name, paths in rates.items():
            if name in self._number:
                own = [(self._network.path_of(edges), rate_bps) for edges, rate_bps in paths.items()]
                self._rates[name], self._paths[name] = own, path_rates(own)
                self._tell(name, own)

    def prices(self) -> Mapping[str, float]:
        """Return what each edge's last bit/s adds to the value of the last solve, by its id."""
        return dict(zip(self._network.number, self._engine.prices_so_far()[0], strict=True))

    def solve(self) -> Allocation:
        """Return the optimum of what it was told.

        Raises:
            SolverError: The engine failed.
        """
        self._until_s = math.inf if self.time_limit_s is None else self._clock() + self.time_limit_s
        if self._all_resized:
            return self._solve_all()
        try:
            summary, flows, complete = self._changes()
        except TimeIsUp:
            return self._best_so_far()
        except NotSolved as error:
            raise failure(error, self.time_limit_s) from error
        self._take({self._name[number]: paths for number, paths in flows})
        if not self._keeps_limits():
            return self._solve_from_scratch()
        largest_bps = max(self._problem.capacity_bps.values())
        # Each edge by its own capacity, and those that are down.
        is_over = (
            summary.max_utilisation > 1 + _ROUNDING or summary.max_violation_bps > _ROUNDING * largest_bps
        )
        if is_over or self._objective.evens_split:
            allocation = self._from_all_rates(summary)
        else:
            allocation = self._allocation(summary)
        return allocation if complete else replace(allocation, timed_out=True)

    def _solve_all(self) -> Allocation:
        """Return the optimum in arrays, after the rates of all demands have changed."""
        self._all_resized = False
        problem = self._problem.problem()
        if self._capacities_changed:
            self._network, self._capacities_changed = NativeNetwork(problem), False
        network = self._network
        try:
            answer = result_of(self._engine, network, network.flows(problem.demands), self.time_limit_s)
        except NotSolved as error:
            raise failure(error, self.time_limit_s) from error
        return assemble(problem, problem, self._objective, NAME, answer.answer(problem))

    def _changes(self) -> tuple[Summary, list[tuple[int, RateList]], bool]:
        """Solve; return totals, what changed, and whether there was time for all of it."""
        if self._min_reallocation:
            resized = [self._number[name] for name in self._resized]
            return self._engine.minimum_reallocation(resized, time_limit_s=self.time_limit_s)
        return *self._engine.changes(time_limit_s=self.time_limit_s), True

    def _best_so_far(self) -> Allocation:
        """Return the best rates known at the end of the time, within all limits; the next solve goes on."""
        summary, flows = self._engine.changes_so_far()
        self._take({self._name[number]: paths for number, paths in flows})
        if self._keeps_limits():
            return replace(self._allocation(summary), timed_out=True)
        problem = self._problem.problem()
        routed = without_local(problem)
        rates = trimmed_to_limits(routed, {demand.id: self._rates[demand.id] for demand in routed.demands})
        return self._assembled(problem, routed, rates, summary, complete=False)

    def _take(self, chosen: dict[str, RateList]) -> None:
        for name, rates in chosen.items():
            self._rates[name] = rates
            self._paths[name] = path_rates(rates)
        self._resized.clear()

    def _tell(self, name: str, rates: RateList) -> None:
        """Tell the engine what a flow really has, which it then keeps as far as an optimum allows."""
        if self._min_reallocation:
            numbered = self._numbered(rates)
            self._engine.set_reported(
                self._number[name], [(list(path), bps) for path, bps in numbered.items()]
            )

    def _left_s(self) -> float | None:
        return None if math.isinf(self._until_s) else max(0.0, self._until_s - self._clock())

    def _solve_from_scratch(self) -> Allocation:
        """Solve from scratch, since an optimum broke limits that the engine does not know."""
        allocation = allocate(
            self._problem.problem(), self._objective.name, NAME, time_limit_s=self._left_s()
        )
        if self._min_reallocation:  # else the flows that the engine does not change next have its rates
            for name in self._number:
                self._paths[name] = paths = allocation.paths[name]
                self._rates[name] = [(self._network.path_of(path.edges), path.rate_bps) for path in paths]
                self._tell(name, self._rates[name])
        return allocation

    def _numbered(self, rates: RateList) -> dict[tuple[int, ...], float]:
        number = self._network.number
        return {tuple(number[edge.id] for edge in path): rate_bps for path, rate_bps in rates}

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
        complete = True
        if self._objective.evens_split:
            rates, complete = spread_in_time(routed, rates, TimeBudget(NAME, self._left_s()))
        return self._assembled(problem, routed, rates, summary, complete=complete)

    def _assembled(
        self, problem: Problem, routed: Problem, rates: Rates, summary: Summary, *, complete: bool
    ) -> Allocation:
        """Put an allocation together with the bound that the engine keeps up."""
        answer = EngineResult(rates, complete=complete, bound_bps=summary.upper_bound)
        return assemble(problem, routed, self._objective, NAME, answer)

    def _allocation(self, summary: Summary) -> Allocation:
        local = LocalDemands.of(self._local.values(), self._objective)
        return allocation_of(
            summary,
            self._objective,
            NAME,
            self._paths.copy(),
            local,
            summary.upper_bound,
            summary.max_utilisation,
        )
