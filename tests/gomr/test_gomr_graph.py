"""Shortest paths against networkx and against enumeration."""

from __future__ import annotations

import math

import networkx as nx
import pytest
from gomr import Demand, Edge, Problem
from gomr.paths.graph import Graph
from hypothesis import assume, given, settings

from tests.gomr.gomr_oracles import problems, simple_paths


def delay(edge: Edge) -> float:
    return edge.delay_s


@given(problems())
@settings(deadline=None)
def test_distances_are_those_of_networkx(problem: Problem) -> None:
    reference = nx.MultiDiGraph()
    for edge in problem.edges:
        reference.add_edge(edge.tail, edge.head, delay=edge.delay_s)
    source = problem.edges[0].tail
    tree = Graph(problem.edges).shortest_tree(source, delay)
    for node, length in nx.single_source_dijkstra_path_length(reference, source, weight="delay").items():
        assert tree.distance(node) == pytest.approx(length)
        path = tree.path(node)
        assert path is not None
        assert sum(edge.delay_s for edge in path) == pytest.approx(length)


@given(problems())
@settings(deadline=None)
def test_k_shortest_paths_are_the_first_of_all(problem: Problem) -> None:
    source, destination = problem.edges[0].tail, problem.edges[0].head
    demand = Demand("f", source, destination, 1.0)
    by_id = problem.edges_by_id
    everything = [tuple(by_id[name] for name in path) for path in simple_paths(problem, demand)]
    assume(len(everything) <= 200)
    shortest = Graph(problem.edges, problem.endpoints).shortest_paths(source, destination, 6, delay)
    lengths = sorted(sum(edge.delay_s for edge in path) for path in everything)
    assert len(set(shortest)) == len(shortest) == min(6, len(everything))
    assert set(shortest) <= set(everything)
    assert [sum(edge.delay_s for edge in path) for path in shortest] == pytest.approx(lengths[:6])


def test_ties_go_to_fewer_edges_then_to_the_first() -> None:
    edges = [
        Edge("a", "A", "B", 1, 1e-3),
        Edge("b", "B", "C", 1, 1e-3),
        Edge("first", "A", "C", 1, 2e-3),
        Edge("second", "A", "C", 1, 2e-3),
    ]
    path = Graph(edges).shortest_path("A", "C", delay)
    assert path is not None
    assert [edge.id for edge in path] == ["first"]


def test_no_way() -> None:
    graph = Graph([Edge("a", "A", "B", 1, 1e-3)])
    assert graph.shortest_path("B", "A", delay) is None
    assert graph.shortest_path("A", "B", lambda _: math.inf) is None
    assert graph.shortest_paths("B", "A", 3, delay) == []
    tree = graph.shortest_tree("A", delay)
    assert tree.path("A") == ()
    assert tree.distance("nowhere") == math.inf
