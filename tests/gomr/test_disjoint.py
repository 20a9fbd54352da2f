"""Demands whose paths share nothing, against every choice of disjoint paths there is."""

from __future__ import annotations

import random
from itertools import product
from typing import Literal

import pytest
from gomr import Demand, Edge, Problem
from gomr.paths.finder import are_disjoint
from gomr.problem import Path
from gomr.solving import allocate

from tests.gomr.gomr_oracles import PathProgram, edge_paths, largest_throughput


def small_problem(seed: int) -> Problem:
    rng = random.Random(seed)
    names = "abcde"[: rng.randint(3, 5)]
    capacities = (1e7, 1e8, 1e9, 2e9)
    edges = []
    for i in range(rng.randint(4, 9)):
        tail, head = rng.sample(names, 2)
        edges.append(Edge(str(i), tail, head, rng.choice(capacities), rng.randint(1, 5) * 1e-3))
    nodes = sorted({node for edge in edges for node in (edge.tail, edge.head)})
    apart: Literal["edges", "nodes"] = "edges" if seed % 2 else "nodes"
    demands = []
    for i in range(rng.randint(1, 3)):
        source, destination = rng.sample(nodes, 2)
        demands.append(Demand(str(i), source, destination, rng.choice((5e8, 1e9, 3e9)), disjoint=apart))
    return Problem(tuple(edges), tuple(demands))


def disjoint_sets(problem: Problem, demand: Demand) -> list[list[Path]]:
    sets: list[list[Path]] = [[]]
    for path in edge_paths(problem, demand):
        sets += [[*own, path] for own in sets if are_disjoint([*own, path], nodes=demand.disjoint == "nodes")]
    return sets


def most_bps(problem: Problem) -> float:
    ids = [demand.id for demand in problem.demands]
    every = [
        [[tuple(edge.id for edge in path) for path in own] for own in disjoint_sets(problem, demand)]
        for demand in problem.demands
    ]
    return max(
        largest_throughput(PathProgram(problem, dict(zip(ids, chosen, strict=True)), 1e9))
        for chosen in product(*every)
    )


@pytest.mark.parametrize("seed", range(24))
def test_disjoint_paths_carry_as_much_as_any_choice_of_them(seed: int) -> None:
    problem = small_problem(seed)
    allocation = allocate(problem)
    assert allocation.admitted_bps == pytest.approx(most_bps(problem), rel=1e-6)
    assert allocation.gap <= 1e-8  # the bound knows the limits
    for demand in problem.demands:
        edges = problem.edges_by_id
        used = [tuple(edges[name] for name in path.edges) for path in allocation.paths[demand.id]]
        assert are_disjoint(used, nodes=demand.disjoint == "nodes")


@pytest.mark.parametrize("count", [1, 15])
def test_a_wide_path_goes_before_a_short_narrow_one(count: int) -> None:
    edges, demands = [], []
    for i in range(count):
        edges += [Edge(f"{i}", f"s{i}", f"m{i}", 1e9, 1e-3), Edge(f"{i}wide", f"m{i}", f"t{i}", 1e9, 3e-3)]
        edges += [Edge(f"{i}near", f"m{i}", f"t{i}", 1e7, 1e-3)]
        demands.append(Demand(str(i), f"s{i}", f"t{i}", 1e9, disjoint="edges"))
    allocation = allocate(Problem(tuple(edges), tuple(demands)))
    assert allocation.admitted_bps == pytest.approx(count * 1e9)
    assert allocation.gap < 1e-9
