"""What files say of directions, parallel edges and names, each in the smallest file that was read wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topologies.errors import InvalidTopology
from topologies.formats.assembly import Assembled
from topologies.formats.raw import ReadOptions
from topologies.load import foreign_file

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="c" for="edge" attr.name="capacity" attr.type="double"/>
<key id="d" for="edge" attr.name="capacity" attr.type="int"/>
<graph edgedefault="{default}"><node id="a"/><node id="b"/>{edges}</graph></graphml>
"""
SNDLIB = """Creator "sndlib.ext.generators.gml.GmlGenerator"
graph [
 directed 1
 node [ id 0 label "N0" ]
 node [ id 1 label "N1" ]
 node [ id 2 label "N2" ]
 {edges}
]
"""


def read(path: Path, content: str | bytes, options: ReadOptions | None = None) -> Assembled:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    file = foreign_file(str(path))
    assert file is not None
    return file.network(options or ReadOptions(), with_hosts=False)[1]


def graphml(folder: Path, edges: str, default: str = "directed") -> Assembled:
    return read(folder / "net.graphml", GRAPHML.format(default=default, edges=edges))


def edge(source: str, target: str, more: str = "", data: str = '<data key="c">1e9</data>') -> str:
    return f'<edge source="{source}" target="{target}" {more}>{data}</edge>'


def test_parallel_edges_of_one_id_are_all_there(tmp_path: Path) -> None:
    edges = (edge("a", "b", 'id="0"') + edge("b", "a", 'id="0"')) * 2
    (link,) = graphml(tmp_path, edges).network.links
    assert (link.rate_bps, link.reverse_rate_bps, link.one_way) == (2e9, None, False)


@pytest.mark.parametrize("namespace", [True, False])
def test_edges_of_both_kinds_in_one_graph(tmp_path: Path, namespace: bool) -> None:
    one_way = edge("a", "b", 'directed="true"', '<data key="c">4e9</data>')
    text = GRAPHML.format(default="undirected", edges=edge("b", "a") + one_way)
    text = text if namespace else text.replace(' xmlns="http://graphml.graphdrawing.org/xmlns"', "")
    (link,) = read(tmp_path / "net.graphml", text).network.links
    rates = dict(zip(link.ends, (link.rate_bps, link.reverse_rate_bps or link.rate_bps), strict=True))
    assert rates == {"a": 5e9, "b": 1e9}  # by the node that sends


def test_two_keys_of_one_name_have_to_agree(tmp_path: Path) -> None:
    both = '<data key="c">1e9</data><data key="d">{}</data>'
    (link,) = graphml(tmp_path, edge("a", "b", data=both.format("1000000000"))).network.links
    assert link.rate_bps == 1e9
    with pytest.raises(InvalidTopology, match="edge 'a'-'b': has 1e9 under key c and 2000000000 under d"):
        graphml(tmp_path, edge("a", "b", data=both.format("2000000000")))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    text = GRAPHML.format(default="directed", edges=edge("a", "b"))
    text = text.replace("<graphml", "<!DOCTYPE g [<!ENTITY x 'y'>]><graphml").replace("utf-8", encoding)
    with pytest.raises(InvalidTopology, match="declares XML entities"):
        read(tmp_path / "net.graphml", text.encode(encoding))
    plain = GRAPHML.format(default="directed", edges="<!-- <!ENTITY -->" + edge("a", "b"))
    assert read(tmp_path / "net.graphml", plain.replace("utf-8", encoding).encode(encoding)).network.links


def test_sndlibs_gml_has_each_link_once_and_means_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "net.gml"
    once = "edge [ source 0 target 1 ]\n edge [ source 1 target 2 ]"
    made = read(path, SNDLIB.format(edges=once))
    assert [link.one_way for link in made.network.links] == [False, False]
    assert any(note.startswith("links lead both ways: SNDlib writes each once") for note in made.notes)
    one_way = read(path, SNDLIB.format(edges=once), ReadOptions(both_ways=False))
    assert [link.one_way for link in one_way.network.links] == [True, True]
    twice = once + "\n edge [ source 1 target 0 ]"
    with pytest.raises(InvalidTopology, match=r"1.-.0.*has an opposite, as 2 of 3 links do|0.-.1.*as 2 of 3"):
        read(path, SNDLIB.format(edges=twice))
    others = read(path, SNDLIB.format(edges=once).replace("sndlib.ext", "another.ext"))
    assert [link.one_way for link in others.network.links] == [True, True]


def test_nodes_may_stand_far_behind_the_beginning_of_json(tmp_path: Path) -> None:
    document = {
        "graph": {"comment": "x" * 5000},
        "nodes": [{"id": 0}, {"id": 1}],
        "edges": [{"source": 0, "target": 1, "capacity": 1e9, "delay_us": 5}],
    }
    (link,) = read(tmp_path / "net.json", json.dumps(document)).network.links
    assert (link.rate_bps, link.delay_us) == (1e9, 5)


def test_topohub_has_the_length_of_each_link(tmp_path: Path) -> None:
    """Two cities of polska: 273.93 km, which the places give too."""
    places = {"Gdansk": [18.6, 54.2], "Warsaw": [21.0, 52.2]}
    document = {
        "graph": {"name": "polska", "stats": {"avg_link_len": 273.93}},
        "nodes": [{"id": name, "pos": place} for name, place in places.items()],
        "links": [{"source": "Gdansk", "target": "Warsaw", "dist": 273.93, "ecmp_fwd": {"org": 63.26}}],
    }
    path = tmp_path / "polska.json"
    made = read(path, json.dumps(document))
    (link,) = made.network.links
    assert link.delay_us == pytest.approx(273.93e3 / (299_792_458 * 2 / 3) * 1e6)
    assert "delays are those of the links' lengths (dist, in km, as TopoHub has it)" in made.notes
    assert any("not read: ecmp_fwd" in note for note in made.notes)
    document["graph"] = {}  # of another file, which does not say what its dist is
    (other,) = read(path, json.dumps(document)).network.links
    assert other.delay_us == 1000
    gml = "graph [ {} edge [ source 0 target 1 ] ]".format(
        " ".join(
            f"node [ id {index} Longitude {x} Latitude {y} ]" for index, (x, y) in enumerate(places.values())
        )
    )
    (same,) = read(tmp_path / "polska.gml", gml).network.links
    assert same.delay_us == pytest.approx(link.delay_us, rel=1e-3)


def test_what_is_no_switch_or_no_link_of_today_is_told(tmp_path: Path) -> None:
    gml = """graph [
      node [ id 0 label "A" Internal 1 hyperedge 0 ]
      node [ id 1 label "B" Internal 0 ]
      node [ id 2 label "C" Internal 1 hyperedge 1 ]
      edge [ source 0 target 1 LinkNote "Planned 2011" ]
      edge [ source 1 target 2 ]
    ]"""
    counted = [note for note in read(tmp_path / "zoo.gml", gml).notes if note.startswith("1 ")]
    assert len(counted) == 3
    for part, note in zip(("hyperedge", "Internal 0", "planned"), counted, strict=True):
        assert part in note
    plain = read(tmp_path / "zoo.gml", gml.replace("Internal 0", "Internal 1").replace("edge 1", "edge 0"))
    assert [note for note in plain.notes if note.startswith("1 ")] == [counted[2]]
