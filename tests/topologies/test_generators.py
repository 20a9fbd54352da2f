"""Properties of generated networks."""

from __future__ import annotations

import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from topologies.generators import fat_tree, line, ring, waxman
from topologies.model import Network


def graph(network: Network) -> nx.Graph:
    return nx.Graph([link.ends for link in network.links])


@given(st.integers(1, 40))
def test_line(n: int) -> None:
    network = line(n)
    assert (len(network.hosts), len(network.switches), len(network.links)) == (n, n, 2 * n - 1)
    assert nx.diameter(graph(network)) == n + 1 if n > 1 else True


@given(st.integers(3, 40))
def test_ring(n: int) -> None:
    network = ring(n)
    switches = graph(network).subgraph(network.switches)
    assert all(degree == 2 for _, degree in switches.degree)
    assert nx.is_connected(switches)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree(k: int) -> None:
    """Al-Fares et al., SIGCOMM 2008, section 3: (k/2)^2 paths between pods."""
    network = fat_tree(k)
    whole = graph(network)
    assert len(network.switches) == 5 * k * k // 4
    assert len(network.hosts) == k**3 // 4
    assert all(whole.degree(switch) == k for switch in network.switches)
    paths = list(nx.all_shortest_paths(whole, "h0_0_0", f"h{k - 1}_0_0"))
    assert len(paths) == (k // 2) ** 2
    assert len(paths[0]) == 7


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32), st.floats(0.05, 1), st.floats(0.05, 1))
def test_waxman_is_connected_and_repeats(n: int, seed: int, alpha: float, beta: float) -> None:
    network = waxman(n, seed, alpha, beta)
    assert network == waxman(n, seed, alpha, beta)
    assert nx.is_connected(graph(network))
    places = {node.name: (node.x, node.y) for node in network.nodes}
    for link in network.links:
        a, b = link.ends
        if a.startswith("s"):
            (ax, ay), (bx, by) = places[a], places[b]
            assert None not in (ax, ay, bx, by)
            length = math.dist((ax or 0, ay or 0), (bx or 0, by or 0))
            assert link.delay_us == pytest.approx(1000 * length, abs=0.001)


def test_waxman_depends_on_its_seed() -> None:
    assert waxman(12, seed=1) != waxman(12, seed=2)


def test_settings_of_a_specification() -> None:
    network = topologies.load(
        "ring:4:rate_bps=5e6:delay_us=2000:host_rate_bps=1e9:host_delay_us=7:queue_packets=9"
    )
    between, host = network.link("s1-s2"), network.link("h1-s1")
    assert (between.rate_bps, between.delay_us, between.queue_packets) == (5e6, 2000, 9)
    assert (host.rate_bps, host.delay_us, host.queue_packets) == (1e9, 7, 9)


@pytest.mark.parametrize("spec", ["butterfly", "line:1", "ring:5", "fat-tree:4", "waxman:9"])
def test_positions_are_those_of_the_network(spec: str) -> None:
    network = topologies.load(spec)
    assert topologies.positions(network) == {node.name: (node.x, node.y) for node in network.nodes}
    assert len(set(topologies.positions(network).values())) == len(network.nodes)


def without_places(network: Network, keep: tuple[str, ...] = ()) -> Network:
    nodes = tuple(n if n.name in keep else n.model_copy(update={"x": None, "y": None}) for n in network.nodes)
    return network.model_copy(update={"nodes": nodes})


@pytest.mark.parametrize("spec", ["butterfly", "line:250"])
def test_positions_without_coordinates(spec: str) -> None:
    network = without_places(topologies.load(spec))
    places = topologies.positions(network)
    assert list(places) == [node.name for node in network.nodes]
    assert len(set(places.values())) == len(places)
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in places.values())
    assert places == topologies.positions(network)


def test_positions_with_some_coordinates() -> None:
    network = without_places(topologies.load("butterfly"), keep=("S0", "S4", "S1", "S5"))
    places = topologies.positions(network)
    assert places["S0"] == (1, 2)
    assert len(set(places.values())) == len(places)
    assert 1 < places["S2"][0] < 4
    assert 1 < places["S3"][0] < 4
