"""Grids, tori, rings, leaf-spines and fat-trees of equal links: every solve ends, and is exact."""

from __future__ import annotations

import pytest
from gomr import OBJECTIVES
from gomr.solving import allocate

from benchmarks.gomr.structured import EXACT, KINDS, Instance, compare, instances, problem_of
from tests.gomr.gomr_oracles import check_allocation
from tests.gomr.gomr_structured import most_admitted_bps

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
        allocation = allocate(problem, objective)
        check_allocation(problem, allocation)
        assert allocation.gap <= 1e-9, objective
        assert allocation.admitted_bps <= most_bps * (1 + 1e-9)
        if objective not in ("fair", "max_min"):
            assert allocation.admitted_bps == pytest.approx(most_bps, rel=1e-9), objective


@pytest.mark.parametrize("flows", [700, 1500])
def test_a_grid_of_81_nodes_ends_at_the_optimum(flows: int) -> None:
    problem = problem_of(KINDS["grid"][0](9), flows, seed=1)
    allocation = allocate(problem)
    assert allocation.gap <= 1e-12
    assert allocation.max_violation_bps <= 1e-9


def test_max_min_on_a_grid_of_81_nodes_ends_at_the_optimum() -> None:
    problem = Instance("grid", 9, 700, "max_min").problem()
    allocation = allocate(problem, "max_min")
    check_allocation(problem, allocation)
    assert allocation.gap <= 1e-9


SMALL = [instance for instance in instances() if instance.flows <= 40]
"""`python -m benchmarks.gomr --structured` has them all."""


@pytest.mark.parametrize("kind", KINDS)
def test_native_finds_what_highs_finds(kind: str) -> None:
    for instance in (instance for instance in SMALL if instance.kind == kind):
        comparison = compare(instance, budget_s=100.0)
        assert comparison.failure is None, instance
        assert comparison.highs_ended, instance
        assert comparison.difference is not None and comparison.difference <= EXACT, instance
        assert comparison.gap is not None and comparison.gap <= EXACT, instance


def test_there_are_two_hundred_instances_of_every_kind_and_objective() -> None:
    every = list(instances())
    assert len(every) >= 200
    sizes = {(instance.kind, instance.objective, instance.size) for instance in every}
    assert all(
        sum(one[:2] == (kind, objective) for one in sizes) >= 3 for kind in KINDS for objective in OBJECTIVES
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_engines_agree_on_max_min(kind: str) -> None:
    make, sizes = KINDS[kind]
    graph = make(sizes[0])
    problem = problem_of(graph, 4 * graph.number_of_edges(), seed=3)
    native, highs = allocate(problem, "max_min"), allocate(problem, "max_min", "highs")
    for demand in problem.demands:
        assert native.rate_bps(demand.id) == pytest.approx(highs.rate_bps(demand.id), rel=1e-9, abs=1e-9)
