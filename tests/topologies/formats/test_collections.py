"""What public collections hold: parallel links, several parts, planned links, scripts, units of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from gomr import from_network, solve

import topologies
from topologies.errors import InvalidTopology
from topologies.formats.naming import safe_name
from topologies.formats.raw import ReadOptions
from topologies.routable import Routable, load_routable

GML = """graph [ multigraph 1 directed {directed}
  node [ id 0 label "Moskva" ] node [ id 1 label "b" ] node [ id 2 label "lonely" ]
  {edges}
]"""


def edge(a: int, b: int, rate: str, delay_ms: float, more: str = "") -> str:
    return f'edge [ source {a} target {b} capacity "{rate}" delay "{delay_ms} ms" {more} ]'


def read(tmp_path: Path, name: str, text: str, **options: object) -> Routable:
    (tmp_path / name).write_text(text)
    return load_routable(tmp_path / name, ReadOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("directed", [0, 1])
def test_parallel_links_of_different_delays_stay_apart(tmp_path: Path, directed: int) -> None:
    edges = [edge(0, 1, "1G", 50), edge(0, 1, "2G", 1), edge(0, 1, "3G", 1)]
    edges += [edge(1, 0, "5G", 1), edge(1, 0, "1G", 50)] if directed else []
    text = GML.format(directed=directed, edges=" ".join(edges))
    routable = read(tmp_path, "net.gml", text)
    assert [(link.name, link.rate_bps, link.delay_us) for link in routable.network.links] == [
        ("Moskva-b", 1e9, 50_000),
        ("Moskva-b#1", 5e9, 1000),
    ]
    assert {"1 parallel edges merged", "1 parallel edges of other delays kept apart"} <= set(routable.notes)
    solution = solve(routable.network, {("Moskva", "b"): 5.5e9, ("b", "Moskva"): 9e9})
    assert [(path.edges, path.rate_bps) for path in solution.paths["Moskva->b"]] == [
        (("Moskva->b#1",), 5e9),
        (("Moskva->b",), 0.5e9),
    ]
    assert solution.rate_bps("b->Moskva") == 6e9
    assert all(link.delay_us in (1000, 50_000) and link.is_symmetric for link in routable.network.links)
    with pytest.raises(InvalidTopology, match="FILE#largest-part"):
        topologies.load(tmp_path / "net.gml")
    # What is emulated has one link between two switches.
    emulated = topologies.load(f"{tmp_path / 'net.gml'}#largest-part")
    assert [link.name for link in emulated.links if not link.ends[0].startswith("h_")] == ["Moskva-b"]


def test_the_largest_part_and_nodes_without_links(tmp_path: Path) -> None:
    text = GML.format(directed=0, edges=edge(0, 1, "1G", 1))
    whole = read(tmp_path, "net.gml", text)
    assert from_network(whole.network, ()).isolated == {"lonely"}
    part = read(tmp_path, "net.gml", text, largest_part=True)
    assert part.network.switches == ("Moskva", "b")
    assert "1 nodes in 1 smaller parts are left out" in part.notes
    with pytest.raises(InvalidTopology, match="--largest-part"):
        load_routable("butterfly", ReadOptions(largest_part=True))


def test_planned_links_are_left_out_where_that_is_asked(tmp_path: Path) -> None:
    edges = edge(0, 1, "1G", 1) + edge(1, 2, "1G", 1, 'LinkNote "Planned for 2012"')
    text = GML.format(directed=0, edges=edges)
    assert any("--ignore-planned" in note for note in read(tmp_path, "net.gml", text).notes)
    without = read(tmp_path, "net.gml", text, ignore_planned=True)
    assert [link.name for link in without.network.links] == ["Moskva-b"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Москва", "Moskva"),
        ("Нижний Новгород", "Nizhniy_Novgorod"),
        ("Αθήνα", "Athina"),
        ("São Paulo", "Sao_Paulo"),
        ("Łódź", "Lodz"),
        ("Zürich", "Zurich"),
        ("東京", "n"),
        ("9th St.", "n9th_St"),
    ],
)
def test_names_in_any_script_become_names(label: str, name: str) -> None:
    assert safe_name(label, "n") == name


def test_a_script_that_is_not_transcribed_leaves_the_key_and_the_label_is_known(tmp_path: Path) -> None:
    text = 'graph [ node [ id 7 label "東京" ] node [ id 8 label "Москва" ] edge [ source 7 target 8 ] ]'
    routable = read(tmp_path, "net.gml", text)
    assert routable.network.switches == ("n7", "Moskva")
    assert routable.nodes.resolve("東京") == "n7"
    assert routable.nodes.resolve("Москва") == "Moskva"


REPETITA = """NODES 2
label x y
0_1 0 0
1_0 0 0

EDGES 2
label src dest weight bw delay
edge_0 0 1 1 1000 4
edge_1 1 0 1 1000 4
"""


@pytest.mark.parametrize(("name", "delay_us"), [("rf1221.graph", 4000), ("Abilene.graph", 4)])
def test_rocketfuel_delays_are_milliseconds(tmp_path: Path, name: str, delay_us: float) -> None:
    routable = read(tmp_path, name, REPETITA)
    assert routable.network.links[0].delay_us == delay_us
    assert any("--delay-unit" in note for note in routable.notes)
    assert read(tmp_path, name, REPETITA, delay_unit_us=7.0).network.links[0].delay_us == 28


def test_lists_of_edges(tmp_path: Path) -> None:
    routable = read(
        tmp_path, "net.edges", "# a comment\nParis Lyon 10G\nLyon,Nice,5\nNice Paris\n", rate_unit_bps=1e9
    )
    rates = {link.name: link.rate_bps for link in routable.network.links}
    assert rates == {"Paris-Lyon": 10e9, "Lyon-Nice": 5e9, "Nice-Paris": 1e9}
    caida = read(tmp_path, "20260101.as-rel.txt", "# source: x\n1|11537|0\n1|2|-1|bgp\n")
    assert [link.name for link in caida.network.links] == ["AS1-AS11537", "AS1-AS2"]
    assert any("who pays whom" in note for note in caida.notes)
    for name, text in (("net.edges", "Paris\n"), ("net.edges", "a b c\n"), ("x.txt", "1|2|0\n1;3\n")):
        with pytest.raises(InvalidTopology, match="line"):
            read(tmp_path, name, text)
