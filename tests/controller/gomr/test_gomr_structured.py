"""Grids, tori, rings, leaf-spines and fat-trees of equal links: every solve ends, and is exact."""

from __future__ import annotations

import pytest

from controller.gomr import OBJECTIVES, solve
from tests.controller.gomr.gomr_oracles import check_allocation
from tests.controller.gomr.gomr_structured import KINDS, most_admitted_bps, problem_of

FLOWS_PER_LINK = 8
"""More than fits."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2])
def test_every_objective_ends_and_is_exact(kind: str, size: int) -> None:
    make, sizes = KINDS[kind]
    graph = make(sizes[size])
    problem = problem_of(graph, FLOWS_PER_LINK * graph.number_of_edges(), seed=size)
    most_bps = most_admitted_bps(problem)
    for objective in OBJECTIVES:
        if objective == "max_min" and size == 2:
            continue  # seconds each: benchmarks.gomr has them
        found = solve(problem, objective)
        check_allocation(problem, found)
        assert found.gap <= 1e-9, objective
        assert found.admitted_bps <= most_bps * (1 + 1e-9)
        if objective not in ("fair", "max_min"):
            assert found.admitted_bps == pytest.approx(most_bps, rel=1e-9), objective


@pytest.mark.parametrize("flows", [700, 1500])
def test_a_grid_of_81_nodes_ends_at_the_optimum(flows: int) -> None:
    problem = problem_of(KINDS["grid"][0](9), flows, seed=1)
    found = solve(problem)
    assert found.gap <= 1e-12
    assert found.max_violation_bps <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_all_engines_agree_on_max_min(kind: str) -> None:
    make, sizes = KINDS[kind]
    graph = make(sizes[0])
    problem = problem_of(graph, 4 * graph.number_of_edges(), seed=3)
    native, highs = solve(problem, "max_min"), solve(problem, "max_min", "highs")
    for demand in problem.demands:
        assert native.rate_bps(demand.id) == pytest.approx(highs.rate_bps(demand.id), rel=1e-9, abs=1e-9)
