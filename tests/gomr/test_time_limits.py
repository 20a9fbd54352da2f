"""Every call that takes a time limit ends within it on hard networks, with a certified answer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import networkx as nx
import pytest
from gomr import OBJECTIVES, Allocation, Demand, Edge, Engine, Problem, solve_series
from gomr.engines.time_budget import OutOfTime
from gomr.failures import node_failures, survey_failures
from gomr.load import find_load_factor
from gomr.solving import allocate

from benchmarks.gomr.regular import permutation
from tests.gomr.gomr_oracles import check_allocation

LIMIT_S = 0.1
MAX_CPU_S = 4.0
"""Processor time of a call with what it does before and after the engine, forty times the limit."""


def layers(width: int) -> Problem:
    """One flow through five layers of nodes, each joined to all of the next."""
    stages = [["s"], *([f"{layer}.{n}" for n in range(width)] for layer in range(5)), ["t"]]
    pairs = [(a, b) for one, other in itertools.pairwise(stages) for a in one for b in other]
    ends = {"s", "t"}
    edges = [
        Edge(f"{a}>{b}", a, b, float(width) if ends & {a, b} else 1.0, 1e-3)
        for one in pairs
        for a, b in (one, one[::-1])
    ]
    return Problem(tuple(edges), (Demand("f", "s", "t", 1e4),))


NETWORKS: dict[str, Callable[[], Problem]] = {
    "complete bipartite graph of 30 and 30": lambda: permutation(nx.complete_bipartite_graph(30, 30), 100.0),
    "hypercube of 7 dimensions": lambda: permutation(nx.hypercube_graph(7), 30.0),
    "layers of 20": lambda: layers(20),
}


def allocations(problem: Problem) -> Iterator[Callable[[], Allocation]]:
    """Yield every call that leads to an allocation."""
    for objective in OBJECTIVES:
        yield partial(allocate, problem, objective, time_limit_s=LIMIT_S)
    for min_reallocation in (False, True):
        live = Engine(problem, min_reallocation=min_reallocation, time_limit_s=LIMIT_S)
        yield partial(getattr, live, "allocation")
        yield partial(lambda engine: engine.fail_link(problem.edges[0].id).allocation, live)
    matrix = {(demand.source, demand.destination): demand.rate_bps for demand in problem.demands}
    larger = {pair: 1.5 * rate_bps for pair, rate_bps in matrix.items()}
    series = solve_series(replace(problem, demands=()), [matrix, larger], time_limit_s=LIMIT_S)
    for _ in range(2):
        yield partial(next, series)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_call_ends_within_its_limit_with_a_proof(network: str) -> None:
    problem = NETWORKS[network]()
    for call in allocations(problem):
        started = time.process_time()
        allocation = call()
        assert time.process_time() - started < MAX_CPU_S
        assert allocation.value_bps <= allocation.upper_bound_bps * (1 + 1e-9)
        assert allocation.timed_out or allocation.gap <= 1e-9
        assert 0.0 <= allocation.gap <= 1.0
    check_allocation(problem, allocate(problem, time_limit_s=LIMIT_S))
    started = time.process_time()
    factor = find_load_factor(problem, 1.0, time_limit_s=LIMIT_S)
    assert 0.0 < factor.factor <= factor.most * (1 + 1e-9)
    try:
        survey = survey_failures(problem, node_failures(problem)[:4], time_limit_s=LIMIT_S)
        assert len(survey.outcomes) == 4
    except OutOfTime:
        pass
    assert time.process_time() - started < 2 * MAX_CPU_S


def test_a_search_that_takes_long_says_that_the_time_was_up() -> None:
    problem = permutation(nx.complete_bipartite_graph(30, 30), 100.0)
    factor = find_load_factor(problem, 1.0, time_limit_s=LIMIT_S)
    assert factor.timed_out and factor.most < float("inf")
    assert 0.0 < factor.factor <= factor.most
