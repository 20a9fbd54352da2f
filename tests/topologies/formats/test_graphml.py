"""GraphML as the Topology Zoo and networkx write it."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

import topologies
from topologies.errors import InvalidTopology
from topologies.model import Network
from topologies.routable import load_routable

ZOO = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d0" />
  <key attr.name="label" attr.type="string" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d3" />
  <key attr.name="Network" attr.type="string" for="graph" id="d4" />
  <graph edgedefault="undirected">
    <data key="d4">Three cities</data>
    <node id="0"><data key="d1">Southampton</data>
      <data key="d2">-1.40428</data><data key="d3">50.90395</data></node>
    <node id="1"><data key="d1">Z&#252;rich (HB)</data>
      <data key="d2">8.55</data><data key="d3">47.36667</data></node>
    <node id="2"><data key="d1">?</data></node>
    <node id="3"><data key="d1">Southampton</data></node>
    <edge source="0" target="1"><data key="d0">10000000000.0</data></edge>
    <edge source="1" target="0"><data key="d0">1000000000.0</data></edge>
    <edge source="1" target="2" />
    <edge source="2" target="3" />
    <edge source="3" target="3" />
  </graph>
</graphml>
"""


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    path = tmp_path / "3 cities.graphml"
    path.write_text(ZOO, encoding="utf-8")
    return path


def test_zoo_network(zoo: Path) -> None:
    network = topologies.load(zoo)
    assert network.name == "net3_cities"
    assert network.switches == ("Southampton", "Zurich_HB", "n2", "Southampton_2")
    assert network.hosts == ("h_Southampton", "h_Zurich_HB", "h_n2", "h_Southampton_2")
    assert network.description == "Three cities; 1 parallel edges merged; 1 self loops left out"
    assert network.link("Southampton-Zurich_HB").rate_bps == 11e9
    assert network.link("Zurich_HB-n2").rate_bps == 1e9
    assert network.link("Zurich_HB-n2").delay_us == 1000


def test_delay_is_that_of_the_great_circle(zoo: Path) -> None:
    """822 km by the haversine formula (checked with an independent calculator), at 199,862 km/s."""
    assert topologies.load(zoo).link("Southampton-Zurich_HB").delay_us == pytest.approx(
        822e3 / 199.862, rel=0.01
    )


def test_without_hosts(zoo: Path) -> None:
    network = load_routable(zoo).network
    assert network.hosts == ()
    assert len(network.links) == 3


def test_networkx_network_with_our_attributes(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", rate_bps=5e6, delay_us=10.0)
    graph.add_edge("b", "a", rate_bps=5e6, delay_us=10.0)
    path = tmp_path / "net.graphml"
    nx.write_graphml(graph, path)
    network = topologies.load(path)
    assert [link.name for link in network.links] == ["h_a-a", "h_b-b", "a-b"]
    assert network.link("a-b").rate_bps == 5e6
    assert network.description == "net"


def problem(path: Path, text: str) -> InvalidTopology:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidTopology) as caught:
        topologies.load(path)
    assert caught.value.file == str(path)
    return caught.value


def test_what_is_wrong_is_named(zoo: Path) -> None:
    apart = problem(zoo, ZOO.replace('<edge source="2" target="3" />', ""))
    said = "the switches are not connected: Southampton_2 cannot be reached from Southampton; "
    assert apart.reason.startswith(said)
    zero = problem(zoo, ZOO.replace("10000000000.0", "-1000000000.0"))
    assert zero.place == "edge '0'-'1' (line 16).rate_bps"
    text = ZOO.replace('"LinkSpeedRaw" attr.type="double"', '"LinkSpeedRaw" attr.type="string"')
    assert "'fast' is not a number" in str(problem(zoo, text.replace("10000000000.0", "fast")))
    assert "not GraphML" in str(problem(zoo, "<graphml"))
    assert "not GraphML" in str(problem(zoo, "<html></html>"))
    empty = nx.Graph()
    nx.write_graphml(empty, zoo)
    assert "no nodes" in str(problem(zoo, zoo.read_text()))


def test_every_link_has_its_names(zoo: Path) -> None:
    network: Network = topologies.load(zoo)
    topologies.check_network(network)
    assert set(topologies.positions(network)) == {node.name for node in network.nodes}
