"""`from_networkx`: a graph in, an allocation with its certificate out."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from gomr import ENGINES, OBJECTIVES, Demand, DemandColumns, from_networkx
from gomr.errors import InvalidProblem
from gomr.solving import allocate
from scipy import sparse


def test_an_undirected_graph_carries_both_ways() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity=10)
    graph.add_edge("b", "c", capacity=5)
    graph.add_edge("a", "c", capacity=3, delay=5.0)
    allocation = allocate(from_networkx(graph, {("a", "c"): 9.0, ("c", "a"): 4.0}, unit_bps=1e9))
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
    allocation = allocate(problem)
    assert (allocation.rate_bps("x"), allocation.rate_bps("y")) == (3.0, 7.0)


def test_what_is_missing_is_named() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b")
    with pytest.raises(InvalidProblem, match=r"edges\[a->b\]\.capacity: is missing"):
        from_networkx(graph, [])
    graph.add_edge(1, "1", capacity=1)
    with pytest.raises(InvalidProblem, match="two nodes that are the same as text"):
        from_networkx(graph, [])


MATRIX = np.array([[0, 0, 9.0], [0, 0, 0], [4.0, 0, 7.0]])
FORMS: dict[str, Any] = {
    "pairs": {("a", "c"): 9, ("c", "a"): 4.0},
    "tuples": [("a", "c", 9), ("c", "a", 4)],
    "dict of dicts": {"a": {"c": 9.0, "a": 3.0}, "c": {"a": np.float32(4)}},
    "array": MATRIX,
    "list in an array": np.array(MATRIX.tolist(), dtype=object),
    "sparse": sparse.csr_matrix(MATRIX),
    "table": pd.DataFrame([[4.0, 7, 0], [0, 9, 0], [0, 0, 0]], ["c", "a", "b"], ["a", "c", "b"]),
    "columns": DemandColumns.from_matrix(["a", "b", "c"], MATRIX),
    "demands": [Demand("a->c", "a", "c", 9.0), Demand("c->a", "c", "a", 4.0)],
}


@pytest.mark.parametrize("form", FORMS)
def test_rates_in_every_form_count_in_the_unit_of_the_graph(form: str) -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b", capacity=5)
    graph.add_edge("b", "c", capacity=math.inf)
    graph.add_edge("a", "c", capacity=3)
    problem = from_networkx(graph, FORMS[form], unit_bps=1e9)
    assert {demand.id: demand.rate_bps for demand in problem.demands} == {"a->c": 9e9, "c->a": 4e9}
    for objective in OBJECTIVES:
        for engine in ENGINES:
            allocation = allocate(problem, objective, engine)
            assert allocation.admitted_bps == pytest.approx(12e9)
            assert allocation.gap < 1e-9
            assert allocation.max_utilisation == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("demands", "reason"),
    [
        ("abc", "must be Demand objects"),
        (None, "must be Demand objects"),
        ([("a", "b")], "it holds"),
        ({"a": 3}, "'a' is no pair of nodes"),
        ({("a", "b"): "x"}, "must be a number, not 'x'"),
        (np.ones(3), "the matrix has the shape"),
        (np.array([["x", "y"], ["z", "w"]]), "holds what is no number"),
        (pd.DataFrame(np.zeros((2, 2)), ["a", "b"], ["a", "c"]), "must be the same nodes, each once"),
    ],
)
def test_what_is_no_matrix_is_refused_with_what_would_be_one(demands: Any, reason: str) -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b", capacity=1)
    with pytest.raises(InvalidProblem, match=reason):
        from_networkx(graph, demands)
