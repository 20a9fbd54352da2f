"""Each built-in scenario file against its network: ends, given paths, capacity, and reason to split."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest

import topologies
from experiments.model import scenario
from experiments.model.scenario import ETHERNET_BYTES, IP_BYTES, TCP_BYTES, Scenario, check_network

CROSSINGS_PER_S = 30_000
"""What a machine of two cores carries, in packets through switches."""
IDENTIFIER_BYTES = 8
SPLIT = {"ring", "fat-tree", "wan"}
FILES = sorted(scenario.available())


def network_of(loaded: Scenario) -> topologies.Network:
    return topologies.load(loaded.network, variant=loaded.variant)


def graph_of(loaded: Scenario) -> nx.DiGraph:
    graph = nx.DiGraph()
    for arc in network_of(loaded).arcs():
        graph.add_edge(arc.tail, arc.head, rate_bps=arc.rate_bps, delay_s=arc.delay_s)
    return graph


def wire_factor(loaded: Scenario, header_bytes: int = 0) -> float:
    """Bits on the wire for each bit of goodput."""
    return loaded.packet_bytes / (loaded.packet_bytes - loaded.overhead_bytes - header_bytes)


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_named_as_what_it_holds_and_its_flows_end_at_hosts(name: str) -> None:
    loaded = scenario.load(name)
    assert loaded.name == name
    assert loaded.description
    assert all(case.description for case in loaded.cases.values())
    check_network(loaded, list(loaded.cases), network_of(loaded))
    assert loaded.overhead_bytes >= ETHERNET_BYTES + IP_BYTES[4] + TCP_BYTES


@pytest.mark.parametrize("name", FILES)
def test_given_paths_exist_and_fit_together(name: str) -> None:
    loaded = scenario.load(name)
    graph = graph_of(loaded)
    for case in loaded.cases.values():
        for given in {given for flow in case.flows.values() for given in flow.given}:
            for protocol in ("ospf", "mstcp"):
                load = dict.fromkeys(graph.edges, 0.0)
                for path in itertools.chain.from_iterable(
                    flow.given_paths(given, protocol) for flow in case.flows.values() if given in flow.given
                ):
                    for hop in itertools.pairwise(path.path):
                        assert hop in graph.edges, f"{name}: there is no link {hop}"
                        load[hop] += path.rate_bps * wire_factor(loaded)
                # The paper rounds to 10 kbit/s.
                assert all(load[hop] <= graph.edges[hop]["rate_bps"] + 20e3 for hop in load)


@pytest.mark.parametrize("name", sorted(SPLIT))
def test_the_first_case_asks_for_more_than_any_path_and_less_than_all(name: str) -> None:
    loaded = scenario.load(name)
    graph = graph_of(loaded)
    (flow,) = loaded.case("1").flows.values()
    paths = nx.all_simple_paths(graph, flow.src, flow.dst)
    widest = max(min(graph.edges[hop]["rate_bps"] for hop in itertools.pairwise(path)) for path in paths)
    cut = nx.maximum_flow_value(graph, flow.src, flow.dst, capacity="rate_bps")
    asked = flow.requested_for("mstcp")
    assert asked * wire_factor(loaded) > widest
    assert asked * wire_factor(loaded, IDENTIFIER_BYTES) < cut


@pytest.mark.parametrize("name", sorted(SPLIT))
def test_flows_that_follow_the_shortest_paths_do_not_get_what_they_ask_for(name: str) -> None:
    loaded = scenario.load(name)
    graph = graph_of(loaded)
    for case in loaded.cases.values():
        load = dict.fromkeys(graph.edges, 0.0)
        for flow in case.flows.values():
            path = nx.shortest_path(graph, flow.src, flow.dst, weight="delay_s")
            for hop in itertools.pairwise(path):
                load[hop] += flow.requested_for("ospf") * wire_factor(loaded)
        assert any(load[hop] > graph.edges[hop]["rate_bps"] for hop in load)


@pytest.mark.parametrize("name", sorted(SPLIT))
def test_two_cores_carry_every_case(name: str) -> None:
    loaded = scenario.load(name)
    graph = graph_of(loaded)
    payload_bits = 8 * (loaded.packet_bytes - loaded.overhead_bytes)
    for case in loaded.cases.values():
        crossings = 0.0
        for flow in case.flows.values():
            # Longer ways than the shortest by two switches, an acknowledgement for every packet.
            switches = len(nx.shortest_path(graph, flow.src, flow.dst, weight="delay_s")) - 2 + 2
            crossings += 2 * switches * flow.requested_for("mstcp") / payload_bits
        assert crossings <= CROSSINGS_PER_S
