"""Trees that outlive link changes are those of the links that are up, and free of loops."""

from collections.abc import Iterable
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.journal import Journal
from controller.state.least_delay import LeastDelay
from controller.state.live_network import arc_name
from topologies.model import Arc

NAMES = [f"S{number}" for number in range(7)]
PAIRS = [(a, b) for a in NAMES for b in NAMES if a < b]


def arcs_of(links: Iterable[tuple[str, str, float]]) -> dict[str, Arc]:
    both = [(*ends, delay_s) for a, b, delay_s in links for ends in ((a, b), (b, a))]
    return {arc_name(a, b): Arc(f"{a}-{b}", a, b, 0, 0, 1e6, delay_s) for a, b, delay_s in both}


def trees_of(*links: tuple[str, str, float]) -> LeastDelay:
    """Return the trees of a network whose links are up."""
    arcs = arcs_of(links)
    trees = LeastDelay({end for a, b, _ in links for end in (a, b)}, arcs)
    for name in arcs:
        trees.set_up(name, True)
    return trees


@given(st.data())
def test_trees_follow_the_links(data: st.DataObject) -> None:
    """Against Dijkstra's algorithm; packets go round in no circle, whichever equal neighbours they take."""
    chosen = data.draw(st.lists(st.sampled_from(PAIRS), unique=True, min_size=1))
    # Delays of 0 included: there the number of links must decide, or packets could circle.
    arcs = arcs_of((a, b, data.draw(st.integers(0, 3)) * 1e-3) for a, b in chosen)
    trees = LeastDelay(NAMES, arcs)
    graph = nx.DiGraph()  # against the arcs
    graph.add_nodes_from(NAMES)
    for name in data.draw(st.lists(st.sampled_from(sorted(arcs)), max_size=30)):
        arc = arcs[name]
        is_up = not graph.has_edge(arc.head, arc.tail)
        trees.set_up(name, is_up)
        if is_up:
            graph.add_edge(arc.head, arc.tail, weight=round(arc.delay_s * 1e9))
        else:
            graph.remove_edge(arc.head, arc.tail)
        root = data.draw(st.sampled_from(NAMES))
        oracle_ns = nx.single_source_dijkstra_path_length(graph, root)
        distances, nearer, hops = trees.distances(root), trees.nearer(root), trees.hops(root)
        assert {node: distance_ns for node, (distance_ns, _) in distances.items()} == oracle_ns
        assert hops.keys() == nearer.keys() == oracle_ns.keys() - {root}
        choices = nx.DiGraph((node, neighbour) for node, near in nearer.items() for neighbour in near)
        assert nx.is_directed_acyclic_graph(choices)
        for node, near in nearer.items():
            path = trees.path(node, root)
            assert path is not None
            assert path[1] == hops[node] == min(near, key=lambda each: (distances[each][1], each))
            assert distances[node] == (sum(graph[b][a]["weight"] for a, b in pairwise(path)), len(path) - 1)
            least = {
                n
                for n in oracle_ns.keys() & graph.pred[node]
                if oracle_ns[n] + graph[n][node]["weight"] == oracle_ns[node]
            }
            # Links without delay may lead sideways: those that come no nearer are left out.
            assert {n for n in least if oracle_ns[n] < oracle_ns[node]} <= set(near) <= least
            assert list(near) == sorted(set(near))
        assert trees.nearer(root) is nearer


def test_ties_go_to_fewer_links_and_then_to_the_first_name() -> None:
    square = [("A", "C", 1e-3), ("C", "D", 1e-3), ("A", "B", 1e-3), ("B", "D", 1e-3)]
    assert trees_of(*square).hops("D")["A"] == trees_of(*square[::-1]).hops("D")["A"] == "B"
    assert trees_of(*square, ("A", "D", 2e-3)).hops("D")["A"] == "D"


def test_a_tie_does_not_depend_on_the_order_of_addition() -> None:
    # As floats, (0.1 + 0.2) + 0.3 ms and (0.3 + 0.2) + 0.1 ms differ.
    upper = [("A", "B", 1e-4), ("B", "C", 2e-4), ("C", "Z", 3e-4)]
    lower = [("A", "X", 3e-4), ("X", "Y", 2e-4), ("Y", "Z", 1e-4)]
    assert trees_of(*upper, *lower).hops("Z")["A"] == trees_of(*lower, *upper).hops("Z")["A"] == "B"


def test_equal_paths_may_differ_in_links() -> None:
    links = [("A", "D", 2e-3), ("A", "B", 1e-3), ("B", "D", 1e-3), ("A", "C", 1e-3), ("C", "D", 2e-3)]
    assert trees_of(*links).nearer("D") == {"A": ("B", "D"), "B": ("D",), "C": ("D",)}


def test_an_event_that_fails_leaves_the_trees_as_they_were() -> None:
    trees = LeastDelay(NAMES, arcs_of([("S0", "S1", 1e-3)]))
    trees.set_up("S0->S1", True)
    assert trees.path("S0", "S1") == ("S0", "S1")
    with pytest.raises(ZeroDivisionError), Journal():
        trees.set_up("S0->S1", False)
        assert trees.path("S0", "S1") is None
        assert trees.nearer("S1") == {}
        raise ZeroDivisionError
    assert trees.path("S0", "S1") == ("S0", "S1")
    assert trees.nearer("S1") == {"S0": ("S1",)}
