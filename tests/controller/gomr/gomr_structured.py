"""Networks of equal links and equal delays, and what they can carry by a linear programme over edges."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import highspy
import networkx as nx
import numpy as np

from controller.gomr import Demand, Edge, Problem

CAPACITY_BPS = 10.0


def problem_of(graph: nx.Graph, flows: int, seed: int, capacity_bps: float = CAPACITY_BPS) -> Problem:
    """Return unit demands between random nodes of a graph whose links are all alike."""
    names = {node: str(number) for number, node in enumerate(graph.nodes)}
    links = [(names[tail], names[head]) for tail, head in graph.edges]
    ends = [pair for tail, head in links for pair in ((tail, head), (head, tail))]
    edges = tuple(Edge(f"{tail}->{head}", tail, head, capacity_bps, 1e-3) for tail, head in ends)
    reverse = {f"{tail}->{head}": f"{head}->{tail}" for tail, head in ends}
    draw, nodes = random.Random(seed), list(names.values())
    pairs = [draw.sample(nodes, 2) for _ in range(flows)]
    demands = tuple(Demand(f"f{number}", tail, head, 1.0) for number, (tail, head) in enumerate(pairs))
    return Problem(edges, demands, reverse)


def fat_tree(ports: int) -> nx.Graph:
    """Return the switches of a fat-tree (M. Al-Fares et al., SIGCOMM 2008)."""
    graph, half = nx.Graph(), ports // 2
    for pod in range(ports):
        for upper in range(half):
            graph.add_edges_from(((pod, "aggregation", upper), (pod, "edge", lower)) for lower in range(half))
            graph.add_edges_from((("core", upper, core), (pod, "aggregation", upper)) for core in range(half))
    return graph


KINDS: dict[str, tuple[Callable[[int], nx.Graph], tuple[int, int, int]]] = {
    "grid": (lambda side: nx.grid_2d_graph(side, side), (3, 5, 7)),
    "torus": (lambda side: nx.grid_2d_graph(side, side, periodic=True), (3, 4, 6)),
    "ring": (nx.cycle_graph, (5, 10, 30)),
    "leaf-spine": (lambda spines: nx.complete_bipartite_graph(spines, 2 * spines), (2, 4, 6)),
    "fat-tree": (fat_tree, (2, 4, 6)),
}
"""How to make a network of a size, and three sizes."""


def most_admitted_bps(problem: Problem) -> float:
    """Return the most that can be admitted, by a programme with a variable for each source and edge."""
    sources = sorted({demand.source for demand in problem.demands})
    nodes = sorted(problem.nodes)
    edges, demands = problem.edges, problem.demands
    flows, count = len(sources) * len(edges), len(demands)
    model = highspy.HighsLp()
    model.num_col_ = flows + count
    model.num_row_ = len(edges) + len(sources) * len(nodes)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.r_[np.zeros(flows), np.ones(count)]
    model.col_lower_ = np.zeros(flows + count)
    model.col_upper_ = np.r_[np.full(flows, np.inf), [demand.rate_bps for demand in demands]]
    balance = len(edges) + np.arange(len(sources) * len(nodes)).reshape(len(sources), len(nodes))
    is_own = np.array([[node == source for node in nodes] for source in sources]).ravel()
    model.row_lower_ = np.r_[np.full(len(edges), -np.inf), np.where(is_own, -np.inf, 0.0)]
    model.row_upper_ = np.r_[[edge.capacity_bps for edge in edges], np.where(is_own, np.inf, 0.0)]
    place = {node: at for at, node in enumerate(nodes)}
    columns: list[Iterable[tuple[int, float]]] = [
        [(at, 1.0), (balance[s, place[edge.tail]], -1.0), (balance[s, place[edge.head]], 1.0)]
        for s in range(len(sources))
        for at, edge in enumerate(edges)
    ]
    columns += [
        [(balance[sources.index(demand.source), place[demand.destination]], -1.0)] for demand in demands
    ]
    entries = [list(column) for column in columns]
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.cumsum([0, *map(len, entries)])
    model.a_matrix_.index_ = np.array([row for column in entries for row, _ in column])
    model.a_matrix_.value_ = np.array([value for column in entries for _, value in column])
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(model)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)
