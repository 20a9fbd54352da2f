"""Networks in the formats of others: what is read, what is said of it, and the sentence for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

import topologies
from tests.paths import DATA
from topologies.check import check_symmetric
from topologies.errors import InvalidTopology
from topologies.formats.raw import ReadOptions
from topologies.model import Link, Network
from topologies.routable import NodeNames, UnknownNode, load_routable

FORMATS = DATA / "formats"


def arcs(network: Network) -> dict[tuple[str, str], tuple[float, float]]:
    """Rate in bit/s and delay in us of every direction."""
    return {(arc.tail, arc.head): (arc.rate_bps, round(arc.delay_s * 1e6, 6)) for arc in network.arcs()}


def test_graphml_keeps_the_rate_and_delay_of_each_direction() -> None:
    """Units stand with and without a space."""
    network = load_routable(FORMATS / "asymmetric.graphml").network
    assert arcs(network) == {("A", "B"): (10e9, 5000), ("B", "A"): (2.5e9, 7000), ("B", "C"): (4e9, 1000)}
    assert network.link("B-C").one_way
    assert [link.name for link in network.links] == ["A-B", "B-C"]


def test_what_is_not_symmetric_is_not_emulated() -> None:
    with pytest.raises(InvalidTopology, match=r"links\.B-C: leads one way only; .*`mstcp-lab solve` routes"):
        check_symmetric(load_routable(FORMATS / "asymmetric.graphml").network.model_copy(
            update={"links": load_routable(FORMATS / "asymmetric.graphml").network.links[1:]}
        ))  # fmt: skip
    with pytest.raises(InvalidTopology, match="A-B: differs between its two directions"):
        topologies.load(FORMATS / "asymmetric.graphml")


def test_a_link_says_its_directions_once() -> None:
    with pytest.raises(ValueError, match="one_way has no reverse"):
        Link(ends=("a", "b"), rate_bps=1, delay_us=1, one_way=True, reverse_rate_bps=2)
    plain = Link(ends=("a", "b"), rate_bps=1, delay_us=1)
    assert not {"one_way", "reverse_rate_bps", "reverse_delay_us"} & set(plain.model_dump())
    odd = Link(ends=("a", "b"), rate_bps=1, delay_us=1, reverse_rate_bps=2)
    assert Link.model_validate(odd.model_dump()) == odd


def test_gml_of_the_topology_zoo_with_parallel_edges() -> None:
    routable = load_routable(FORMATS / "cities.gml")
    network = routable.network
    assert network.switches == ("Paris", "Lyon", "Nice")
    assert network.link("Paris-Lyon").rate_bps == 12.5e9
    assert network.link("Lyon-Nice").rate_bps == 1e9
    assert network.description == "Three cities; 1 parallel edges merged"
    assert "attributes of edges that are not read: LinkLabel" in routable.notes
    assert "1 edges have no rate in the file: 1 Gbit/s each (--capacity)" in routable.notes


def test_the_network_of_teal() -> None:
    """Nodes are in another order in the file than their numbers, which matrices count by."""
    routable = load_routable(DATA / "teal" / "B4.json")
    assert len(routable.network.switches) == 12
    assert set(arcs(routable.network).values()) == {(5000.0, 1000.0)}
    assert len(list(routable.network.arcs())) == 38
    ends = routable.network.switches
    assert ends[3:5] == ("n4", "n3")
    assert routable.nodes.in_order(12, ends)[3:5] == ("n3", "n4")


def test_node_link_json_as_networkx_writes_it(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", capacity=3.0)
    graph.add_edge("b", "a", capacity="2 Mbit/s")
    graph.add_edge("b", "b", capacity=1.0)
    path = tmp_path / "net.json"
    for edges in ("links", "edges"):
        path.write_text(json.dumps(nx.node_link_data(graph, edges=edges)))
        routable = load_routable(path, ReadOptions(rate_unit_bps=1e6))
        assert arcs(routable.network) == {("a", "b"): (3e6, 1000), ("b", "a"): (2e6, 1000)}
        assert "1 self loops left out" in routable.notes


def test_a_dumped_network_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text(topologies.load("butterfly").model_dump_json())
    assert topologies.load(path) == topologies.load("butterfly")


@pytest.mark.parametrize("name", ["poland.txt", "poland.xml"])
def test_sndlib(name: str) -> None:
    routable = load_routable(FORMATS / name)
    rates = {link.name: link.rate_bps for link in routable.network.links}
    assert rates == {"Gdansk-Warsaw": 155e6, "Warsaw-Krakow": 155e6, "Gdansk-Krakow": 622e6}
    assert routable.rate_unit_bps == 1e6
    assert any("1 links have nothing installed" in note for note in routable.notes)
    assert any("modules that could be added are passed over on 1 links" in note for note in routable.notes)
    assert any("admissible paths are passed over" in note for note in routable.notes)
    # 271 km as the crow flies, some 1.36 ms in fibre.
    assert routable.network.link("Gdansk-Warsaw").delay_us == pytest.approx(271e3 / 199.862, rel=0.02)


def test_repetita() -> None:
    network = load_routable(FORMATS / "cities.graph").network
    assert arcs(network) == {
        ("Paris", "Lyon"): (9953280e3, 1913),
        ("Lyon", "Paris"): (9953280e3, 1913),
        ("Lyon", "Nice"): (2488320e3, 1500),
        ("Nice", "Lyon"): (622080e3, 1600),
        ("Nice", "Paris"): (155520e3, 4000),
    }


def refusal(path: Path, text: str, options: ReadOptions | None = None) -> str:
    path.write_text(text)
    with pytest.raises(InvalidTopology) as caught:
        load_routable(path, options)
    return str(caught.value)


def test_what_is_ambiguous_is_refused_with_its_line_and_a_remedy(tmp_path: Path) -> None:
    graphml = (FORMATS / "asymmetric.graphml").read_text()
    path = tmp_path / "a.graphml"
    assert "line 9" in refusal(path, graphml.replace("5ms", "5"))
    assert "'5' has no unit; write as 5 ms, or give --delay-unit" in refusal(
        path, graphml.replace("5ms", "5")
    )
    assert "counts bytes; rates are in bits" in refusal(path, graphml.replace("2.5Gbps", "2.5 GB/s"))
    native = (FORMATS / "poland.txt").read_text()
    path = tmp_path / "p.txt"
    modules = native.replace("( 155.00 156.00 )", "( 155.00 156.00 622.00 468.00 )")
    assert "line 26: link L2: nothing is installed, and there are 2 modules" in refusal(path, modules)
    assert "--capacity" in refusal(path, modules)
    path.write_text(modules)
    options = ReadOptions(default_rate_bps=1e9)
    assert load_routable(path, options).network.link("Warsaw-Krakow").rate_bps == 1e9
    some_opposite = native.replace("  L3 (", "  L4 ( Warsaw Gdansk ) 1.0 0.0 0.0 0.0 ( )\n  L3 (")
    assert "--links one-way or --links both-ways" in refusal(path, some_opposite)
    path.write_text(some_opposite)
    both = load_routable(path, ReadOptions(both_ways=True)).network
    assert both.link("Gdansk-Warsaw").rate_bps == 156e6
    gml = (FORMATS / "cities.gml").read_text()
    disagree = gml.replace("LinkSpeedRaw 10000000000.0", "LinkSpeedRaw 10000000000.0 capacity 5")
    text = refusal(tmp_path / "c.gml", disagree)
    assert "line 8" in text
    assert "linkspeedraw is 1e+10 bit/s and capacity is 5 bit/s" in text


@pytest.mark.parametrize(
    ("name", "before", "after", "sentence"),
    [
        ("poland.txt", "L1 ( Gdansk Warsaw )", "L1 ( Gdansk Warschau )", "line 25: link L1: there is no"),
        ("poland.txt", "155.00 0.00 0.00", "fast 0.00 0.00", "capacity: 'fast' is not a number"),
        ("poland.txt", "622.00 0.00 0.00", "UNLIMITED 0.00 0.00", "has an unlimited capacity"),
        ("poland.txt", "MBITPERSEC", "PARSECS", "'PARSECS' is no unit of rate"),
        ("poland.txt", "  Krakow ( 19.80 50.00 )\n)", "  Krakow ( 19.80 50.00 )\n", "is not closed"),
        ("poland.xml", "<target>Warsaw</target>", "<target>Paris</target>", "line 11: link L1: there is"),
        ("poland.xml", "<network ", "<!DOCTYPE a [<!ENTITY b 'c'>]><network ", "declares XML entities"),
        ("poland.xml", "</network>", "", "is not XML"),
        ("cities.graph", "NODES 3", "NODES 99", "line 1: says 99 NODES, but"),
        ("cities.graph", "edge_1 1 0", "edge_1 1 7", "line 10: edge edge_1: '7' is not the number"),
        ("cities.graph", "1 9953280 1913\nedge_1", "1 9953280\nedge_1", "line 9: has 5 words where"),
        ("cities.gml", "target 2", "target 5", "is not GML"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(name: str, before: str, after: str, sentence: str, tmp_path: Path) -> None:
    text = (FORMATS / name).read_text()
    assert before in text
    assert sentence in refusal(tmp_path / name, text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}, "links[0].target: there is no"),
        ({"directed": False, "nodes": [{"id": 1}, {"id": 1}], "links": []}, "already a node"),
        ({"directed": True, "nodes": [], "links": [], "edges": []}, "either links or edges"),
        ({"directed": True, "nodes": [3], "links": []}, "nodes[0]: has to be an object"),
        (
            {"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2, "capacity": -1}]},
            "links[0] ('1'-'2').rate_bps: must be a number above 0, not -1",
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_json_is_named(document: object, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(tmp_path / "x.json", json.dumps(document))


def test_a_file_of_no_known_format_is_named(tmp_path: Path) -> None:
    assert "is in no format of networks that is known (GraphML, GML" in refusal(tmp_path / "x.dat", "hello")


def test_names_may_be_those_of_the_file() -> None:
    nodes = load_routable(FORMATS / "cities.graph").nodes
    assert [nodes.resolve(text) for text in ("1", "Lyon")] == ["Lyon", "Lyon"]
    with pytest.raises(UnknownNode, match="did you mean Paris"):
        nodes.resolve("Pari")
    twins = NodeNames(("a", "b"), {"0": "a", "1": "b"}, {"x": ("a", "b")})
    with pytest.raises(UnknownNode, match="may be any of a, b"):
        twins.resolve("x")


def test_rows_of_a_matrix_that_could_mean_two_nodes_are_refused() -> None:
    nodes = NodeNames(("n2", "n1"), {"2": "n2", "1": "n1"})
    with pytest.raises(UnknownNode, match="give the matrix as CSV with the names"):
        nodes.in_order(2, ("n2", "n1"))
    with pytest.raises(UnknownNode, match="has 3 rows; the network has 2 nodes"):
        nodes.in_order(3, ("n2", "n1"))


def test_a_network_of_several_parts_can_be_routed_over_but_not_emulated(tmp_path: Path) -> None:
    path = tmp_path / "parts.graphml"
    nx.write_graphml(nx.Graph([("a", "b"), ("c", "d")]), path)
    assert any("several parts" in note for note in load_routable(path).notes)
    with pytest.raises(InvalidTopology, match="not connected"):
        topologies.load(path)
