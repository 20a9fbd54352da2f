"""Files that are odd but valid in their format: encodings, comments, numbers, defaults, line ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.errors import InvalidTopology
from topologies.routable import Routable, load_routable

GML = """graph [
  node [ id 0 label "Malmö" ]
  node [ id 1 label "Skövde" ]
  edge [ source 0 target 1 capacity 2000000000 ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="{encoding}"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="r" for="edge" attr.name="capacity" attr.type="double"/>
  <key id="n" for="node" attr.name="label" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="n">Malmö</data></node>
    <node id="1"><data key="n">Skövde</data></node>
    <edge source="0" target="1"><data key="r">2e9</data></edge>
  </graph>
</graphml>
"""
NODE_LINK = """{"directed": false, "nodes": [{"id": 0, "label": "Malmö"}, {"id": 1, "label": "Skövde"}],
 "links": [{"source": 0, "target": 1, "capacity": 2e9}]}
"""
NATIVE = """?SNDlib native format; type: network; version: 1.0
# network sweden
META (
  unit = MBITPERSEC
)
NODES (
  Malmö ( 13.0 55.6 )
  Skövde ( 13.8 58.4 )
)
LINKS (
  L1 ( Malmö Skövde ) 2000.00 0.00 0.00 0.00 ( )
)
"""
XML = """<?xml version="1.0" encoding="{encoding}"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <networkStructure>
  <nodes coordinatesType="geographical">
   <node id="Malmö"><coordinates><x>13.0</x><y>55.6</y></coordinates></node>
   <node id="Skövde"><coordinates><x>13.8</x><y>58.4</y></coordinates></node>
  </nodes>
  <links>
   <link id="L1"><source>Malmö</source><target>Skövde</target>
    <preInstalledModule><capacity>2000.0</capacity><cost>0</cost></preInstalledModule></link>
  </links>
 </networkStructure>
</network>
"""
REPETITA = """NODES 2
label x y
0_Malmö 13.0 55.6
1_Skövde 13.8 58.4

EDGES 2
label src dest weight bw delay
e0 0 1 1 2000000 1000
e1 1 0 1 2000000 1000
"""
DOT = """graph net {
  Malmö -- Skövde [capacity="2Gbps"];
}
"""
EDGES = "Malmö Skövde 2G\n"
ONE_OF_EACH = {
    "net.gml": GML,
    "net.graphml": GRAPHML,
    "net.json": NODE_LINK,
    "native.txt": NATIVE,
    "net.xml": XML,
    "net.graph": REPETITA,
    "net.dot": DOT,
    "net.edges": EDGES,
}


def read(tmp_path: Path, name: str, content: str | bytes) -> Routable:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_routable(path)


def rates(routable: Routable) -> dict[tuple[str, str], float]:
    return {(arc.tail, arc.head): arc.rate_bps for arc in routable.network.arcs()}


BOTH_WAYS = {("Malmo", "Skovde"): 2e9, ("Skovde", "Malmo"): 2e9}


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        (name, encoding)
        for name in ONE_OF_EACH
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1")
        if (name, encoding) != ("net.json", "latin-1")  # JSON is Unicode (RFC 8259)
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_do_not_matter(tmp_path: Path, name: str, encoding: str, end: str) -> None:
    declared = {"utf-8-sig": "UTF-8", "latin-1": "ISO-8859-1"}.get(encoding, encoding.upper())
    text = ONE_OF_EACH[name].replace("{encoding}", declared).replace("\n", end)
    routable = read(tmp_path, name, text.encode(encoding))
    assert rates(routable) == BOTH_WAYS


@pytest.mark.parametrize("name", ["net.dot", "net.edges", "net.graph"])
def test_names_that_differ_beyond_ascii_stay_apart(tmp_path: Path, name: str) -> None:
    text = ONE_OF_EACH[name].replace("Skövde", "Malmå")
    assert len(read(tmp_path, name, text.encode("latin-1")).network.switches) == 2


def changed(name: str, *replaced: tuple[str, str]) -> str:
    text = ONE_OF_EACH[name].replace("{encoding}", "UTF-8")
    for before, after in replaced:
        assert before in text
        text = text.replace(before, after, 1)
    return text


KEY = '<key id="r" for="edge" attr.name="capacity" attr.type="double"/>'
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
RATE = '<data key="r">2e9</data>'
ODD = [
    ("net.gml", [("graph [", "# a graph [ of two\nCreator \"a graph [ x ]\"\ngraph [")]),
    ("net.gml", [("2000000000", "2e9")]),
    ("net.gml", [("2000000000", "2.0E+9")]),
    ("net.gml", [("graph [", "graph [ multigraph 0 directed 0")]),
    ("net.gml", [("id 0", 'id "0"'), ("source 0", 'source "0"')]),
    ("net.gml", [("Malmö", "Malm&#246;"), ("Skövde", "Sk&ouml;vde")]),
    ("net.gml", [('label "Malmö"', 'label "Malmö" label "Malmö"')]),
    ("net.graphml", [("<graph ", "<!-- <edge source='x'/> -->\n<graph ")]),
    ("net.graphml", [('"double"/>', '"double"><default>2e9</default></key>'), (RATE, "")]),
    ("net.graphml", [('for="edge"', 'for="all"')]),
    ("net.graphml", [('attr.name="label" attr.type="string"', 'attr.name="label"')]),
    ("net.graphml", [("2e9", "<![CDATA[ 2e9 ]]>")]),
    ("net.graphml", [('<node id="0">', '<desc>two</desc><node id="0"><port name="p"/>')]),
    ("net.graphml", [('source="0"', 'sourceport="p" source="0"')]),
    ("net.graphml", [(RATE, RATE + '<data key="w"/>'), (KEY, WEIGHT + KEY)]),
    ("net.graphml", [(KEY, KEY.replace("double", "long")), ("2e9", " 2000000000 ")]),
    ("net.json", [('"id": 0,', '"id": 0.0,')]),
    ("net.json", [('"capacity": 2e9', '"capacity": 2e9, "capacity": 2000000000')]),
    ("native.txt", [("META (", "META (\n  # comment ( with a parenthesis")]),
    ("native.txt", [("0.00 ( )", "0.00 ( ) # laid in 1999 (")]),
    ("native.txt", [("2000.00", "2.0e+3")]),
    ("native.txt", [("unit = MBITPERSEC", "unit=MBITPERSEC")]),
    ("net.xml", [("2000.0", " 2.0E3 ")]),
    ("net.xml", [("<links>", "<!-- <link id='L0'/> --><links>")]),
    ("net.graph", [("NODES 2", "NODES\t2"), ("2000000 1000", "2e6 1e3")]),
    ("net.dot", [("graph net", "// a digraph\n/* digraph { */ graph net")]),
    ("net.dot", [("graph net", "strict graph \"net\"")]),
    ("net.dot", [("graph net", "Graph")]),
    ("net.dot", [("Malmö --", 'Malmö [URL="http://a/b", comment="# no"] Malmö --')]),
    ("net.dot", [('[capacity="2Gbps"]', ""), ("{", '{ edge [capacity="2Gbps"]')]),
    ("net.dot", [("Malmö --", "Malmö [longitude=-13.0, latitude=-.5]; Malmö --")]),
    ("net.dot", [("Malmö --", "Malmö:east --"), ("Skövde [", 'Skövde:"p":nw [')]),
    ("net.dot", [('"2Gbps"', "2e9")]),
    ("net.edges", [("Malmö", "# comment\n\n  Malmö"), ("2G", "2G  # fibre")]),
    ("net.edges", [(" ", "\t"), (" 2G", "\t2e9")]),
    ("net.edges", [(" ", ","), (" 2G", ",2 Gbit/s")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "replaced"), ODD)
def test_odd_but_valid_files_are_read_as_the_plain_one(
    tmp_path: Path, name: str, replaced: list[tuple[str, str]]
) -> None:
    assert rates(read(tmp_path, name, changed(name, *replaced))) == BOTH_WAYS


@pytest.mark.parametrize("opening", ["DiGraph", "\ufeffdigraph net", "strict DIGRAPH"])
def test_a_directed_graph_in_dot_is_one_however_it_is_written(tmp_path: Path, opening: str) -> None:
    text = changed("net.dot", ("graph net", opening), ("--", "->"))
    assert rates(read(tmp_path, "net.dot", text)) == {("Malmo", "Skovde"): 2e9}


def test_a_number_sign_inside_a_name_begins_no_comment(tmp_path: Path) -> None:
    assert len(read(tmp_path, "net.edges", "a r#1\nr#1 r#2\n").network.switches) == 3


@pytest.mark.parametrize(
    ("name", "replaced", "sentence"),
    [
        ("net.json", [("2e9", '2e9, "capacity": 3e9')], "capacity"),
        ("net.json", [("2e9", "NaN")], "finite"),
        ("net.json", [("2e9", "Infinity")], "finite"),
        ("net.json", [("false", '"false"')], "directed"),
        ("net.gml", [("2000000000", "2e9 capacity 3e9")], "capacity"),
        ("net.edges", [("Malmö", "source,target\nMalmö")], "line 1"),
        ("native.txt", [("LINKS (", "LINKS ( )\nLINKS (")], "LINKS"),
    ],
)
def test_contradictions_are_refused(
    tmp_path: Path, name: str, replaced: list[tuple[str, str]], sentence: str
) -> None:
    with pytest.raises(InvalidTopology, match=sentence):
        read(tmp_path, name, changed(name, *replaced))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("net.gml", "graph [ ]"),
        ("net.graphml", '<graphml><graph edgedefault="undirected"/></graphml>'),
        ("net.graphml", "<graphml/>"),
        ("net.json", '{"directed": false, "nodes": [], "links": []}'),
        ("net.txt", "?SNDlib native format\nNODES ( )\nLINKS ( )\n"),
        ("net.xml", "<network><networkStructure/></network>"),
        ("net.graph", "NODES 0\nlabel x y\n\nEDGES 0\nlabel src dest weight bw delay\n"),
        ("net.dot", "graph { }"),
        ("net.edges", "# nothing\n"),
        ("net.edges", ""),
    ],
)
def test_an_empty_network_is_refused_in_a_sentence(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(InvalidTopology):
        read(tmp_path, name, content)
