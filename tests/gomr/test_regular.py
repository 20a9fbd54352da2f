"""Regular networks of equal links: every solve ends, and is exact."""

from __future__ import annotations

import networkx as nx
import pytest
from gomr import OBJECTIVES
from gomr.engines import regular
from gomr.engines.assembly import assemble
from gomr.engines.time_budget import TimeBudget
from gomr.load import find_load_factor
from gomr.solving import allocate

from benchmarks.gomr.regular import NETWORKS, compare, fat_tree, instances, permutation, problem_of
from benchmarks.gomr.source_program import by_highs
from tests.gomr.gomr_oracles import check_allocation

FLOWS_PER_LINK = 8
"""More than fits."""
GRAPHS = {
    "grid": [nx.grid_2d_graph(side, side) for side in (3, 5, 7)],
    "torus": [nx.grid_2d_graph(side, side, periodic=True) for side in (3, 4, 6)],
    "ring": [nx.cycle_graph(nodes) for nodes in (5, 10, 30)],
    "leaf-spine": [nx.complete_bipartite_graph(spines, 2 * spines) for spines in (2, 4, 6)],
    "fat-tree": [fat_tree(ports) for ports in (2, 4, 6)],
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_objective_ends_and_is_exact(kind: str) -> None:
    for seed, graph in enumerate(GRAPHS[kind]):
        problem = problem_of(graph, FLOWS_PER_LINK * graph.number_of_edges(), seed)
        _, most_bps = by_highs(problem)
        assert most_bps is not None
        for objective in OBJECTIVES:
            allocation = allocate(problem, objective)
            check_allocation(problem, allocation)
            assert allocation.gap <= 1e-9, objective
            assert allocation.admitted_bps <= most_bps * (1 + 1e-9)
            if objective not in ("fair", "max_min"):
                assert allocation.admitted_bps == pytest.approx(most_bps, rel=1e-9), objective


def test_native_finds_what_highs_finds() -> None:
    compared = [one for one in instances(200, seed=1) if len(one.problem.demands) <= 40]
    assert {one.objective for one in compared} == set(OBJECTIVES)
    kinds = {kind for kind in NETWORKS if any(f": {kind}," in one.name for one in compared)}
    assert kinds == set(NETWORKS)
    for instance in compared:
        assert compare(instance, budget_s=100.0).fault is None, instance.name


def test_an_interior_point_finds_the_least_utilisation_and_the_largest_factor() -> None:
    for graph in (nx.hypercube_graph(4), nx.complete_bipartite_graph(6, 6), nx.circulant_graph(14, [1, 3])):
        problem = permutation(graph, 1.0)
        native = allocate(problem, "min_max_utilisation")
        answer = regular.least_utilisation(problem, TimeBudget("highs", None))
        ours = assemble(problem, problem, OBJECTIVES["min_max_utilisation"], "highs", answer)
        check_allocation(problem, ours)
        assert ours.admitted_bps == pytest.approx(native.admitted_bps, rel=1e-12)
        assert ours.max_utilisation == pytest.approx(native.max_utilisation, rel=1e-9)
        assert ours.cost_bps_s == pytest.approx(native.cost_bps_s, rel=1e-8)
        factor, most = regular.largest_factor(problem, 100.0, TimeBudget("highs", None))
        assert factor == pytest.approx(1 / native.max_utilisation, rel=1e-9)
        assert most == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize("graph", [nx.complete_bipartite_graph(20, 20), nx.hypercube_graph(6)])
def test_a_permutation_has_its_least_utilisation_and_largest_factor(graph: nx.Graph) -> None:
    problem = permutation(graph, 1.0)
    allocation = allocate(problem, "min_max_utilisation")
    check_allocation(problem, allocation)
    assert not allocation.timed_out and allocation.gap <= 1e-9
    found = find_load_factor(problem, 1.0)
    assert not found.timed_out
    assert found.factor == pytest.approx(1 / allocation.max_utilisation, rel=1e-9)
