"""`from_networkx`: a graph in, an allocation with its certificate out."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from controller.errors import InvalidProblem
from controller.gomr import Demand, from_networkx, solve


def test_an_undirected_graph_carries_both_ways() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity=10)
    graph.add_edge("b", "c", capacity=5)
    graph.add_edge("a", "c", capacity=3, delay=5.0)
    allocation = solve(from_networkx(graph, {("a", "c"): 9.0, ("c", "a"): 4.0}, unit_bps=1e9))
    assert allocation.rate_bps("a->c") == pytest.approx(8e9)
    assert allocation.rate_bps("c->a") == pytest.approx(4e9)
    assert allocation.gap < 1e-9
    assert allocation.paths["c->a"][0].nodes == ("c", "b", "a")


def test_a_directed_multigraph_keeps_its_parallel_edges() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge(1, 2, bw=1.0)
    graph.add_edge(1, 2, bw=2.0)
    graph.add_edge(2, 1, bw=7.0)
    problem = from_networkx(graph, [Demand("x", "1", "2", 9.0), Demand("y", "2", "1", 9.0)], capacity="bw")
    assert [edge.id for edge in problem.edges] == ["1->2", "1->2#1", "2->1"]
    assert problem.reverse == {"1->2": "2->1", "2->1": "1->2"}
    allocation = solve(problem)
    assert (allocation.rate_bps("x"), allocation.rate_bps("y")) == (3.0, 7.0)


def test_what_is_missing_is_named() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b")
    with pytest.raises(InvalidProblem, match=r"edges\[a->b\]\.capacity: is missing"):
        from_networkx(graph, [])
    graph.add_edge(1, "1", capacity=1)
    with pytest.raises(InvalidProblem, match="two nodes that are the same as text"):
        from_networkx(graph, [])
