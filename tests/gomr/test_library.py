"""`import gomr` as a stranger uses it: graphs and matrices in, solutions, tables and graphs out."""

from __future__ import annotations

import math
from typing import Any

import gomr
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from gomr import Edge, Problem

LINKS = [("a", "b", 4.0), ("b", "c", 4.0), ("a", "c", 1.0), ("c", "a", 2.0)]
RATES = {("a", "c"): 6.0, ("c", "a"): 1.0}
MATRIX = np.array([[0, 4, 1], [0, 0, 4], [2, 0, 0]])


def forms() -> dict[str, Any]:
    """The network of LINKS in every form."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_weighted_edges_from(LINKS, weight="capacity")
    return {
        "networkx": graph,
        "tuples": LINKS,
        "pairs": {(tail, head): rate for tail, head, rate in LINKS},
        "nested": {"a": {"b": 4, "c": {"capacity": 1}}, "b": {"c": 4}, "c": {"a": 2}},
        "pandas": pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc")),
        "edges": [Edge(f"{tail}->{head}", tail, head, rate, 1.0) for tail, head, rate in LINKS],
        "problem": Problem(tuple(Edge(f"{t}->{h}", t, h, c, 1.0) for t, h, c in LINKS), ()),
    }


@pytest.mark.parametrize("form", forms())
def test_a_network_may_come_in_any_form(form: str) -> None:
    solution = gomr.solve(forms()[form], RATES)
    assert solution.admitted_bps == pytest.approx(6.0)
    assert solution.certificate.gap < 1e-12
    assert solution.loads_bps == pytest.approx({"a->b": 4, "b->c": 4, "a->c": 1, "c->a": 1})


@pytest.mark.parametrize("of", [np.array, scipy.sparse.csr_array])
def test_a_matrix_of_capacities_has_the_names_that_are_given(of: Any) -> None:
    named = gomr.solve(of(MATRIX), RATES, nodes=list("abc"))
    numbered = gomr.solve(of(MATRIX), {("0", "2"): 6, (2, 0): 1})
    assert named.admitted_bps == pytest.approx(numbered.admitted_bps) == pytest.approx(6.0)
    with pytest.raises(gomr.InvalidProblem, match="shape"):
        gomr.solve(of(MATRIX), RATES, nodes=["a"])


@pytest.mark.parametrize("form", ["tuples", "networkx", "pairs"])
def test_rates_and_capacities_count_in_the_unit(form: str) -> None:
    solution = gomr.solve(forms()[form], RATES, unit_bps=1e9)
    assert solution.admitted_bps == pytest.approx(6e9)
    assert solution.requested_bps == pytest.approx(7e9)


def test_directions_and_parallel_edges() -> None:
    links = [("a", "b", 1, 0.05), ("a", "b", 2, 0.001)]
    one_way = gomr.solve(links, {("a", "b"): 5, ("b", "a"): 5})
    assert one_way.admitted_bps == pytest.approx(3)
    assert [path.delay_s for path in one_way.paths["a->b"]] == [0.001, 0.05]
    assert gomr.solve(links, {("a", "b"): 5, ("b", "a"): 5}, directed=False).admitted_bps == pytest.approx(6)
    graph = nx.Graph([("a", "b", {"capacity": math.inf})])
    assert gomr.solve(graph, {("b", "a"): 5}).admitted_bps == 5
    assert gomr.solve(graph, {("b", "a"): 5}, directed=True).admitted_bps in (0, 5)


def test_a_node_without_links_is_a_node_whose_demands_get_nothing() -> None:
    graph = nx.Graph([("a", "b", {"capacity": 2})])
    graph.add_node("lonely")
    demands = {("a", "b"): 1, ("lonely", "a"): 1, ("b", "lonely"): 1}
    for engine in gomr.ENGINES:
        for objective in gomr.OBJECTIVES:
            solution = gomr.solve(graph, demands, objective, engine)
            assert solution.admitted_bps == pytest.approx(1)
            assert solution.paths["lonely->a"] == solution.paths["b->lonely"] == ()
            assert solution.gap < 1e-9
    assert "lonely" in solution.to_networkx()
    with pytest.raises(gomr.InvalidProblem, match="'nowhere' is not a node"):
        gomr.solve(graph, {("a", "nowhere"): 1})


@pytest.mark.parametrize(
    ("graph", "field"),
    [
        (3, "graph"),
        ("abc", "graph"),
        ([("a", "b")], "graph"),
        ({"a": 3}, "graph"),
        ({("a", "b"): "x"}, "edges[a->b].capacity"),
        ({"a": {"b": {"delay": 1}}}, "edges[a->b].capacity"),
        ([], "edges"),
        ([(1, 2, 3), ("1", 2, 3)], "graph"),
        (np.array([["x"]]), "graph"),
    ],
)
def test_what_is_no_network_is_refused(graph: Any, field: str) -> None:
    with pytest.raises(gomr.InvalidProblem) as refusal:
        gomr.solve(graph, RATES)
    assert refusal.value.field == field
    assert isinstance(refusal.value, gomr.GomrError)


@pytest.mark.parametrize("objective", gomr.OBJECTIVES)
def test_every_view_of_a_solution_tells_the_same(objective: str) -> None:
    solution = gomr.solve(LINKS, RATES, objective)
    edges, paths, demands = (solution.to_pandas(table) for table in ("edges", "paths", "demands"))
    graph = solution.to_networkx()
    assert paths.rate_bps.sum() == pytest.approx(demands.admitted_bps.sum()) == pytest.approx(6.0)
    for edge in edges.itertuples():
        carried = sum(solution.flows_bps(name).get(edge.edge, 0.0) for name in solution.paths)
        assert carried == pytest.approx(edge.load_bps)
        assert edge.utilisation == pytest.approx(edge.load_bps / edge.capacity_bps)
        assert graph[edge.tail][edge.head][edge.edge]["load_bps"] == edge.load_bps
    assert edges.utilisation.max() == pytest.approx(solution.max_utilisation)
    assert "6 of 7 bit/s" in repr(solution) and objective in repr(solution)
    with pytest.raises(gomr.InvalidProblem, match="demands, paths, edges"):
        solution.to_pandas("flows")  # type: ignore[arg-type]
    assert gomr.Engine(LINKS, RATES, objective).solution.prices == pytest.approx(solution.prices)


@pytest.mark.parametrize("engine", gomr.ENGINES)
def test_a_unit_of_capacity_is_worth_what_it_adds(engine: str) -> None:
    solution = gomr.solve(LINKS, RATES, engine=engine)
    worth = {edge.id: price for edge, price in solution.worth_most()}
    for at, (tail, head, rate) in enumerate(LINKS):
        more = [*LINKS[:at], (tail, head, rate + 0.125), *LINKS[at + 1 :]]
        gained = gomr.solve(more, RATES).admitted_bps - solution.admitted_bps
        # Of several optimal prices one is told; more than its price an edge never adds.
        assert gained <= 0.125 * worth.get(f"{tail}->{head}", 0.0) + 1e-9
    assert sum(worth.get(f"{t}->{h}", 0.0) * c for t, h, c in LINKS) + 1 == pytest.approx(6.0)


def test_a_series_is_what_fresh_solves_find() -> None:
    rng = np.random.default_rng(1)
    ring = [(a, (a + step) % 9, float(rng.uniform(1, 9))) for a in range(9) for step in (1, 3, 8)]
    matrices = rng.gamma(0.3, 1.0, (20, 9, 9)) * (rng.random((20, 9, 9)) < 0.7)
    for objective in gomr.OBJECTIVES:
        series = list(gomr.solve_series(ring, matrices, objective))
        assert len(series) == len(matrices)
        for matrix, warm in zip(matrices, series, strict=True):
            cold = gomr.solve(ring, matrix, objective)
            assert warm.value_bps == pytest.approx(cold.value_bps, rel=1e-9)
            assert warm.gap < 1e-9
            assert warm.max_violation_bps < 1e-9
            assert warm.requested_bps == pytest.approx(cold.requested_bps)
            assert max(warm.utilisation.values()) <= 1 + 1e-9
    frames = [pd.DataFrame([[0, 6 + hour], [1, 0]], list("ac"), list("ac")) for hour in range(3)]
    tables = gomr.solve_series(LINKS, [*frames, RATES], unit_bps=1e3)
    assert [each.requested_bps for each in tables] == [7e3, 8e3, 9e3, 7e3]
    for wrong in (-MATRIX, MATRIX * math.nan, MATRIX[:2]):
        with pytest.raises(gomr.InvalidProblem, match="from 0|shape"):
            list(gomr.solve_series(LINKS, [MATRIX, wrong]))
    with pytest.raises(gomr.InvalidProblem, match="'x' is not a node"):
        next(gomr.solve_series(LINKS, [{("a", "x"): 1}]))


def test_events_failures_load_and_backups_are_at_hand() -> None:
    engine = gomr.Engine(LINKS, RATES, "max_min")
    assert engine.fail_link("a->b", one_way=True).allocation.admitted_bps == pytest.approx(2)
    assert engine.solution.loads_bps["a->b"] == 0
    problem = gomr.at_load(gomr.problem_of(LINKS, RATES), 0.5)
    solution = gomr.solve(problem)
    assert solution.admitted_bps == pytest.approx(solution.requested_bps)
    assert gomr.solve(gomr.at_load(problem, 2.0)).gap < 1e-9
    assert {backup.demand for backup in solution.backups()} == {"a->c", "c->a"}
    failures = [*gomr.link_failures(problem), *gomr.node_failures(problem)]
    survey = gomr.survey_failures(problem, failures)
    assert survey.worst_first()[0].lost_bps == pytest.approx(solution.admitted_bps)


def test_importing_the_errors_loads_nothing_else_and_names_are_listed() -> None:
    assert set(gomr.__all__) <= set(dir(gomr))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gomr.nothing
