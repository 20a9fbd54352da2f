"""A network whose routing stays at the optimum while flows and links come, change and go.

    live = Engine(problem, objective="max_throughput_min_delay")
    change = live.add_flow(Demand("3", "T0", "T3", 2e6))
    change = live.fail_link("S0->S4")
    change.reallocation.rerouted, change.allocation.gap

Each event is one call, and what it returns is what `solve` finds for the problem as it is then: the same
objective values, proved by the same certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from gomr.allocation import Allocation, rates_of_allocation
from gomr.columns import DemandColumns
from gomr.engines.assembly import NativeResult
from gomr.engines.result import EngineResult
from gomr.errors import InvalidProblem
from gomr.graphs import problem_of
from gomr.live.reallocation import Reallocation, reallocation_between
from gomr.live.sessions import ColdSession, LiveProblem, Session
from gomr.matrices import Matrix, demands_of
from gomr.objectives import objective_of
from gomr.problem import Demand, Problem, check_capacity, check_number
from gomr.solution import Solution, solution_with
from gomr.solving import DEFAULT_ENGINE, allocate, check_names, check_time_limit, without_local


@dataclass(frozen=True)
class EventResult:
    """What an event did.

    Attributes:
        event: The event in words, as "flow f1 arrives".
        allocation: The optimum from now on.
        before: The one before the event.
        own: The flow that caused the event by asking for another rate, which counts as no reallocation.
        wall_s: Time taken.
        cpu_s: CPU time taken by this thread, where all the work is done.
    """

    event: str
    allocation: Allocation
    before: Allocation = field(repr=False)
    own: str | None
    wall_s: float
    cpu_s: float

    @cached_property
    def reallocation(self) -> Reallocation:
        """What the event means for the flows that were there before and are still."""
        return reallocation_between(self.before, self.allocation, self.own)

    @property
    def moved(self) -> tuple[str, ...]:
        """The flows that were there before and have other paths or other rates now."""
        return self.reallocation.moved


class Engine:
    """A routing problem, kept at its optimum from event to event.

    An event that is refused (InvalidProblem) changes nothing. One whose solve fails (SolverError) has
    happened; `allocation` and the next event solve for it again. One that runs out of time leads to the best
    rates known, within all limits and with their gap (`Allocation.timed_out`); the next event goes on.
    """

    def __init__(
        self,
        graph: Any,
        demands: Iterable[Demand] | DemandColumns | Matrix | None = None,
        objective: str = "max_throughput_min_delay",
        engine: str = DEFAULT_ENGINE,
        *,
        min_reallocation: bool = False,
        time_limit_s: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
        **reading: Any,
    ) -> None:
        """Take a problem; it is solved when its allocation is first asked for.

        Args:
            graph: The network, in any form that `gomr.solve` takes. Links that are down can be failed
                afterwards.
            demands: The flows to begin with, in any form that `gomr.solve` takes; None where `graph` is a
                `Problem` that has them.
            objective: A name in `OBJECTIVES`.
            engine: A name in `ENGINES`. `native` goes on from its last basis; the others solve from
                scratch at each event.
            min_reallocation: Of all optima choose one that moves no flow without need (docs/gomr.md).
            time_limit_s: Seconds that an event may take; None for no limit.
            clock: Seconds, for `EventResult.wall_s`.
            cpu_clock: Seconds, for `EventResult.cpu_s`.
            **reading: As `gomr.problem_of`.

        Raises:
            InvalidProblem: Something in the problem contradicts itself, there is no such objective or engine,
                the time limit is no number, or `min_reallocation` is asked of another engine than native.
        """
        check_names(objective, engine, time_limit_s)
        if min_reallocation and engine != "native":
            raise InvalidProblem(
                "min_reallocation", f"needs the engine native; {engine} finds one optimum only"
            )
        self._problem = LiveProblem(problem_of(graph, demands, **reading))
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._session: Session
        if engine == "native":
            from gomr.live.native import NativeSession  # loads the compiled engine

            self._session = NativeSession(
                self._problem, objective_of(objective), time_limit_s, min_reallocation=min_reallocation
            )
        else:
            self._session = ColdSession(self._problem, objective, engine, time_limit_s)
        self._allocation: Allocation | None = None

    def copy(self) -> Engine:
        """Return the same engine once more, its basis included: both go on to the same optima."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made._problem = self._problem.copy()
        made._session = self._session.copy(made._problem)
        return made

    @property
    def problem(self) -> Problem:
        """The problem as it is now; links that are down have a capacity of 0."""
        return self._problem.problem()

    @property
    def time_limit_s(self) -> float | None:
        """Seconds that an event may take from now on; None for no limit."""
        return self._session.time_limit_s

    @time_limit_s.setter
    def time_limit_s(self, limit_s: float | None) -> None:
        check_time_limit(limit_s)
        self._session.time_limit_s = limit_s

    @property
    def allocation(self) -> Allocation:
        """The optimum, or the best known where the time was up.

        Raises:
            SolverError: The engine failed.
        """
        if self._allocation is None:
            started = self._clock()
            allocation = self._session.solve()
            self._allocation = replace(allocation, wall_s=self._clock() - started)
        return self._allocation

    @property
    def solution(self) -> Solution:
        """The optimum with its problem and prices, as `gomr.solve` returns it.

        Raises:
            SolverError: The engine failed.
        """
        allocation = self.allocation
        return solution_with(self.problem, allocation, allocation.prices or self._session.prices())

    def certified(self) -> Allocation:
        """Return the optimum with a certificate that is recomputed from its paths and rates.

        What events return has the bound that the compiled engine keeps up from event to event. This one comes
        of the paths, their rates and the prices of a fresh solve alone; it costs that solve.

        Raises:
            SolverError: The engine failed.
        """
        kept = self.allocation
        fresh = allocate(self.problem, kept.objective, kept.engine)
        bound_bps = fresh.upper_bound_bps
        gap = max(0.0, 1 - kept.value_bps / bound_bps) if bound_bps > 0 else 0.0
        answer = EngineResult(rates_of_allocation(self.problem, kept))
        audit = NativeResult.of(without_local(self.problem), answer).audit(objective_of(kept.objective))
        over_bps = audit.max_violation_bps
        return replace(kept, upper_bound_bps=bound_bps, gap=gap, max_violation_bps=over_bps)

    def start_from(self, rates: Mapping[str, Mapping[tuple[str, ...], float]]) -> None:
        """Take rates for those that the flows have, though the optimum was found without them.

        With `min_reallocation`, the next event's optimum is chosen to move these least.

        Args:
            rates: The rate of each path (edge ids), by flow; flows that are not named keep those found.

        Raises:
            InvalidProblem: There is no such flow.
            SolverError: The engine failed or ran out of time.
        """
        for flow_id in rates:
            self._flow(flow_id)
        _ = self.allocation  # what was found is there from here on
        self._session.start_from(rates)

    def add_flow(self, flow: Demand) -> EventResult:
        """Let a flow arrive.

        Raises:
            InvalidProblem: A field of it is wrong, or there is a flow of this id.
            SolverError: The engine failed.
        """
        if flow.id in self._problem.demands:
            raise InvalidProblem(f"demands[{flow.id}].id", "is given twice; ids must be unique")
        self._problem.network.check_demand(flow)

        def apply() -> None:
            self._session.add(flow)
            self._problem.demands[flow.id] = flow

        return self._change(f"flow {flow.id} arrives", apply)

    def remove_flow(self, flow_id: str) -> EventResult:
        """Let a flow leave.

        Raises:
            InvalidProblem: There is no flow of this id.
            SolverError: The engine failed.
        """
        flow = self._flow(flow_id)

        def apply() -> None:
            self._session.remove(flow)
            del self._problem.demands[flow_id]

        return self._change(f"flow {flow_id} leaves", apply)

    def set_rate(self, flow_id: str, rate_bps: float) -> EventResult:
        """Let a flow ask for another wire rate (bit/s).

        Raises:
            InvalidProblem: There is no flow of this id, or the rate is not finite or negative.
            SolverError: The engine failed.
        """
        flow = replace(self._flow(flow_id), rate_bps=rate_bps)
        check_number(f"demands[{flow_id}].rate_bps", rate_bps)

        def apply() -> None:
            self._session.resize(flow)
            self._problem.demands[flow_id] = flow

        return self._change(f"flow {flow_id} asks for {rate_bps:g} bit/s", apply, own=flow_id)

    def fix_paths(self, flow_id: str, paths: Sequence[tuple[str, ...]] | None) -> EventResult:
        """Bind a flow to some paths, over which its rates are free, or let it take any again.

        It counts as the last to arrive from now on.

        Args:
            flow_id: The flow.
            paths: Edge ids from its source to its destination, as `Demand.fixed_paths`; None frees it.

        Raises:
            InvalidProblem: There is no flow of this id, or a path that it cannot take.
            SolverError: The engine failed.
        """
        before = self._flow(flow_id)
        flow = replace(before, fixed_paths=None if paths is None else tuple(paths))
        self._problem.network.check_demand(flow)

        def apply() -> None:
            self._rebind(before, flow)

        what = "may take any path" if paths is None else "keeps to its paths"
        return self._change(f"flow {flow_id} {what}", apply, own=flow_id)

    def become(
        self,
        flows: Iterable[Demand] | DemandColumns | Matrix,
        capacity_bps: Mapping[str, float] = MappingProxyType({}),
    ) -> EventResult:
        """Let flows and links become what is given, in one event with one solve.

        Flows that are not given leave, new ones arrive. One that differs in more than its rate counts as the
        last to arrive. `DemandColumns` one after another, with the same demands at other rates, are the
        quickest: the hours of a series of matrices.

        Args:
            flows: All flows from now on, in any form that `from_networkx` takes; an array as
                `DemandColumns.from_matrix(nodes, array)`, in bit/s.
            capacity_bps: The capacity of edges by id; the others keep theirs.

        Raises:
            InvalidProblem: A flow or a capacity makes no sense, or two flows have one id.
            SolverError: The engine failed.
        """
        given = demands_of(flows)
        capacities = self._changed_capacities(capacity_bps)
        if not isinstance(given, DemandColumns):
            return self._become(given, capacities)
        if not self._problem.has_flows_of(given) or not self._session.resize_all(given):
            change = self._become(given, capacities)
            if list(self._problem.demands) == list(given.ids):
                self._problem.take(given)
            return change

        def apply() -> None:
            self._problem.take(given)
            self._apply_capacities(capacities)

        return self._change("rates and links change", apply)

    def _become(self, flows: Iterable[Demand], capacities: Mapping[str, float]) -> EventResult:
        after: dict[str, Demand] = {}
        for flow in flows:
            if flow.id in after:
                raise InvalidProblem(f"demands[{flow.id}].id", "is given twice; ids must be unique")
            after[flow.id] = flow
        before = self._problem.demands
        changed = [flow for flow in after.values() if before.get(flow.id) != flow]
        for flow in changed:
            self._problem.network.check_demand(flow)

        def apply() -> None:
            for flow in [flow for name, flow in before.items() if name not in after]:
                self._session.remove(flow)
                del before[flow.id]
            for flow in changed:
                self._take_over(flow)
            self._apply_capacities(capacities)

        return self._change("flows and links change", apply)

    def _apply_capacities(self, capacity_bps: Mapping[str, float]) -> None:
        self._problem.capacity_bps.update(capacity_bps)
        self._tell_capacities(capacity_bps)

    def _changed_capacities(self, capacity_bps: Mapping[str, float]) -> dict[str, float]:
        """Return the capacities that differ from what edges have, checked."""
        known = self._problem.capacity_bps
        changed = {name: value for name, value in capacity_bps.items() if known.get(name) != value}
        for name, value in changed.items():
            self._edges(name, one_way=True)
            check_capacity(f"edges[{name}].capacity_bps", value)
        return changed

    def _take_over(self, flow: Demand) -> None:
        """Take a flow as it is from now on, whether it is new or differs from what it was."""
        before = self._problem.demands.get(flow.id)
        if before is None:
            self._session.add(flow)
            self._problem.demands[flow.id] = flow
        elif replace(before, rate_bps=flow.rate_bps) == flow:
            self._session.resize(flow)
            self._problem.demands[flow.id] = flow
        else:
            self._rebind(before, flow)

    def _rebind(self, before: Demand, flow: Demand) -> None:
        # Both the session and the problem have it last from now on.
        self._session.rebind(before, flow)
        del self._problem.demands[flow.id]
        self._problem.demands[flow.id] = flow

    def fail_link(self, link: str, *, one_way: bool = False) -> EventResult:
        """Let a link fail: its edges carry nothing until it is restored.

        Args:
            link: Id of an edge; its reverse fails with it.
            one_way: The edge fails alone.

        Raises:
            InvalidProblem: There is no such edge.
            SolverError: The engine failed.
        """
        edges = self._edges(link, one_way)
        return self._change(f"link {link} fails", lambda: self._apply_down(edges, down=True))

    def restore_link(self, link: str, *, one_way: bool = False) -> EventResult:
        """Let a link return with the capacity it last had.

        Args:
            link: Id of an edge; its reverse returns with it.
            one_way: The edge returns alone.

        Raises:
            InvalidProblem: There is no such edge.
            SolverError: The engine failed.
        """
        edges = self._edges(link, one_way)
        return self._change(f"link {link} returns", lambda: self._apply_down(edges, down=False))

    def set_link_rate(self, link: str, rate_bps: float, *, one_way: bool = False) -> EventResult:
        """Give a link another capacity (bit/s); while it is down, for later.

        Args:
            link: Id of an edge; its reverse gets the capacity too.
            rate_bps: The capacity of each direction.
            one_way: The edge gets it alone.

        Raises:
            InvalidProblem: There is no such edge, or the capacity is not finite or negative.
            SolverError: The engine failed.
        """
        edges = self._edges(link, one_way)
        check_capacity(f"edges[{link}].capacity_bps", rate_bps)

        def apply() -> None:
            for edge_id in edges:
                self._problem.capacity_bps[edge_id] = rate_bps
            self._tell_capacities(edges)

        return self._change(f"link {link} has {rate_bps:g} bit/s", apply)

    def _apply_down(self, edges: Iterable[str], *, down: bool) -> None:
        for edge_id in edges:
            (self._problem.down.add if down else self._problem.down.discard)(edge_id)
        self._tell_capacities(edges)

    def _tell_capacities(self, edges: Iterable[str]) -> None:
        if edges:
            self._problem.forget(edges=True)
        for edge_id in edges:
            self._session.set_capacity(edge_id, self._problem.usable_bps(edge_id))

    def _change(self, event: str, apply: Callable[[], None], own: str | None = None) -> EventResult:
        """Let an event happen and solve; the flow `own` caused it and counts as no reallocation."""
        before = self.allocation
        started, cpu_started = self._clock(), self._cpu_clock()
        apply()
        self._problem.forget()
        self._allocation = None
        allocation = self._session.solve()
        wall_s, cpu_s = self._clock() - started, self._cpu_clock() - cpu_started
        self._allocation = replace(allocation, wall_s=wall_s)
        return EventResult(event, self._allocation, before, own, wall_s, cpu_s)

    def _flow(self, flow_id: str) -> Demand:
        try:
            return self._problem.demands[flow_id]
        except KeyError:
            raise InvalidProblem(f"demands[{flow_id}]", "there is no such flow") from None

    def _edges(self, link: str, one_way: bool) -> tuple[str, ...]:
        network = self._problem.network
        if link not in network.edges_by_id:
            raise InvalidProblem(f"edges[{link}]", "there is no such edge; a link is named by one of its own")
        reverse = (network.reverse or {}).get(link)
        return (link,) if one_way or reverse is None or reverse == link else (link, reverse)
