"""Minimum reallocation: after an event no flow moves that an optimum leaves alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from gomr import Allocation, Demand, Edge, Engine, EventResult, PathRate, Problem
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.gomr.gomr_oracles import (
    PathProgram,
    check_allocation,
    multiples,
    problems,
    rates,
    simple_paths,
    unit_of,
)

Event = Callable[[Engine], EventResult]


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


@pytest.mark.parametrize("asked", [1e10, 1e13])
@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair", "max_min"])
def test_a_flow_that_asks_for_far_more_than_its_link_keeps_it(objective: str, asked: float) -> None:
    edges = (Edge("thin", "A", "B", 1e3, 1e-3), Edge("wide", "A", "C", 4e14, 1e-3))
    problem = Problem(edges, (Demand("f", "A", "B", asked * 1e3),))
    live = Engine(problem, objective=objective, min_reallocation=True)
    events: list[Callable[[], EventResult]] = [
        lambda: live.add_flow(Demand("g", "A", "C", 5e14)),
        lambda: live.remove_flow("g"),
        lambda: live.add_flow(Demand("g", "A", "B", 0.1)),
        lambda: live.remove_flow("g"),
    ]
    for event in events:
        allocation = event().allocation
        assert allocation.rate_bps("f") >= 1e3 - 0.1 - 1e-6
        check_allocation(live.problem, allocation)
