"""A live engine after any events against solves from scratch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gomr import (
    ENGINES,
    OBJECTIVES,
    Allocation,
    Change,
    Demand,
    DemandColumns,
    Edge,
    Engine,
    PathRate,
    Problem,
    from_network,
)
from gomr.errors import InvalidProblem
from gomr.solving import allocate
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import topologies
from tests.gomr.gomr_oracles import (
    PathProgram,
    check_allocation,
    problems,
    rates,
    simple_paths,
    two_way,
    unit_of,
)

EXACT = 1e-9
every_engine = pytest.mark.parametrize("engine", ENGINES)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
multiples = st.one_of(st.integers(0, 12).map(float), st.floats(0.01, 12.0))


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

    def settled(self, change: Change) -> None:
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
    refused: list[tuple[Callable[[], Change], str]] = [
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
    events: list[Callable[[], Change]] = [
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


Event = Callable[[Engine], Change]


def any_event(data: st.DataObject, problem: Problem, unit_bps: float) -> tuple[Event, str]:
    """Return something that can happen, and the flow that does it, if any."""
    rate_bps = data.draw(multiples) * unit_bps
    name = f"new{data.draw(st.integers(0, 10**9))}"
    assume(name not in {demand.id for demand in problem.demands})
    nodes = st.sampled_from(sorted(problem.nodes))
    edge = data.draw(st.sampled_from(problem.edges)).id
    flow = data.draw(st.sampled_from(problem.demands)).id
    added = Demand(name, data.draw(nodes), data.draw(nodes), rate_bps)
    events: dict[str, Event] = {
        "arrives": lambda live: live.add_flow(added),
        "leaves": lambda live: live.remove_flow(flow),
        "changes": lambda live: live.set_rate(flow, rate_bps),
        "fails": lambda live: live.fail_link(edge),
        "link": lambda live: live.set_link_rate(edge, rate_bps),
    }
    kind = data.draw(st.sampled_from(sorted(events)))
    return events[kind], flow if kind == "changes" else ""


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "max_min", "min_max_utilisation"])
@given(data=st.data(), problem=problems(most_nodes=4))
@settings(deadline=None)
def test_no_flow_moves_that_an_optimum_leaves_alone(
    objective: str, data: st.DataObject, problem: Problem
) -> None:
    assume(problem.demands)
    live = Engine(problem, objective=objective, min_reallocation=True)
    before = live.allocation
    for _ in range(3):
        assume(live.problem.demands)
        before = live.allocation
        event, own = any_event(data, live.problem, unit_of(problem))
        change = event(live)
        after, now = change.allocation, live.problem
        most_used = after.max_utilisation if objective == "min_max_utilisation" else None
        if objective == "max_min":  # the rates are unique: an optimum has these
            now = replace(now, demands=tuple(replace(d, rate_bps=after.rate_bps(d.id)) for d in now.demands))
        ran = [name for name in after.paths if name in before.paths and name != own]
        stay = {name: before.paths[name] for name in ran if name not in change.moved}
        for name in change.moved:
            assert not an_optimum_keeps(now, after, {**stay, name: before.paths[name]}, most_used)


def an_optimum_keeps(
    problem: Problem,
    optimum: Allocation,
    kept: Mapping[str, Sequence[PathRate]],
    most_used: float | None,
) -> bool:
    """Whether an allocation is as good as the optimum and gives these flows these rates.

    Where it counts, no edge may be used more than the fullest of the optimum.
    """
    program = PathProgram(
        problem, {d.id: simple_paths(problem, d) for d in problem.demands}, unit_of(problem)
    )
    for index, (demand, path) in enumerate(program.columns):
        if demand.id in kept:
            rate_bps = sum(allocated.rate_bps for allocated in kept[demand.id] if allocated.edges == path)
            program.limit({index: 1.0}, rate_bps, rate_bps)
    everything = range(len(program.columns))
    if most_used is not None:
        for edge in problem.edges:
            loads = {index: program.load(index, edge.id) for index in everything}
            program.limit(loads, most_used * edge.capacity_bps * (1 + 1e-12))
    program.limit(dict.fromkeys(everything, 1.0), math.inf, optimum.admitted_bps * (1 - 1e-12))
    delays = [sum(program.delays[edge] for edge in path) for _, path in program.columns]
    if not any(delays):
        delays = [float(len(path)) for _, path in program.columns]
    longest = max(delays)
    least = program.minimise_if_feasible({i: delay / longest for i, delay in enumerate(delays)})
    if least is None:
        return False
    cost = sum(
        path.rate_bps * (path.delay_s if any(program.delays.values()) else len(path.edges))
        for paths in optimum.paths.values()
        for path in paths
    )
    return least * longest <= cost * (1 + 1e-12)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair", "max_min", "even_split"])
@given(data=st.data(), quiet=problems(most_nodes=4), busy=problems(most_nodes=4))
@settings(deadline=None)
def test_no_flow_moves_for_what_happens_where_it_cannot_go(
    objective: str, data: st.DataObject, quiet: Problem, busy: Problem
) -> None:
    assume(quiet.demands and busy.demands)
    live = Engine(side_by_side(quiet, busy), objective=objective, min_reallocation=True)
    _ = live.allocation
    names = {f"quiet {demand.id}" for demand in quiet.demands}
    elsewhere = Engine(side_by_side(None, busy), objective=objective)
    for _ in range(3):
        assume(elsewhere.problem.demands)
        event, _ = any_event(data, elsewhere.problem, unit_of(busy))
        event(elsewhere)
        assert not names.intersection(event(live).moved)


def test_an_even_split_with_several_optima_stays_while_another_part_splits_too() -> None:
    # d1 beside d2 can split in many ways that are equally even.
    ways = (("e2", 2.0, 0.0), ("e3", 1.6, 0.4), ("e4", 0.8, 0.4))
    edges: list[Edge] = []
    reverse: dict[str, str] = {}
    for name, on_bps, back_bps in ways:
        edges += [Edge(name, "A", "B", on_bps, 0.0), Edge(f"{name}r", "B", "A", back_bps, 0.0)]
        reverse |= {name: f"{name}r", f"{name}r": name}
    for name, on_bps in (("b1", 1.0), ("b2", 3.0), ("b3", 1.0)):
        edges += [Edge(name, "C", "D", on_bps, 0.0), Edge(f"{name}r", "D", "C", 0.0, 0.0)]
        reverse |= {name: f"{name}r", f"{name}r": name}
    quiet = (
        Demand("d0", "A", "B", 0.0),
        Demand("d1", "A", "B", 0.8, ack_ratio=0.0458),
        Demand("d2", "A", "B", 3.2),
    )
    busy = (Demand("d3", "C", "D", 0.0), Demand("d4", "C", "D", 2.0))
    live = Engine(
        Problem(tuple(edges), (*quiet, *busy), reverse), objective="even_split", min_reallocation=True
    )
    before = live.allocation
    change = live.set_rate("d3", 4.0)
    assert len(before.paths["d1"]) + len(before.paths["d2"]) == 4
    assert change.moved == ()


def side_by_side(quiet: Problem | None, busy: Problem) -> Problem:
    """Two problems of like rates as one whose parts nothing joins; names begin with `quiet` and `busy`."""
    parts = [("busy", busy, 1.0)]
    if quiet is not None:
        parts.insert(0, ("quiet", quiet, unit_of(busy) / unit_of(quiet)))
    edges: list[Edge] = []
    demands: list[Demand] = []
    reverse: dict[str, str] = {}
    endpoints: set[str] = set()
    for part, problem, factor in parts:

        def own(name: str, part: str = part) -> str:
            return f"{part} {name}"

        edges += [
            Edge(own(edge.id), own(edge.tail), own(edge.head), edge.capacity_bps * factor, edge.delay_s)
            for edge in problem.edges
        ]
        demands += [
            replace(
                demand,
                id=own(demand.id),
                source=own(demand.source),
                destination=own(demand.destination),
                rate_bps=demand.rate_bps * factor,
            )
            for demand in problem.demands
        ]
        reverse |= {own(one): own(other) for one, other in (problem.reverse or {}).items()}
        endpoints |= {own(node) for node in problem.endpoints}
    return Problem(tuple(edges), tuple(demands), reverse, frozenset(endpoints))


def test_minimum_reallocation_takes_the_native_engine() -> None:
    with pytest.raises(InvalidProblem, match="min_reallocation: needs the engine native"):
        Engine(NETWORK, engine="highs", min_reallocation=True)


def test_equal_ways_do_not_move_a_flow() -> None:
    # Twelve ways of the same delay: whatever else happens, f stays where it is.
    edges = tuple(Edge(f"e{i}", "A", "B", 10e6, 1e-3) for i in range(12))
    live = Engine(Problem(edges, (Demand("f", "A", "B", 5e6),)), min_reallocation=True)
    (first,) = live.allocation.paths["f"]
    for i in range(20):
        change = live.add_flow(Demand(f"g{i}", "A", "B", 5e6))
        assert change.moved == ()
    for i in range(0, 20, 2):
        assert live.remove_flow(f"g{i}").moved == ()
    for edge in edges:
        if edge.id not in first.edges:
            live.fail_link(edge.id)
            assert live.allocation.paths["f"] == (first,)


def test_a_flow_that_is_bound_to_its_paths_keeps_its_rates() -> None:
    # Two ways of the same delay: any split of f is an optimum.
    edges = tuple(Edge(name, "A", "B", 10e6, 1e-3) for name in ("e1", "e2"))
    live = Engine(Problem(edges, (Demand("f", "A", "B", 12e6),)), min_reallocation=True)
    before = rates(live.allocation, "f")
    bound = Demand("f", "A", "B", 12e6, fixed_paths=(("e1",), ("e2",)))
    for flow in (bound, replace(bound, fixed_paths=(("e2",), ("e1",))), replace(bound, fixed_paths=None)):
        change = live.become([flow, Demand("g", "A", "B", 1e6)], {})
        assert change.moved == ()
        assert rates(change.allocation, "f") == before


def test_a_flow_asking_for_another_rate_leaves_room_for_those_that_come_after() -> None:
    # f has been left where it was although the engine found it elsewhere; then it asks for more.
    edges = tuple(Edge(name, "A", "B", 10e6, 1e-3) for name in ("e1", "e2"))
    live = Engine(Problem(edges, (Demand("f", "A", "B", 6e6),)), min_reallocation=True)
    for number in range(12):
        live.become(
            [
                Demand("f", "A", "B", 6e6 + 1e5 * number),
                Demand(f"g{number}", "A", "B", 9e6),
                Demand(f"h{number}", "A", "B", 2e6),
            ],
            {"e1": 10e6 + number % 3, "e2": 10e6 + number % 2},
        )
        check_allocation(live.problem, live.allocation)


def test_minimum_reallocation_loses_nothing_where_a_delay_outweighs_a_rate_just_so() -> None:
    edges = (
        Edge("slow", "A", "B", 1.0, 0.0625),
        Edge("on", "A", "B", 1.0, 0.002),
        Edge("new", "A", "B", 0.0, 0.0),
    )
    live = Engine(
        Problem(edges, (Demand("d0", "A", "B", 0.0), Demand("d3", "A", "B", 1.0))),
        objective="fair",
        min_reallocation=True,
    )
    live.set_link_rate("new", 4.0, one_way=True)
    live.set_rate("d0", 7.0)
    live.set_link_rate("on", 3.0, one_way=True)
    assert live.allocation.admitted_bps == pytest.approx(8.0)


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


@pytest.mark.parametrize("asked", [1e10, 1e13])
@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair", "max_min"])
def test_a_flow_that_asks_for_far_more_than_its_link_keeps_it(objective: str, asked: float) -> None:
    edges = (Edge("thin", "A", "B", 1e3, 1e-3), Edge("wide", "A", "C", 4e14, 1e-3))
    problem = Problem(edges, (Demand("f", "A", "B", asked * 1e3),))
    live = Engine(problem, objective=objective, min_reallocation=True)
    events: list[Callable[[], Change]] = [
        lambda: live.add_flow(Demand("g", "A", "C", 5e14)),
        lambda: live.remove_flow("g"),
        lambda: live.add_flow(Demand("g", "A", "B", 0.1)),
        lambda: live.remove_flow("g"),
    ]
    for event in events:
        allocation = event().allocation
        assert allocation.rate_bps("f") >= 1e3 - 0.1 - 1e-6
        check_allocation(live.problem, allocation)
