"""The load of demands: what is asked for over what the network can carry."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import networkx as nx
import pytest
from gomr import Demand, Edge, Problem, from_network
from gomr.demands import Traffic, scaled
from gomr.errors import InvalidProblem
from gomr.load import at_load, find_load_factor, load_factor
from gomr.solving import allocate
from hypothesis import HealthCheck, given, settings

import topologies
from benchmarks.gomr.regular import CAPACITY_BPS, problem_of
from tests.gomr.gomr_oracles import problems

LINE = Problem(
    (Edge("AB", "A", "B", 10e6, 1e-3), Edge("BC", "B", "C", 4e6, 1e-3)),
    (Demand("f", "A", "B", 3.0), Demand("g", "A", "C", 1.0)),
)


@pytest.mark.parametrize(
    ("load", "factor"),
    [
        (1.0, 2.5e6),  # f and g fill A-B
        (0.5, 1.25e6),
        (1.1, 2.75e6),  # 11 of which 10 pass
        (3.0, 7.5e6),
    ],
)
def test_by_hand(load: float, factor: float) -> None:
    assert load_factor(LINE, load) == pytest.approx(factor, rel=1e-9)


def test_a_demand_that_stays_counts_for_nothing() -> None:
    local = Demand("l", "A", "A", 100.0)
    assert load_factor(replace(LINE, demands=(*LINE.demands, local)), 1.1) == pytest.approx(2.75e6)


@pytest.mark.parametrize("spec", ["butterfly", "ring:5", "waxman:15:seed=2", "fat-tree:4"])
@pytest.mark.parametrize("model", ["gravity", "uniform", "bimodal"])
def test_an_overload_is_what_is_asked_for_over_what_is_admitted(spec: str, model: str) -> None:
    network = topologies.load(spec)
    problem = from_network(network, Traffic(model, network.hosts, 4).flows(40))
    for load in (1.1, 3.0):
        allocation = allocate(at_load(problem, load))
        assert allocation.requested_bps / allocation.admitted_bps == pytest.approx(load, rel=1e-6)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_all_just_fits_at_a_load_of_1(problem: Problem) -> None:
    try:
        factor = load_factor(problem, 1.0)
    except InvalidProblem:
        allocation = allocate(replace(problem, demands=scaled(problem.demands, 1e-6)))
        nothing = all(demand.is_local or demand.rate_bps == 0 for demand in problem.demands)
        assert nothing or allocation.admitted_bps < allocation.requested_bps * (1 - 1e-9)
        return
    fits = allocate(replace(problem, demands=scaled(problem.demands, factor)))
    assert fits.admitted_bps == pytest.approx(fits.requested_bps, rel=1e-8)
    more = allocate(replace(problem, demands=scaled(problem.demands, factor * 1.01)))
    assert more.admitted_bps < more.requested_bps * (1 - 1e-12)


@given(problems())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_the_factor_follows_the_capacities(problem: Problem) -> None:
    try:
        factor = find_load_factor(problem, 1.0).factor
    except InvalidProblem:
        return
    for scale in (1e-3, 10.0, 1e4):
        edges = tuple(replace(edge, capacity_bps=edge.capacity_bps * scale) for edge in problem.edges)
        found = find_load_factor(replace(problem, edges=edges), 1.0)
        assert not found.timed_out
        assert found.factor == pytest.approx(factor * scale, rel=1e-6)


def test_what_makes_no_sense_is_refused() -> None:
    for load in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidProblem, match="load: must be a number above 0"):
            load_factor(LINE, load)
    with pytest.raises(InvalidProblem, match="ask for nothing"):
        load_factor(replace(LINE, demands=()), 1.1)
    apart = replace(LINE, demands=(*LINE.demands, Demand("back", "C", "A", 2.0)))
    with pytest.raises(InvalidProblem, match=r"load: of 1.1 cannot be reached"):
        load_factor(apart, 1.1)
    assert load_factor(apart, 3.0) > 0  # 2 of 6 have no path: at a load of 3 the others are overload enough
    dead = replace(LINE, edges=tuple(replace(edge, capacity_bps=0.0) for edge in LINE.edges))
    with pytest.raises(InvalidProblem, match="no path at all"):
        load_factor(dead, 1.1)


def test_scaling_to_a_load_ends_when_its_time_is_up() -> None:
    network = topologies.load("waxman:30:seed=1")
    problem = from_network(network, Traffic("gravity", network.hosts, 1).flows(300))
    scaling = find_load_factor(problem, 1.1, time_limit_s=0.0)
    assert scaling.timed_out
    whole = find_load_factor(problem, 1.1)
    assert not whole.timed_out
    assert scaling.factor <= whole.factor <= scaling.most
    # What is asked for then is no more than was wanted, and can be routed.
    small = at_load(problem, 1.1, time_limit_s=0.0)
    assert allocate(small).admitted_bps == pytest.approx(allocate(small).requested_bps)


def test_equal_demands_between_all_nodes_of_a_hypercube_fill_all_its_links() -> None:
    empty = problem_of(nx.hypercube_graph(6), 0)
    nodes = sorted({edge.tail for edge in empty.edges})
    pairs = enumerate(itertools.permutations(nodes, 2))
    problem = replace(empty, demands=tuple(Demand(f"f{i}", a, b, 1.0) for i, (a, b) in pairs))
    hops = 64 * sum(bits.bit_count() for bits in range(64))
    found = find_load_factor(problem, 1.0, time_limit_s=600)
    assert not found.timed_out
    assert found.factor == pytest.approx(CAPACITY_BPS * len(problem.edges) / hops, rel=1e-9)
    more = replace(problem, demands=(replace(problem.demands[0], rate_bps=2.0), *problem.demands[1:]))
    of_more = find_load_factor(more, 1.0, time_limit_s=600)
    assert not of_more.timed_out
    assert 0.5 * found.factor <= of_more.factor <= found.factor * (1 + 1e-9)
    in_no_time = find_load_factor(more, 1.0, time_limit_s=0)
    assert in_no_time.timed_out
    assert in_no_time.factor <= of_more.factor <= in_no_time.most * (1 + 1e-9)
