"""The backbone of twelve cities against geography and its own promises."""

from __future__ import annotations

import math

import networkx as nx
import pytest

import topologies

EARTH_KM = 6371.0
GLASS_KM_PER_US = 0.2
DETOUR = 1.3


def great_circle_km(a: topologies.model.Node, b: topologies.model.Node) -> float:
    assert a.x is not None
    assert a.y is not None
    assert b.x is not None
    assert b.y is not None
    lat_a, lat_b = math.radians(a.y), math.radians(b.y)
    half = math.sin((lat_b - lat_a) / 2) ** 2
    half += math.cos(lat_a) * math.cos(lat_b) * math.sin(math.radians(b.x - a.x) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))


@pytest.fixture(scope="module")
def wan() -> topologies.Network:
    return topologies.load("wan12")


def test_delays_are_those_of_light_in_glass_along_a_detour(wan: topologies.Network) -> None:
    nodes = {node.name: node for node in wan.nodes}
    backbone = [link for link in wan.links if not set(link.ends) & set(wan.hosts)]
    assert len(backbone) == 18
    for link in backbone:
        length_km = great_circle_km(nodes[link.ends[0]], nodes[link.ends[1]])
        assert link.delay_us == pytest.approx(DETOUR * length_km / GLASS_KM_PER_US, abs=6), link.name


def test_each_city_has_a_host_and_survives_the_loss_of_a_link(wan: topologies.Network) -> None:
    assert len(wan.switches) == 12
    assert wan.hosts == tuple(f"h{city}" for city in wan.switches)
    graph = nx.Graph(link.ends for link in wan.links).subgraph(wan.switches)
    assert nx.is_k_edge_connected(graph, 2)
