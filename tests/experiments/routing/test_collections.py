"""Demands as public collections have them: by number, in routing units, with limits, of a node to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import ScenarioError
from experiments.routing.case import RoutingCase, make_case
from tests.fakes.lab import Lab
from tests.topologies.formats.test_collections import REPETITA
from topologies.errors import InvalidTopology
from topologies.routable import load_routable

SNDLIB = """?SNDlib native format; type: network; version: 1.0
META (
  unit = BITSPERSEC
)
NODES ( a ( 1 2 ) b ( 2 3 ) c ( 4 5 ) )
LINKS ( L1 ( a b ) 100 0 0 0 ( ) L2 ( b c ) 100 0 0 0 ( ) )
DEMANDS ( D1 ( a b ) 4 10 UNLIMITED D2 ( a c ) 1 5 2 )
"""


def case(tmp_path: Path, network: tuple[str, str], demands: tuple[str, str]) -> RoutingCase:
    for name, text in (network, demands):
        (tmp_path / name).write_text(text)
    routable = load_routable(tmp_path / network[0])
    return make_case(routable, str(tmp_path / demands[0]), flows=None, load=None, seed=1)


def test_numbers_in_repetitas_demands_are_indices_whatever_the_labels_are(tmp_path: Path) -> None:
    """Node 0 is labelled 1 here, and node 1 is labelled 0."""
    demands = "DEMANDS 1\nlabel src dest bw\nd 0 1 5\n"
    [demand] = case(tmp_path, ("x.graph", REPETITA), ("x.demands", demands)).problem().demands
    keys = load_routable(tmp_path / "x.graph").nodes.keys
    assert (demand.source, demand.destination, demand.rate_bps) == (keys["0"], keys["1"], 5e3)
    with pytest.raises(ScenarioError, match="line 3"):
        case(tmp_path, ("x.graph", REPETITA), ("x.demands", demands.replace("0 1 5", "0 7 5")))


def test_a_demand_at_a_node_without_edges_gets_nothing(tmp_path: Path) -> None:
    network = REPETITA.replace("NODES 2", "NODES 3").replace("1_0 0 0", "1_0 0 0\n2_far 0 0")
    demands = "DEMANDS 1\nlabel src dest bw\nd 0 2 5\n"
    assert case(tmp_path, ("x.graph", network), ("x.demands", demands)).problem().isolated == {"far"}


def test_sndlibs_routing_unit_counts_and_limits_on_hops_are_told(tmp_path: Path) -> None:
    read = case(tmp_path, ("x.txt", SNDLIB), ("y.txt", SNDLIB))
    assert {demand.id: demand.rate_bps for demand in read.problem().demands} == {"D1": 40.0, "D2": 5.0}
    assert any(note.startswith("1 demands limit the links of a path") for note in read.notes)
    assert {edge.capacity_bps for edge in read.problem().edges} == {100.0}


def test_demands_of_a_node_to_itself_are_left_out(tmp_path: Path) -> None:
    table = "source,destination,rate_bps\na,b,5\na,a,7\n"
    read = case(tmp_path, ("x.txt", SNDLIB), ("y.csv", table))
    assert [demand.rate_bps for demand in read.problem().demands] == [5.0]
    assert "1 demands end where they begin, and are left out" in read.notes


def test_the_utilisation_is_told_where_it_is_the_objective(tmp_path: Path, lab: Lab) -> None:
    (tmp_path / "x.txt").write_text(SNDLIB)
    file = str(tmp_path / "x.txt")
    document = lab.json("solve", file, "--demands", file, "--objective", "min_max_utilisation")
    assert document["max_utilisation"] == pytest.approx(0.45)


DOT = """/* of YATES */
digraph topology {
  node [shape=box]; rankdir = LR;
  h1 [type="host", mac="00:00"]; h2 [type=host]
  s1 [type="switch", id=1]; s2 [type="switch"]; "s-3";
  h1 -> s1 [capacity="10Gbps"]; s1 -> h1 [capacity="10Gbps"]; h2 -> s2; s2 -> h2;
  s1 -> s2 [capacity="1Gbps", delay="2 ms"];  // both directions
  s2 -> s1 [capacity="2Gbps", delay="2 ms"];
  s2 -> "s-3" -> s1 [capacity="4Gbps"];
}
"""


def test_a_network_and_a_series_of_yates(tmp_path: Path) -> None:
    network = load_routable(_written(tmp_path, "x.dot", DOT))
    assert network.network.switches == ("s1", "s2", "s_3")
    rates = {f"{arc.tail}->{arc.head}": arc.rate_bps for arc in network.network.arcs()}
    assert rates == {"s1->s2": 1e9, "s2->s1": 2e9, "s2->s_3": 4e9, "s_3->s1": 4e9}
    assert "2 hosts stand for the switches that they hang on" in network.notes
    read = case(tmp_path, ("x.dot", DOT), ("y.txt", "0 5 0 7 0 0 0 0 0\n0 6 0 7 0 0 0 0 0\n"))
    asked = {(demand.source, demand.destination): demand.rate_bps for demand in read.problem().demands}
    assert asked == {("s1", "s2"): 5.0, ("s2", "s1"): 7.0}
    assert "matrix 1 of 2 is read (--matrix)" in read.notes
    series = str(tmp_path / "y.txt")
    second = make_case(network, series, flows=None, load=None, seed=1, matrix=2).problem().demands
    assert [(d.source, d.destination, d.rate_bps) for d in second if d.rate_bps] == [
        ("s1", "s2", 6.0),
        ("s2", "s1", 7.0),
    ]
    with pytest.raises(ScenarioError, match="there is no matrix 3"):
        make_case(network, series, flows=None, load=None, seed=1, matrix=3)
    by_host = case(tmp_path, ("x.dot", DOT), ("y.csv", "source,destination,rate_bps\nh1,h2,3\n"))
    assert [(d.source, d.destination) for d in by_host.problem().demands] == [("s1", "s2")]
    both_ways = load_routable(_written(tmp_path, "y.gv", 'graph { a -- b -- c [bw="1G"] }')).network
    assert [(link.name, link.one_way) for link in both_ways.links] == [("a-b", False), ("b-c", False)]
    for wrong in ("digraph {", "digraph { subgraph c { a -> b } }", "nothing"):
        with pytest.raises(InvalidTopology):
            load_routable(_written(tmp_path, "z.dot", wrong))


def _written(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name
