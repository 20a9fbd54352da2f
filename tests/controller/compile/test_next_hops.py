from collections.abc import Iterable
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.compile.next_hops import equal_next_hops, next_hops
from topologies.model import Arc


def arcs_of(links: Iterable[tuple[str, str, float]]) -> list[Arc]:
    arcs = []
    for a, b, delay_s in links:
        arcs.append(Arc(f"{a}-{b}", a, b, 0, 0, 1e6, delay_s))
        arcs.append(Arc(f"{a}-{b}", b, a, 0, 0, 1e6, delay_s))
    return arcs


def follow(hops: dict[str, str], start: str, end: str) -> list[str]:
    path = [start]
    while path[-1] != end:
        path.append(hops[path[-1]])
        assert len(path) <= len(hops) + 1, f"a loop: {path}"
    return path


@given(st.data())
def test_routes_are_shortest_and_free_of_loops(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 8))
    names = [f"S{i}" for i in range(size)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    # Delays of 0 included: there the number of hops must decide, or packets could circle.
    links = [(a, b, data.draw(st.integers(0, 3)) * 1e-3) for a, b in chosen]
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_weighted_edges_from(links)
    root = data.draw(st.sampled_from(names))

    hops = next_hops(arcs_of(links), {"H": root})["H"]

    oracle = nx.single_source_dijkstra_path_length(graph, root)
    assert hops.keys() == oracle.keys() - {root}
    for start in hops:
        path = follow(hops, start, root)
        length = sum(graph[a][b]["weight"] for a, b in pairwise(path))
        assert length == pytest.approx(oracle[start])


def test_ties_go_to_fewer_hops_and_then_to_the_first_name() -> None:
    square = [("A", "C", 1e-3), ("C", "D", 1e-3), ("A", "B", 1e-3), ("B", "D", 1e-3)]
    assert next_hops(arcs_of(square), {"H": "D"})["H"]["A"] == "B"
    assert next_hops(reversed(arcs_of(square)), {"H": "D"})["H"]["A"] == "B"
    assert next_hops(arcs_of([*square, ("A", "D", 2e-3)]), {"H": "D"})["H"]["A"] == "D"


def test_a_tie_does_not_depend_on_the_order_of_addition() -> None:
    # As floats, (0.1 + 0.2) + 0.3 ms and (0.3 + 0.2) + 0.1 ms differ.
    upper = [("A", "B", 1e-4), ("B", "C", 2e-4), ("C", "Z", 3e-4)]
    lower = [("A", "X", 3e-4), ("X", "Y", 2e-4), ("Y", "Z", 1e-4)]
    assert next_hops(arcs_of(upper + lower), {"H": "Z"})["H"]["A"] == "B"
    assert next_hops(arcs_of(lower + upper), {"H": "Z"})["H"]["A"] == "B"


@given(st.data())
def test_equal_next_hops_are_those_of_least_delay_and_free_of_loops(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    names = [f"S{i}" for i in range(size)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    links = [(a, b, data.draw(st.integers(0, 2)) * 1e-3) for a, b in chosen]
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_weighted_edges_from(links)
    root = data.draw(st.sampled_from(names))

    hops = equal_next_hops(arcs_of(links), {"H": root})["H"]

    single = next_hops(arcs_of(links), {"H": root})["H"]
    assert {node: min(near) for node, near in hops.items()}.keys() == single.keys()
    assert all(single[node] in near for node, near in hops.items())
    oracle = nx.single_source_dijkstra_path_length(graph, root)
    choices = nx.DiGraph((node, neighbour) for node, near in hops.items() for neighbour in near)
    assert nx.is_directed_acyclic_graph(choices), "whatever a packet takes, it goes round in no circle"
    for node, near in hops.items():
        assert list(near) == sorted(set(near))
        least = {n for n in graph[node] if abs(oracle[n] + graph[node][n]["weight"] - oracle[node]) < 1e-9}
        # Links without delay may lead sideways: those that come no nearer are left out.
        assert set(near) <= least
        assert {n for n in least if oracle[n] < oracle[node] - 1e-9} <= set(near)


def test_equal_paths_may_differ_in_hops() -> None:
    links = [("A", "D", 2e-3), ("A", "B", 1e-3), ("B", "D", 1e-3), ("A", "C", 1e-3), ("C", "D", 2e-3)]
    assert equal_next_hops(arcs_of(links), {"H": "D"})["H"] == {"A": ("B", "D"), "B": ("D",), "C": ("D",)}
