"""A live engine after any events against solves from scratch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gomr import (
    ENGINES,
    OBJECTIVES,
    Demand,
    DemandColumns,
    Engine,
    EventResult,
    Problem,
    from_network,
)
from gomr.errors import InvalidProblem
from gomr.solving import allocate
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import topologies
from tests.gomr.gomr_oracles import (
    check_allocation,
    multiples,
    problems,
    rates,
    simple_paths,
    two_way,
    unit_of,
)

EXACT = 1e-9
every_engine = pytest.mark.parametrize("engine", ENGINES)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def assert_as_from_scratch(live: Engine, objective: str, engine: str) -> None:
    problem, allocation = live.problem, live.allocation
    check_allocation(problem, allocation)
    cold = allocate(problem, objective, engine)
    unit_bps = unit_of(problem)
    exact_bps = EXACT * unit_bps
    assert allocation.value_bps == pytest.approx(cold.value_bps, rel=EXACT, abs=exact_bps)
    assert allocation.gap <= 1e-8
    assert allocation.upper_bound_bps >= allocation.value_bps * (1 - EXACT)
    if objective == "max_min":
        for demand in problem.demands:
            fair_bps = cold.rate_bps(demand.id)
            assert allocation.rate_bps(demand.id) == pytest.approx(fair_bps, rel=1e-8, abs=10 * exact_bps)
    # HiGHS cannot tell utilisations below its tolerance apart: in so empty a network all ways are equal.
    nearly_empty = objective == "min_max_utilisation" and cold.max_utilisation < EXACT
    if objective != "even_split" and not nearly_empty:
        longest_s = max(edge.delay_s for edge in problem.edges)
        # HiGHS's own tolerance, on paths of several edges, limits the comparison.
        assert allocation.cost_bps_s == pytest.approx(
            cold.cost_bps_s, rel=1e-7, abs=10 * exact_bps * longest_s
        )
    if objective == "min_max_utilisation":
        assert allocation.max_utilisation == pytest.approx(cold.max_utilisation, rel=1e-7, abs=1e-9)


class Events(RuleBasedStateMachine):
    """Any events, with a look after each."""

    objective = "max_throughput_min_delay"
    min_reallocation = False

    @initialize(problem=problems())
    def start(self, problem: Problem) -> None:
        self.live = Engine(problem, objective=self.objective, min_reallocation=self.min_reallocation)
        self.edges = sorted(edge.id for edge in problem.edges)
        self.unit_bps = unit_of(problem)
        self.count = 0

    @rule(data=st.data(), rate=multiples, ack_ratio=st.sampled_from([0.0, 0.0458]))
    def flow_arrives(self, data: st.DataObject, rate: float, ack_ratio: float) -> None:
        nodes = st.sampled_from(sorted(self.live.problem.nodes))
        self.count += 1
        source, destination = data.draw(nodes), data.draw(nodes)
        flow = Demand(f"new{self.count}", source, destination, rate * self.unit_bps, ack_ratio=ack_ratio)
        self.settled(self.live.add_flow(flow))

    @precondition(lambda self: self.live.problem.demands)
    @rule(data=st.data())
    def flow_leaves(self, data: st.DataObject) -> None:
        flow = data.draw(st.sampled_from(self.live.problem.demands))
        self.settled(self.live.remove_flow(flow.id))

    @precondition(lambda self: self.live.problem.demands)
    @rule(data=st.data(), rate=multiples)
    def flow_changes(self, data: st.DataObject, rate: float) -> None:
        flow = data.draw(st.sampled_from(self.live.problem.demands))
        self.settled(self.live.set_rate(flow.id, rate * self.unit_bps))

    @precondition(lambda self: any(not demand.is_local for demand in self.live.problem.demands))
    @rule(data=st.data())
    def flow_is_bound(self, data: st.DataObject) -> None:
        problem = self.live.problem
        flow = data.draw(st.sampled_from([demand for demand in problem.demands if not demand.is_local]))
        every = simple_paths(problem, replace(flow, fixed_paths=None))
        if every:
            kept = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
            self.settled(self.live.fix_paths(flow.id, kept))

    @precondition(lambda self: self.live.problem.demands)
    @rule(data=st.data())
    def flow_is_freed(self, data: st.DataObject) -> None:
        flow = data.draw(st.sampled_from(self.live.problem.demands))
        self.settled(self.live.fix_paths(flow.id, None))

    @rule(data=st.data(), one_way=st.booleans())
    def link_fails(self, data: st.DataObject, one_way: bool) -> None:
        self.settled(self.live.fail_link(data.draw(st.sampled_from(self.edges)), one_way=one_way))

    @rule(data=st.data(), one_way=st.booleans())
    def link_returns(self, data: st.DataObject, one_way: bool) -> None:
        self.settled(self.live.restore_link(data.draw(st.sampled_from(self.edges)), one_way=one_way))

    @rule(data=st.data(), rate=multiples, one_way=st.booleans())
    def link_changes(self, data: st.DataObject, rate: float, one_way: bool) -> None:
        link = data.draw(st.sampled_from(self.edges))
        self.settled(self.live.set_link_rate(link, rate * self.unit_bps, one_way=one_way))

    @rule(data=st.data())
    def much_changes(self, data: st.DataObject) -> None:
        problem = self.live.problem
        rates_bps = multiples.map(lambda rate: rate * self.unit_bps)
        kept = data.draw(st.lists(st.sampled_from(problem.demands), unique=True)) if problem.demands else []
        changed = data.draw(st.lists(st.sampled_from(kept), unique=True)) if kept else []
        flows = [
            data.draw(self.changes(problem, flow, rates_bps)) if flow in changed else flow for flow in kept
        ]
        for _ in range(data.draw(st.integers(0, 2))):
            self.count += 1
            nodes = st.sampled_from(sorted(problem.nodes))
            flows.append(Demand(f"new{self.count}", data.draw(nodes), data.draw(nodes), data.draw(rates_bps)))
        self.settled(
            self.live.become(flows, data.draw(st.dictionaries(st.sampled_from(self.edges), rates_bps)))
        )
        assert {flow.id: flow for flow in self.live.problem.demands} == {flow.id: flow for flow in flows}

    @staticmethod
    def changes(problem: Problem, flow: Demand, rates_bps: st.SearchStrategy[float]) -> Any:
        """Draw what a flow may become: another rate, other paths, or both."""
        every = [] if flow.is_local else simple_paths(problem, replace(flow, fixed_paths=None))
        bound = st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True) if every else st.none()
        paths = (
            st.just(flow.fixed_paths)
            | st.none()
            | bound.map(lambda paths_or_none: paths_or_none and tuple(paths_or_none))
        )
        return st.builds(lambda rate, own: replace(flow, rate_bps=rate, fixed_paths=own), rates_bps, paths)

    def settled(self, change: EventResult) -> None:
        assert change.allocation is self.live.allocation
        assert len(change.moved) + change.reallocation.unchanged <= len(change.allocation.paths)
        assert change.wall_s >= 0
        assert change.cpu_s >= 0

    @invariant()
    def is_as_from_scratch(self) -> None:
        if hasattr(self, "live"):
            assert_as_from_scratch(self.live, self.objective, "native")
            assert_as_from_scratch(self.live, self.objective, "highs")


def events_under(objective: str, *, min_reallocation: bool = False) -> Any:
    own = {"objective": objective, "min_reallocation": min_reallocation}
    machine: Any = type(f"EventsUnder_{objective}", (Events,), own)
    machine.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=12)
    return machine.TestCase


TestThroughput = events_under("max_throughput_min_delay")
TestFair = events_under("fair")
TestMaxMin = events_under("max_min")
TestUtilisation = events_under("min_max_utilisation")
TestEvenSplit = events_under("even_split")
TestThroughputMinReallocation = events_under("max_throughput_min_delay", min_reallocation=True)
TestFairMinReallocation = events_under("fair", min_reallocation=True)
TestMaxMinMinReallocation = events_under("max_min", min_reallocation=True)
TestUtilisationMinReallocation = events_under("min_max_utilisation", min_reallocation=True)
TestEvenSplitMinReallocation = events_under("even_split", min_reallocation=True)


EDGES, REVERSE = two_way(("A", "B", 10e6, 1e-3), ("A", "C", 10e6, 2e-3), ("C", "B", 4e6, 2e-3))
NETWORK = Problem(EDGES, (Demand("f", "A", "B", 12e6), Demand("g", "C", "B", 2e6)), REVERSE)


@every_engine
@every_objective
def test_every_engine_and_objective_follows_events(engine: str, objective: str) -> None:
    live = Engine(NETWORK, objective=objective, engine=engine)
    live.add_flow(Demand("h", "B", "A", 3e6))
    live.add_flow(Demand("here", "A", "A", 1e6))
    live.fail_link("A->B")
    live.set_rate("f", 5e6)
    live.set_rate("here", 2e6)
    live.set_link_rate("C->B", 6e6)
    live.remove_flow("g")
    assert_as_from_scratch(live, objective, engine)
    assert live.allocation.engine == engine
    live.restore_link("A->B")
    live.remove_flow("here")
    assert_as_from_scratch(live, objective, engine)
    assert live.problem == replace(
        NETWORK,
        edges=tuple(
            replace(edge, capacity_bps=6e6) if {edge.tail, edge.head} == {"B", "C"} else edge
            for edge in EDGES
        ),
        demands=(Demand("f", "A", "B", 5e6), Demand("h", "B", "A", 3e6)),
    )


@every_engine
def test_a_change_tells_what_moved_and_what_it_took(engine: str) -> None:
    times = iter(range(100))
    live = Engine(NETWORK, engine=engine, clock=lambda: next(times), cpu_clock=lambda: 0.0)
    assert rates(live.allocation, "f") == pytest.approx({"A-B": 10e6, "A-C-B": 2e6})
    change = live.set_link_rate("A->B", 9e6)
    assert change.event == "link A->B has 9e+06 bit/s"
    assert (change.reallocation.rerouted, change.reallocation.resized, change.reallocation.unchanged) == (
        (),
        ("f",),
        1,
    )
    assert change.reallocation.moved_bps == pytest.approx(1e6 + 0.0)
    assert (change.wall_s, change.cpu_s, change.allocation.wall_s) == (1, 0.0, 1)
    change = live.set_rate("f", 8e6)
    assert (change.moved, change.reallocation.unchanged) == ((), 1)
    change = live.fail_link("A->B")
    assert change.moved == ("f",)
    assert change.reallocation.rerouted == ("f",)
    assert change.allocation.admitted_bps == pytest.approx(4e6)


def test_limits_are_kept_through_events() -> None:
    demand = Demand("f", "A", "B", 12e6, max_paths=1)
    live = Engine(replace(NETWORK, demands=(demand,)))
    assert rates(live.allocation, "f") == {"A-B": 10e6}
    live.fail_link("A->B")
    assert rates(live.allocation, "f") == {"A-C-B": 4e6}
    live.restore_link("A->B")
    live.set_rate("f", 11e6)
    assert rates(live.allocation, "f") == {"A-B": 10e6}


@every_engine
def test_refused_events_change_nothing(engine: str) -> None:
    live = Engine(NETWORK, engine=engine)
    before = live.allocation
    refused: list[tuple[Callable[[], EventResult], str]] = [
        (lambda: live.add_flow(Demand("f", "A", "B", 1e6)), "demands[f].id"),
        (lambda: live.add_flow(Demand("n", "A", "Z", 1e6)), "demands[n].destination"),
        (lambda: live.add_flow(Demand("n", "A", "B", math.nan)), "demands[n].rate_bps"),
        (lambda: live.remove_flow("n"), "demands[n]"),
        (lambda: live.set_rate("n", 1e6), "demands[n]"),
        (lambda: live.set_rate("f", math.nan), "demands[f].rate_bps"),
        (lambda: live.add_flow(Demand("n", "Z", "B", 1e6)), "demands[n].source"),
        (lambda: live.add_flow(Demand("n", "A", "B", -1.0)), "demands[n].rate_bps"),
        (lambda: live.add_flow(Demand("n", "A", "B", math.inf)), "demands[n].rate_bps"),
        (lambda: live.fix_paths("n", None), "demands[n]"),
        (lambda: live.fix_paths("f", [("A->Z",)]), "demands[f].fixed_paths[0]"),
        (lambda: live.fix_paths("f", []), "demands[f].fixed_paths"),
        (lambda: live.set_rate("f", -1.0), "demands[f].rate_bps"),
        (lambda: live.set_rate("f", math.inf), "demands[f].rate_bps"),
        (lambda: live.fail_link("A-B"), "edges[A-B]"),
        (lambda: live.restore_link("A-B"), "edges[A-B]"),
        (lambda: live.set_link_rate("A-B", 1e6), "edges[A-B]"),
        (lambda: live.set_link_rate("A->B", math.nan), "edges[A->B].capacity_bps"),
        (lambda: live.set_link_rate("A->B", -1.0), "edges[A->B].capacity_bps"),
        (lambda: live.become([Demand("n", "A", "Z", 1e6)], {}), "demands[n].destination"),
        (lambda: live.become(2 * [Demand("n", "A", "B", 1e6)], {}), "demands[n].id"),
        (lambda: live.become(NETWORK.demands, {"A-B": 1e6}), "edges[A-B]"),
        (lambda: live.become((), {"A->B": math.nan}), "edges[A->B].capacity_bps"),
    ]
    for event, field in refused:
        with pytest.raises(InvalidProblem) as refusal:
            event()
        assert refusal.value.field == field
    assert live.allocation is before
    assert live.problem == NETWORK


@pytest.mark.parametrize("name", ["objective", "engine"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(InvalidProblem, match="'best' is not one of"):
        Engine(NETWORK, **{name: "best"})  # type: ignore[arg-type]


def test_minimum_reallocation_takes_the_native_engine() -> None:
    with pytest.raises(InvalidProblem, match="min_reallocation: needs the engine native"):
        Engine(NETWORK, engine="highs", min_reallocation=True)


@every_engine
@every_objective
@pytest.mark.parametrize("min_reallocation", [False, True])
def test_without_time_events_happen_and_rates_keep_within_all_limits(
    engine: str, objective: str, min_reallocation: bool
) -> None:
    if min_reallocation and engine != "native":
        return
    live = Engine(
        NETWORK, objective=objective, engine=engine, min_reallocation=min_reallocation, time_limit_s=0.0
    )
    assert live.allocation.timed_out
    events: list[Callable[[], EventResult]] = [
        lambda: live.add_flow(Demand("h", "B", "A", 3e6)),
        lambda: live.fail_link("A->B"),
        lambda: live.set_rate("f", 5e6),
        lambda: live.restore_link("A->B"),
        lambda: live.remove_flow("g"),
        lambda: live.set_link_rate("C->B", 1e6),
    ]
    for event in events:
        allocation = event().allocation
        assert allocation.timed_out
        check_allocation(live.problem, allocation)
        best = allocate(live.problem, objective, engine)
        assert allocation.upper_bound_bps >= best.value_bps * (1 - EXACT)
    assert live.problem.demands[0].rate_bps == 5e6


@every_objective
def test_an_event_that_ran_out_of_time_is_solved_for_by_the_next(objective: str) -> None:
    live = Engine(NETWORK, objective=objective)
    _ = live.allocation
    live.time_limit_s = 0.0
    assert live.fail_link("A->B").allocation.timed_out
    live.time_limit_s = None
    live.set_rate("g", 1e6)
    assert_as_from_scratch(live, objective, "native")


@every_objective
@pytest.mark.parametrize("min_reallocation", [False, True])
def test_matrices_one_after_another_are_solved_as_each_alone(
    objective: str, *, min_reallocation: bool
) -> None:
    network = topologies.load("waxman:8:seed=2")
    rng = np.random.default_rng(5)
    nodes = list(network.switches)
    matrices = [rng.uniform(0, 60e6, (len(nodes), len(nodes))) for _ in range(6)]
    matrices[3][1] = 0.0  # other pairs than before
    hours = [DemandColumns.from_matrix(nodes, matrix) for matrix in matrices]
    live = Engine(from_network(network, hours[0]), objective=objective, min_reallocation=min_reallocation)
    link = live.problem.edges[0].id
    for hour in (*hours, hours[0]):
        change = live.become(hour, {link: float(hour.rate_bps[0])})
        assert {d.id: d for d in live.problem.demands} == {d.id: d for d in hour}
        assert_as_from_scratch(live, objective, "native")
        assert change.reallocation.unchanged + len(change.moved) <= len(hour)
    one = hours[0].ids[0]
    live.set_rate(one, 1e6)  # and on, one by one
    assert_as_from_scratch(live, objective, "native")
    by_pair = {(demand.source, demand.destination): demand.rate_bps for demand in hours[1]}
    live.become(by_pair)
    assert {d.id: d for d in live.problem.demands} == {d.id: d for d in hours[1]}
    assert_as_from_scratch(live, objective, "native")
    with pytest.raises(InvalidProblem, match="an array has no names"):
        live.become(matrices[0])
