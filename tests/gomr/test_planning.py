"""What planners ask, against programmes over all simple paths, written from the definitions for scipy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gomr
import networkx as nx
import numpy as np
import pytest
from gomr import Demand, Edge, Problem
from scipy.optimize import linprog

from tests.gomr.gomr_oracles import edge_paths

SEEDS = range(12)


def network(rng: random.Random) -> Problem:
    """A small connected network of links of both directions, some parallel, with delays."""
    nodes = rng.randint(4, 6)
    graph = nx.gnm_random_graph(nodes, rng.randint(nodes, nodes + 4), seed=rng.randrange(1000))
    edges: list[Edge] = []
    reverse: dict[str, str] = {}
    pairs = [*graph.edges, *zip(range(nodes), range(1, nodes), strict=False)]
    for number, (a, b) in enumerate(pairs):
        there, back = f"{number}+", f"{number}-"
        delay_s = rng.randint(1, 5) * 1e-3
        edges += [
            Edge(there, str(a), str(b), float(rng.randint(1, 9)), delay_s),
            Edge(back, str(b), str(a), float(rng.randint(1, 9)), delay_s),
        ]
        reverse |= {there: back, back: there}
    return Problem(tuple(edges), (), reverse)


def demands(rng: random.Random, problem: Problem, count: int) -> tuple[Demand, ...]:
    pairs = [(a, b) for a in sorted(problem.nodes) for b in sorted(problem.nodes) if a != b]
    chosen = rng.sample(pairs, min(count, len(pairs)))
    return tuple(Demand(f"{a}->{b}", a, b, float(rng.randint(1, 9))) for a, b in chosen)


class Oracle:
    """A linear programme by name of variable."""

    def __init__(self) -> None:
        self.at: dict[Any, int] = {}
        self.rows: list[tuple[dict[Any, float], float]] = []

    def row(self, terms: dict[Any, float], upper: float) -> None:
        for name in terms:
            self.at.setdefault(name, len(self.at))
        self.rows.append((terms, upper))

    def least(self, costs: dict[Any, float]) -> float:
        for name in costs:
            self.at.setdefault(name, len(self.at))
        matrix = np.zeros((len(self.rows), len(self.at)))
        for at, (terms, _) in enumerate(self.rows):
            for name, factor in terms.items():
                matrix[at, self.at[name]] += factor
        price = np.zeros(len(self.at))
        for name, cost in costs.items():
            price[self.at[name]] = cost
        found = linprog(price, matrix, [upper for _, upper in self.rows], method="highs")
        assert found.status == 0, found.message
        return float(found.fun)


def with_loads(problem: Problem, asked: tuple[Demand, ...]) -> tuple[Oracle, dict[str, list[Any]]]:
    """Rates on all paths within all capacities, and the variables of each demand."""
    oracle, own = Oracle(), dict[str, list[Any]]()
    load: dict[str, dict[Any, float]] = {edge.id: {} for edge in problem.edges}
    for demand in asked:
        own[demand.id] = [(demand.id, path) for path in edge_paths(problem, demand)]
        for name in own[demand.id]:
            for edge in name[1]:
                load[edge.id][name] = 1.0
    for edge in problem.edges:
        oracle.row(load[edge.id], edge.capacity_bps)
    return oracle, own


def test_each_class_gets_the_most_beside_those_before_it() -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        problem = network(rng)
        classes = [demands(rng, problem, 5) for _ in range(3)]
        classes[0] = tuple(replace(demand, max_delay_s=9e-3) for demand in classes[0])
        found = gomr.solve_priorities(problem, classes)
        named = [tuple(replace(d, id=f"{n}:{d.id}") for d in own) for n, own in enumerate(classes, 1)]
        oracle, own = with_loads(problem, tuple(demand for each in named for demand in each))
        for demand in (demand for each in named for demand in each):
            oracle.row(dict.fromkeys(own[demand.id], 1.0), demand.rate_bps)
        for each, proof in zip(named, found.classes, strict=True):
            variables = [name for demand in each for name in own[demand.id]]
            most = -oracle.least(dict.fromkeys(variables, -1.0))
            assert proof.value_bps == pytest.approx(most, rel=1e-7, abs=1e-7)
            assert proof.gap < 1e-8
            got = sum(found.solution.rate_bps(demand.id) for demand in each)
            assert got == pytest.approx(most, rel=1e-7, abs=1e-7)
            oracle.row(dict.fromkeys(variables, -1.0), -most * (1 - 1e-10))
        least = oracle.least(
            {name: sum(e.delay_s for e in name[1]) for each in own.values() for name in each}
        )
        assert found.solution.cost_bps_s == pytest.approx(least, rel=1e-6, abs=1e-9)
        assert found.solution.max_violation_bps < 1e-9


def test_the_least_upgrade_admits_all_and_no_cheaper_one_does() -> None:
    for seed in SEEDS:
        rng = random.Random(100 + seed)
        problem = network(rng)
        asked = demands(rng, problem, 8)
        cost = {edge.id: float(rng.randint(1, 4)) for edge in problem.edges}
        found = gomr.least_upgrade(problem, asked, cost)
        oracle, own = with_loads(problem, asked)
        for terms, edge in zip([terms for terms, _ in oracle.rows], problem.edges, strict=True):
            terms[("add", edge.id[:-1])] = -1.0
        oracle.at |= {
            ("add", edge.id[:-1]): len(oracle.at) + at for at, edge in enumerate(problem.edges[::2])
        }
        for demand in asked:
            oracle.row(dict.fromkeys(own[demand.id], -1.0), -demand.rate_bps)
        least = oracle.least({("add", edge.id[:-1]): cost[edge.id] for edge in problem.edges[::2]})
        assert found.cost == pytest.approx(least, rel=1e-8, abs=1e-8)
        assert found.lower_bound == pytest.approx(least, rel=1e-8, abs=1e-8)
        again = gomr.solve(found.solution.problem)
        assert (
            again.admitted_bps
            == pytest.approx(again.requested_bps)
            == pytest.approx(found.solution.admitted_bps)
        )
    one = gomr.least_upgrade([("a", "b", 1)], {("a", "b"): 3})
    assert (one.added_bps, one.cost, one.gap) == ({"a->b": 2.0}, 2.0, 0.0)
    assert gomr.least_upgrade([("a", "b", 4)], {("a", "b"): 3}).added_bps == {}
    with pytest.raises(gomr.InvalidProblem, match="not admitted"):
        gomr.least_upgrade([("a", "b", 1), ("b", "c", 1)], {("a", "c"): 3}, {"a->b": 1.0})


def test_one_routing_serves_several_matrices_best() -> None:
    for seed in SEEDS:
        rng = random.Random(200 + seed)
        problem = network(rng)
        matrices = [demands(rng, problem, 6) for _ in range(3)]
        found = gomr.robust_splits(problem, matrices)
        oracle = Oracle()
        asked = {demand.id: demand for matrix in matrices for demand in matrix}
        every = {
            name: [(name, path) for path in edge_paths(problem, demand)] for name, demand in asked.items()
        }
        for own in every.values():
            oracle.row(dict.fromkeys(own, -1.0), -1.0)
        for matrix in matrices:
            for edge in problem.edges:
                loads = {
                    name: demand.rate_bps for demand in matrix for name in every[demand.id] if edge in name[1]
                }
                oracle.row({**loads, "largest": -edge.capacity_bps}, 0.0)
        least = oracle.least({"largest": 1.0})
        assert found.max_utilisation == pytest.approx(least, rel=1e-8)
        assert found.lower_bound == pytest.approx(least, rel=1e-8)
        assert max(found.utilisation) == found.max_utilisation
        assert all(sum(share for _, share in own) == pytest.approx(1.0) for own in found.shares.values())
    # Of a single matrix it is what no routing of that matrix can be below.
    alone = gomr.robust_splits([("a", "b", 2), ("a", "c", 1), ("c", "b", 1)], [{("a", "b"): 3}])
    assert alone.max_utilisation == pytest.approx(1.0)


def test_rates_survive_every_failure_of_a_link() -> None:
    for seed in SEEDS:
        rng = random.Random(300 + seed)
        problem = network(rng)
        asked = demands(rng, problem, 6)
        found = gomr.failure_proof(problem, asked)
        oracle, own = with_loads(problem, asked)
        for demand in asked:
            oracle.row({("rate", demand.id): 1.0}, demand.rate_bps)
            for link in [None, *(edge.id[:-1] for edge in problem.edges[::2])]:
                left = [name for name in own[demand.id] if all(edge.id[:-1] != link for edge in name[1])]
                oracle.row({("rate", demand.id): 1.0, **dict.fromkeys(left, -1.0)}, 0.0)
        most = -oracle.least({("rate", demand.id): -1.0 for demand in asked})
        assert found.admitted_bps == pytest.approx(most, rel=1e-8, abs=1e-8)
        assert found.upper_bound_bps == pytest.approx(most, rel=1e-8, abs=1e-8)
    bridge = gomr.failure_proof([("a", "b", 9)], {("a", "b"): 3})
    assert bridge.admitted_bps == bridge.upper_bound_bps == 0.0


def ecmp(graph: nx.MultiDiGraph[str], source: str, target: str) -> dict[str, float] | None:
    """The load of each edge, by walking all shortest paths from node to node."""
    if source == target:
        return {}
    length = nx.single_source_dijkstra_path_length(graph.reverse(), target)
    loads: dict[str, float] = {}

    def walk(node: str, part: float) -> None:
        onward = [
            (head, key)
            for _, head, key, data in graph.out_edges(node, keys=True, data=True)
            if head in length and length[head] + data["weight"] == length[node]
        ]
        for head, key in onward:
            loads[key] = loads.get(key, 0.0) + part / len(onward)
            if head != target:
                walk(head, part / len(onward))

    if source not in length:
        return None
    walk(source, 1.0)
    return loads


def test_lists_of_two_segments_carry_what_they_can() -> None:
    for seed in SEEDS:
        rng = random.Random(400 + seed)
        problem = network(rng)
        asked = demands(rng, problem, 6)
        weight = {edge.id: float(rng.randint(1, 3)) for edge in problem.edges}
        found = gomr.solve_segments(problem, asked, weight)
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for edge in problem.edges:
            graph.add_edge(edge.tail, edge.head, edge.id, weight=weight[edge.id])
        oracle = Oracle()
        load: dict[str, dict[Any, float]] = {edge.id: {} for edge in problem.edges}
        for demand in asked:
            ways = {}
            for middle in problem.nodes - {demand.source}:
                first = ecmp(graph, demand.source, middle)
                second = ecmp(graph, middle, demand.destination)
                assert first is not None and second is not None
                for part in (first, second):
                    for key, share in part.items():
                        load[key][demand.id, middle] = load[key].get((demand.id, middle), 0.0) + share
                ways[demand.id, middle] = 1.0
            oracle.row(ways, demand.rate_bps)
        for edge in problem.edges:
            oracle.row(load[edge.id], edge.capacity_bps)
        most = -oracle.least(dict.fromkeys(oracle.at, -1.0))
        free = gomr.solve(problem, asked)
        assert found.admitted_bps == pytest.approx(most, rel=1e-8)
        assert found.free_bps == pytest.approx(free.admitted_bps, rel=1e-9)
        assert found.gap == pytest.approx(max(0.0, 1 - most / free.admitted_bps), abs=1e-8)
        assert sum(rate for own in found.lists_bps.values() for _, rate in own) == pytest.approx(most)


@pytest.mark.parametrize("ask", [gomr.least_upgrade, gomr.failure_proof, gomr.solve_segments])
def test_limits_that_planning_does_not_know_are_refused(ask: Callable[..., object]) -> None:
    with pytest.raises(gomr.InvalidProblem, match="max_paths"):
        ask([("a", "b", 1)], [Demand("f", "a", "b", 1.0, max_paths=1)])
    with pytest.raises(gomr.InvalidProblem, match=r"weight|cost|is not a node"):
        ask([("a", "b", 1)], {("a", "x"): 1.0})
    assert math.isfinite(gomr.solve_segments([("a", "b", 1)], {("a", "b"): 1}).gap)
