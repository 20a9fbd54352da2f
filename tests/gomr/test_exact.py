"""Every engine against oracles: enumeration of all paths, what must hold of any allocation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from gomr import ENGINES, OBJECTIVES, Demand, Edge, Problem
from gomr.errors import SolverError
from gomr.solving import allocate
from hypothesis import assume, given, settings

from tests.gomr.gomr_oracles import (
    check_allocation,
    least_largest_rates,
    limited_optimum,
    problems,
    problems_with_fixed_paths,
    problems_with_path_limits,
    rates,
    simple_paths,
    two_way,
    unit_of,
    unlimited_optimum,
)

EXACT = 1e-9
unhurried = settings(deadline=None)
every_engine = pytest.mark.parametrize("engine", ENGINES)
THROUGHPUT_FIRST = ("max_throughput_min_delay", "min_max_utilisation", "even_split")


@every_engine
@given(problems())
@unhurried
def test_throughput_and_delay_are_those_of_all_paths_enumerated(engine: str, problem: Problem) -> None:
    allocation = allocate(problem, engine=engine)
    check_allocation(problem, allocation)
    admitted_bps, cost_bps_s = unlimited_optimum(problem)
    unit_bps = unit_of(problem)
    assert allocation.admitted_bps == pytest.approx(admitted_bps, rel=EXACT, abs=EXACT * unit_bps)
    assert allocation.cost_bps_s == pytest.approx(cost_bps_s, rel=1e-7, abs=1e-8 * unit_bps)
    assert allocation.upper_bound_bps >= allocation.admitted_bps * (1 - EXACT)
    assert 0 <= allocation.gap <= 1e-8


@every_engine
def test_acknowledgements_without_load_need_no_capacity(engine: str) -> None:
    edges = (Edge("on", "A", "B", 1.0, 0), Edge("back", "B", "A", 0.0, 0))
    demand = Demand("f", "A", "B", 1.0, ack_edges=("back",))
    assert allocate(Problem(edges, (demand,)), engine=engine).admitted_bps == 1.0


@every_engine
@given(problems_with_fixed_paths())
@unhurried
def test_fixed_paths_are_kept_and_their_rates_optimal(engine: str, problem: Problem) -> None:
    for objective in THROUGHPUT_FIRST:
        allocation = allocate(problem, objective, engine)
        check_allocation(problem, allocation)
        admitted_bps, _ = unlimited_optimum(problem)
        assert allocation.admitted_bps == pytest.approx(admitted_bps, rel=EXACT, abs=EXACT * unit_of(problem))
        assert allocation.gap <= 1e-8


@every_engine
@given(problems_with_fixed_paths())
@unhurried
def test_even_split_keeps_rates_and_paths_and_is_most_even(engine: str, problem: Problem) -> None:
    steep = allocate(problem, engine=engine)
    even = allocate(problem, "even_split", engine)
    check_allocation(problem, even)
    tolerance_bps = 1e-8 * unit_of(problem)
    for demand in problem.demands:
        assert even.rate_bps(demand.id) == pytest.approx(steep.rate_bps(demand.id), abs=tolerance_bps)
        assert {path.edges for path in even.paths[demand.id]} <= {
            path.edges for path in steep.paths[demand.id]
        }
    largest_bps = sum(max((p.rate_bps for p in paths), default=0.0) for paths in even.paths.values())
    # The oracle's own slack of 1e-9, magnified by ACK ratios, limits the comparison.
    assert largest_bps == pytest.approx(least_largest_rates(problem, steep), rel=1e-6, abs=tolerance_bps)


@every_engine
@given(problems_with_path_limits())
@settings(deadline=None)
def test_path_limits_are_kept_at_the_best_choice_of_paths(engine: str, problem: Problem) -> None:
    # So few paths that all of them are candidates: then the choice is optimal.
    assume(all(len(simple_paths(problem, demand)) <= 6 for demand in problem.demands))
    allocation = allocate(problem, engine=engine)
    check_allocation(problem, allocation)
    admitted_bps, cost_bps_s = limited_optimum(problem)
    unit_bps = unit_of(problem)
    assert allocation.admitted_bps == pytest.approx(admitted_bps, rel=1e-6, abs=1e-6 * unit_bps)
    assert allocation.cost_bps_s == pytest.approx(cost_bps_s, rel=1e-6, abs=1e-6 * unit_bps)


@every_engine
@given(problems_with_path_limits())
@settings(deadline=None, max_examples=20)
def test_equal_problems_give_equal_allocations(engine: str, problem: Problem) -> None:
    for objective in OBJECTIVES:
        first, second = (allocate(problem, objective, engine, clock=lambda: 0.0) for _ in range(2))
        assert first == second


def line(*capacities: float) -> tuple[Edge, ...]:
    """One-way edges n0->n1->... of these capacities in bit/s, 1 ms each."""
    return tuple(Edge(f"e{i}", f"n{i}", f"n{i + 1}", rate, 1e-3) for i, rate in enumerate(capacities))


@every_engine
def test_no_demands(engine: str) -> None:
    allocation = allocate(Problem(line(1e6), ()), engine=engine)
    assert (allocation.paths, allocation.admitted_bps, allocation.gap) == ({}, 0.0, 0.0)


@every_engine
def test_unreachable_demands_get_nothing(engine: str) -> None:
    problem = Problem(line(1e6, 1e6), (Demand("back", "n2", "n0", 1e6), Demand("on", "n0", "n2", 1e6)))
    for objective in OBJECTIVES:
        allocation = allocate(problem, objective, engine)
        assert allocation.paths["back"] == ()
        assert rates(allocation, "on") == {"n0-n1-n2": pytest.approx(1e6, rel=1e-12)}
        assert allocation.upper_bound_bps == pytest.approx(allocation.value_bps)


@every_engine
def test_an_edge_without_capacity_carries_nothing(engine: str) -> None:
    allocation = allocate(Problem(line(1e6, 0.0), (Demand("f", "n0", "n2", 1e6),)), engine=engine)
    assert allocation.paths["f"] == ()
    assert allocation.upper_bound_bps == 0.0


@every_engine
def test_acknowledgements_need_capacity_on_the_way_back(engine: str) -> None:
    edges, reverse = two_way(("A", "B", 10e6, 1e-3))
    edges = (edges[0], Edge("B->A", "B", "A", 0.1e6, 1e-3))
    demand = Demand("f", "A", "B", 10e6, ack_ratio=0.05)
    assert allocate(Problem(edges, (demand,), reverse), engine=engine).admitted_bps == pytest.approx(2e6)


@every_engine
def test_max_min_reaches_a_request_that_its_weight_does_not_divide(engine: str) -> None:
    rate_bps = 8627985411564.4795
    demand = Demand("f", "n0", "n1", rate_bps, weight=3.0)
    assert 3.0 * (rate_bps / 3.0) < rate_bps
    assert allocate(Problem(line(9e12), (demand,)), "max_min", engine).rate_bps("f") == rate_bps


@every_engine
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_acknowledgements_without_a_way_back_stop_all(engine: str, objective: str) -> None:
    edges = (Edge("on", "A", "B", 1.0, 0.0), Edge("back", "B", "A", 0.0, 0.0))
    problem = Problem(edges, (Demand("f", "A", "B", 1.0, ack_ratio=0.0458),), {"on": "back", "back": "on"})
    assert allocate(problem, objective, engine).paths["f"] == ()


@every_engine
def test_acknowledgements_share_the_edge_with_data(engine: str) -> None:
    edges, reverse = two_way(("A", "B", 10.5e6, 1e-3))
    demands = (Demand("f", "A", "B", 20e6, ack_ratio=0.05), Demand("g", "B", "A", 20e6, ack_ratio=0.05))
    allocation = allocate(Problem(edges, demands, reverse), engine=engine)
    assert rates(allocation, "f") == {"A-B": pytest.approx(10e6)}
    assert rates(allocation, "g") == {"B-A": pytest.approx(10e6)}


@every_engine
def test_parallel_edges_are_different_paths(engine: str) -> None:
    edges = (Edge("fast", "A", "B", 1e6, 1e-3), Edge("slow", "A", "B", 2e6, 2e-3))
    (first, second) = allocate(Problem(edges, (Demand("f", "A", "B", 2.5e6),)), engine=engine).paths["f"]
    assert (first.edges, first.rate_bps) == (("fast",), 1e6)
    assert (second.edges, second.rate_bps) == (("slow",), 1.5e6)


@every_engine
def test_endpoints_forward_nothing(engine: str) -> None:
    edges, reverse = two_way(("A", "H", 1e6, 1e-3), ("H", "B", 1e6, 1e-3), ("A", "B", 1e6, 5e-3))
    demand = Demand("f", "A", "B", 2e6)
    assert allocate(Problem(edges, (demand,), reverse), engine=engine).admitted_bps == 2e6
    allocation = allocate(Problem(edges, (demand,), reverse, frozenset({"H"})), engine=engine)
    assert rates(allocation, "f") == {"A-B": 1e6}
    assert allocation.upper_bound_bps == pytest.approx(1e6)


@every_engine
def test_without_any_delay_the_fewest_edges_win(engine: str) -> None:
    edges = (Edge("a", "A", "B", 1e6, 0), Edge("b", "B", "C", 1e6, 0), Edge("c", "A", "C", 1e6, 0))
    assert rates(allocate(Problem(edges, (Demand("f", "A", "C", 1e6),)), engine=engine), "f") == {"A-C": 1e6}


@every_engine
@pytest.mark.parametrize("rate_bps", [1.0, 64e3, 1e12])
def test_one_problem_holds_rates_of_any_magnitude(engine: str, rate_bps: float) -> None:
    edges = (Edge("a", "A", "B", 1e12, 1e-3), Edge("b", "A", "B", 1e12, 2e-3))
    demands = (Demand("small", "A", "B", rate_bps), Demand("large", "A", "B", 1e12))
    # An eighth of 1 bit/s beside 1 Tbit/s is below HiGHS's smallest tolerance.
    served = [name for name in OBJECTIVES if engine == "native" or rate_bps > 1 or name != "fair"]
    for objective in served:
        allocation = allocate(Problem(edges, demands), objective, engine)
        assert allocation.rate_bps("small") == pytest.approx(rate_bps, rel=1e-3)
        assert allocation.admitted_bps == pytest.approx(1e12 + rate_bps, rel=EXACT)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("engine", ENGINES)
def test_rates_beyond_an_engines_arithmetic_are_kept_apart_or_refused(engine: str, objective: str) -> None:
    line = (Edge("wide", "A", "B", 1e15, 1e-3), Edge("narrow", "B", "C", 1.0, 1e-3))
    along = Problem(line, (Demand("f", "A", "C", 3.0), Demand("g", "A", "B", 1e15)))
    side = Problem((line[0], replace(line[1], tail="A", head="B")), (Demand("h", "A", "B", 1e15),))
    for problem in (along, side):
        if engine != "native":
            with pytest.raises(SolverError, match="too far apart for its arithmetic; use the engine native"):
                allocate(problem, objective, engine)
            continue
        allocation = allocate(problem, objective)
        check_allocation(problem, allocation)
        for edge in problem.edges:
            rates_bps = [path.rate_bps for own in allocation.paths.values() for path in own
                         if edge.id in path.edges]  # fmt: skip
            assert math.fsum(rates_bps) <= edge.capacity_bps * (1 + 1e-12)
        assert allocation.admitted_bps == pytest.approx(1e15, rel=EXACT)


@pytest.mark.parametrize("most_bps", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_whose_arithmetic_fails_says_that_it_may_be_why(engine: str, most_bps: float) -> None:
    """HiGHS calls some of these infeasible, which they are not."""
    wide = (Edge("a", "A", "M", most_bps, 1e-3), Edge("b", "M", "B", most_bps, 1e-3))
    further = (Edge("c", "A", "N", most_bps / 3, 3e-3), Edge("d", "N", "B", most_bps, 1e-3))
    narrow = (Edge("e", "A", "B", 1.0, 1e-3), Edge("f", "C", "M", 1.0, 2e-3), Edge("g", "M", "D", 1.0, 2e-3))
    problem = Problem(
        (*wide, *further, *narrow), (Demand("f", "A", "B", most_bps), Demand("g", "C", "D", 1.0))
    )
    try:
        allocation = allocate(problem, "min_max_utilisation", engine)
    except SolverError as error:
        assert engine != "native"
        assert "far apart for its arithmetic; use the engine native" in str(error)
    else:
        check_allocation(problem, allocation)
        assert allocation.admitted_bps == pytest.approx(most_bps + 1.0, rel=EXACT)


@every_engine
def test_three_paths_are_filled_evenly_below_the_largest(engine: str) -> None:
    # The short path must carry 6 of 10 Mbit/s; the other two share an edge of 4.
    edges = (
        Edge("short", "A", "D", 6e6, 1e-3),
        Edge("shared", "A", "B", 4e6, 1e-3),
        Edge("up", "B", "D", 3e6, 1e-3),
        Edge("down", "B", "D", 3e6, 2e-3),
    )
    problem = Problem(edges, (Demand("f", "A", "D", 10e6),))
    assert [path.rate_bps for path in allocate(problem, engine=engine).paths["f"]] == [6e6, 3e6, 1e6]
    even = [path.rate_bps for path in allocate(problem, "even_split", engine).paths["f"]]
    assert even == pytest.approx([6e6, 2e6, 2e6])


@every_engine
def test_a_path_limit_takes_the_widest_paths(engine: str) -> None:
    edges = tuple(Edge(f"e{i}", "A", "B", i * 1e6, 1e-3 * i) for i in range(1, 5))
    demands = (Demand("f", "A", "B", 20e6, max_paths=2),)
    allocation = allocate(Problem(edges, demands), engine=engine)
    assert [path.edges for path in allocation.paths["f"]] == [("e3",), ("e4",)]
    assert allocation.admitted_bps == pytest.approx(7e6)
    assert allocation.gap <= 1e-8  # the bound knows the limit


@every_engine
def test_a_path_limit_holds_for_fixed_paths_too(engine: str) -> None:
    edges = (Edge("a", "A", "B", 1e6, 1e-3), Edge("b", "A", "B", 2e6, 2e-3))
    demand = Demand("f", "A", "B", 3e6, max_paths=1, fixed_paths=(("a",), ("b",)))
    assert [path.edges for path in allocate(Problem(edges, (demand,)), engine=engine).paths["f"]] == [("b",)]


@every_engine
def test_among_path_choices_of_the_same_throughput_the_delay_decides(engine: str) -> None:
    # All admit 5 bit/s, but only one of them gives the slow edge no more than 1.
    edges = tuple(Edge(f"e{i}", "A", "B", 2.0, delay_s) for i, delay_s in enumerate((0.0, 0.0, 0.0625)))
    demands = (Demand("f", "A", "B", 1.0, max_paths=1), Demand("g", "A", "B", 6.0, max_paths=2))
    allocation = allocate(Problem(edges, demands), engine=engine)
    assert (allocation.admitted_bps, allocation.cost_bps_s) == pytest.approx((5.0, 0.0625))
