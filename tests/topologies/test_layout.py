"""Drawings of networks that have no coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import networkx as nx
import pytest

import topologies
from topologies.layout import Point, place

Line = tuple[str, str]


def core_with_hosts(core: nx.Graph) -> list[Line]:
    """Return the links of switches joined as in a graph, each with a host."""
    core = nx.convert_node_labels_to_integers(core)
    return [(f"s{a}", f"s{b}") for a, b in core.edges] + [(f"s{node}", f"h{node}") for node in core]


def side(a: Point, b: Point, c: Point) -> Fraction:
    (ax, ay), (bx, by), (cx, cy) = (tuple(map(Fraction, point)) for point in (a, b, c))
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def crossed(places: dict[str, Point], links: Sequence[Line]) -> list[tuple[Line, Line]]:
    """Return the pairs of links that cross, in exact arithmetic."""

    def parts(line: Line, other: Line) -> bool:
        a, b, c, d = (places[name] for name in (*line, *other))
        return side(a, b, c) * side(a, b, d) < 0

    pairs = itertools.combinations(links, 2)
    return [(one, other) for one, other in pairs if parts(one, other) and parts(other, one)]


PLANAR = {
    "four switches, each with each": core_with_hosts(nx.complete_graph(4)),
    "octahedron": core_with_hosts(nx.octahedral_graph()),
    "grid": core_with_hosts(nx.grid_2d_graph(4, 4)),
    "butterfly": [link.ends for link in topologies.load("butterfly").links],
    "wan12": [link.ends for link in topologies.load("wan12").links],
}


@pytest.mark.parametrize("links", PLANAR.values(), ids=PLANAR)
def test_a_planar_network_is_drawn_without_crossings(links: list[Line]) -> None:
    names = sorted({name for link in links for name in link})
    places = place(names, {}, links)
    assert crossed(places, links) == []
    assert places == place(names, {}, links), "the same each time"
    nearest = min(abs(complex(*places[a]) - complex(*places[b])) for a, b in itertools.combinations(names, 2))
    span = max(abs(complex(*places[a]) - complex(*places[b])) for a, b in itertools.combinations(names, 2))
    assert nearest > span / 40, "nodes can be told apart"


def test_what_is_not_planar_has_no_more_crossings_than_one_spring_layout() -> None:
    links = [link.ends for link in topologies.load("fat-tree:4").links]
    names = sorted({name for link in links for name in link})
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(links)
    assert not nx.is_planar(graph)
    one = {name: (float(x), float(y)) for name, (x, y) in nx.spring_layout(graph, seed=0).items()}
    assert len(crossed(place(names, {}, links), links)) <= len(crossed(one, links))
