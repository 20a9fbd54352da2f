"""`mstcp-lab solve`: the document, the page, the folder and the sentences."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from experiments.routing.case import make_case
from experiments.routing.time_limit import TimeLimit
from tests.fakes.lab import Lab
from tests.paths import DATA
from topologies.routable import load_routable

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="l" />
  <key attr.name="Longitude" attr.type="double" for="node" id="x" />
  <key attr.name="Latitude" attr.type="double" for="node" id="y" />
  <graph edgedefault="undirected">
    <node id="0"><data key="l">Paris</data><data key="x">2.35</data><data key="y">48.85</data></node>
    <node id="1"><data key="l">Lyon</data><data key="x">4.83</data><data key="y">45.76</data></node>
    <node id="2"><data key="l">Nice</data><data key="x">7.27</data><data key="y">43.7</data></node>
    <node id="3"><data key="l">Rennes</data></node>
    <edge source="0" target="1" /><edge source="1" target="2" />
    <edge source="2" target="0" /><edge source="0" target="3" />
  </graph>
</graphml>
"""


@pytest.fixture
def france(tmp_path: Path) -> str:
    path = tmp_path / "france.graphml"
    path.write_text(GRAPHML, encoding="utf-8")
    return str(path)


def test_the_document_has_just_the_keys_of_the_contract(france: str, lab: Lab) -> None:
    asked = ("--demands", "gravity", "--flows", "30", "--load", "1.1", "--seed", "1")
    summary = lab.json("solve", france, *asked, "--events", "8")
    times = {"p50": 0, "p95": 0}
    shape = {
        "nodes": 4, "links": 4, "flows": 30, "engine": "native", "objective": "max_throughput_min_delay",
        "admitted_bps": 0, "requested_bps": 0, "cost_bps_s": 0, "paths": 0,
        "certificate": {"upper_bound_bps": 0, "gap": 0, "max_violation_bps": 0},
        "cpu_ms": {"build": 0, "solve": 0}, "events": {"flow_ms": times, "link_failure_ms": times},
    }  # fmt: skip

    def keys(node: Any) -> Any:
        return {key: keys(value) for key, value in node.items()} if isinstance(node, dict) else None

    assert keys(summary) == keys(shape)
    assert list(summary) == list(shape)
    assert {key: summary[key] for key in ("nodes", "links", "flows")} == {"nodes": 4, "links": 4, "flows": 30}
    assert summary["requested_bps"] / summary["admitted_bps"] == pytest.approx(1.1)
    assert summary["certificate"]["gap"] < 1e-9
    assert summary["certificate"]["upper_bound_bps"] == pytest.approx(summary["admitted_bps"])
    assert "events" not in lab.json("solve", france, *asked)


def test_the_engines_agree(france: str, lab: Lab) -> None:
    for objective in ("max_throughput_min_delay", "fair", "max_min", "min_max_utilisation", "even_split"):
        asked = (france, "--flows", "12", "--load", "1.3", "--objective", objective)
        ours, other = lab.json("solve", *asked), lab.json("solve", *asked, "--engine", "pulp")
        for key in ("admitted_bps", "requested_bps", "cost_bps_s"):
            assert ours[key] == pytest.approx(other[key], rel=1e-7), objective


@pytest.mark.parametrize("spec", ["butterfly", "ring:5", "waxman:8:seed=2"])
def test_any_network_serves(spec: str, lab: Lab) -> None:
    summary = lab.json("solve", spec, "--flows", "10", "--demands", "bimodal")
    assert summary["admitted_bps"] == pytest.approx(summary["requested_bps"])


def test_the_capacity_is_for_links_without_one(france: str, lab: Lab) -> None:
    default = lab.json("solve", france, "--flows", "10")
    tenfold = lab.json("solve", france, "--flows", "10", "--capacity", "10e9")
    assert tenfold["admitted_bps"] == pytest.approx(10 * default["admitted_bps"])


def test_the_folder_holds_what_was_found(france: str, tmp_path: Path, lab: Lab) -> None:
    out = tmp_path / "new" / "out"
    summary = lab.json("solve", france, "--flows", "20", "--load", "1.2", "--out", str(out))
    document = json.loads((out / "allocation.json").read_text())
    assert document["summary"] == json.loads((out / "summary.json").read_text()) == summary
    paths = [path for flow in document["flows"] for path in flow["paths"]]
    assert len(paths) == summary["paths"]
    assert math.fsum(path["rate_bps"] for path in paths) == pytest.approx(summary["admitted_bps"])
    for link in document["links"]:
        assert 0 <= link["load_bps"] <= link["capacity_bps"]
        over = (link["from"], link["to"])
        carried = math.fsum(
            p["rate_bps"] for p in paths if over in zip(p["nodes"], p["nodes"][1:], strict=False)
        )
        assert link["load_bps"] == pytest.approx(carried)
    rows = list(csv.DictReader((out / "paths.csv").read_text().splitlines()))
    assert {row["flow"] for row in rows} == {flow["flow"] for flow in document["flows"]}
    assert math.fsum(float(row["rate_bps"]) for row in rows) == pytest.approx(summary["admitted_bps"])
    flows = list(csv.DictReader((out / "flows.csv").read_text().splitlines()))
    assert math.fsum(float(row["admitted_bps"]) for row in flows) == pytest.approx(summary["admitted_bps"])
    links = list(csv.DictReader((out / "links.csv").read_text().splitlines()))
    assert max(float(row["utilisation"]) for row in links) == pytest.approx(1.0)
    assert (out / "network.png").read_bytes().startswith(b"\x89PNG")
    assert "Paris" in (out / "network.svg").read_text()


def test_the_page_names_bottlenecks_and_slowest_flows(france: str, lab: Lab) -> None:
    page = lab("solve", france, "--flows", "30", "--load", "1.25", "--events", "4")
    for text in ("4 nodes, 4 links; 30 flows (gravity, load 1.25, seed 1)", "(80.00 %)", "Bottlenecks",
                 "Slowest flows", "4 flow events", "1 link failures"):  # fmt: skip
        assert text in page
    page = lab("solve", france, "--flows", "30", "--load", "0.5")
    assert "(100.00 %)" in page
    assert "Fullest links (none is full)" in page


def test_a_file_of_demands(france: str, tmp_path: Path, lab: Lab) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text("source,destination,rate_bps\nParis,Nice,1.5e9\nLyon,Rennes,3e8\n")
    as_is = lab.json("solve", france, "--demands", str(demands), "--events", "4")
    assert as_is["requested_bps"] == 1.8e9
    scaled = lab.json("solve", france, "--demands", str(demands), "--load", "1.5")
    assert scaled["requested_bps"] / scaled["admitted_bps"] == pytest.approx(1.5)
    assert lab.json("solve", france, "--demands", str(demands), "--max-paths", "1")["paths"] == 2


def test_what_arrives_has_the_scale_of_what_runs(france: str) -> None:
    case = make_case(load_routable(france), "uniform", flows=200, load=1.0, seed=1, max_paths=3)
    running = math.fsum(demand.rate_bps for demand in case.demands) / 200
    arriving = math.fsum(case.arriving(f"a{i}").rate_bps for i in range(200)) / 200
    assert arriving == pytest.approx(running, rel=0.2)
    assert case.arriving("x").max_paths == 3


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nowhere"], "there is no network 'nowhere'"),
        (["nowhere.graphml"], "nowhere.graphml: cannot be read"),
        (["butterfly", "--demands", "gravty"], "gravty: cannot be read: No such file"),
        (["butterfly", "--engine", "natve"], "no engine called 'natve'. Did you mean native?"),
        (["butterfly", "--objective", "fare"], "Did you mean fair?"),
        (["butterfly", "--flows", "0"], "'0' is not a whole number of at least 1"),
        (["butterfly", "--load", "nan"], "'nan' is not a number above 0"),
        (["butterfly", "--capacity", "1e9"], "--capacity: is for links of a GraphML file"),
        (["butterfly", "--load", "-1"], "'-1' is not a number above 0"),
        (["butterfly", "--load", "inf"], "'inf' is not a number above 0"),
        (["butterfly", "--time-limit", "nan"], "'nan' is not a number above 0"),
        (["butterfly", "--max-paths", "0"], "'0' is not a whole number of at least 1"),
        (["line:1"], "flows need two nodes"),
        (["line:0"], "line:0"),
    ],
)
def test_a_wrong_argument_gets_a_sentence_and_status_2(argv: list[str], sentence: str, lab: Lab) -> None:
    assert sentence in lab.refusal("solve", *argv)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("Paris,Nice,nan", "line 2: rate_bps: must be a finite number of at least 0, not nan"),
        ("Paris,Nice,inf", "line 2: rate_bps: must be a finite number of at least 0, not inf"),
        ("Paris,Nice,-inf", "line 2: rate_bps: must be a finite number of at least 0, not -inf"),
        ("Paris,Nice,-1", "line 2: rate_bps: must be a finite number of at least 0, not -1"),
        ("Paris,Marseille,1", "line 2: destination: flows cannot begin or end at 'Marseille'"),
        ("Parys,Nice,1", "line 2: source: flows cannot begin or end at 'Parys'; did you mean Paris?"),
    ],
)
def test_a_demand_that_makes_no_sense_is_named(
    row: str, sentence: str, france: str, tmp_path: Path, lab: Lab
) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text(f"source,destination,rate_bps\n{row}\n")
    assert sentence in lab.refusal("solve", france, "--demands", str(demands))


@pytest.mark.parametrize("rate", ["nan", "inf", "-1", "0", "fast"])
def test_a_link_without_a_usable_rate_is_named(rate: str, tmp_path: Path, lab: Lab) -> None:
    key = '<key attr.name="rate_bps" attr.type="string" for="edge" id="r" />'
    link = f'<edge source="0" target="3"><data key="r">{rate}</data></edge>'
    text = GRAPHML.replace("<key", f"{key}<key", 1).replace('<edge source="0" target="3" />', link)
    path = tmp_path / "france.graphml"
    path.write_text(text)
    told = lab.refusal("solve", path)
    assert "france.graphml: edge '0'-'3'" in told
    assert "rate_bps" in told


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        ("", "has no nodes"),
        ('<node id="0" />', "flows need two nodes"),
        ('<node id="0" /><node id="1" />', "connected"),
    ],
)
def test_an_empty_network_is_refused(graph: str, sentence: str, tmp_path: Path, lab: Lab) -> None:
    path = tmp_path / "empty.graphml"
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    path.write_text(f"{head}{graph}</graph></graphml>")
    assert sentence in lab.refusal("solve", path)


def test_the_time_limit_covers_the_load_too(lab: Lab) -> None:
    argv = ["solve", "waxman:40", "--flows", "300", "--load", "1.5", "--time-limit", "1e-9"]
    assert "time limit of 1e-09 s is used up before the demands are scaled" in lab.refusal(*argv, status=1)


def test_what_there_is_no_time_for_is_told_and_the_answer_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lab: Lab
) -> None:
    seconds = itertools.count()  # each look at the clock costs one
    monkeypatch.setattr(TimeLimit.__init__, "__defaults__", (lambda: float(next(seconds)),))
    asked = ("--flows", "20", "--events", "50", "--failures", "links", "--time-limit", "15")
    document = lab.json("solve", "waxman:12:seed=3", *asked, "--out", tmp_path)
    assert document["certificate"]["gap"] < 1e-9
    assert "failures" not in document
    assert re.search(r"the time was up after \d+ of 50 flow events", lab.err)
    assert "the time was up before the failures could be surveyed" in lab.err
    assert "the time was up after the backups of 0 of" in lab.err
    assert (tmp_path / "solution.html").exists()


def test_the_page_shows_the_map_and_the_starved_flows_first(france: str, tmp_path: Path, lab: Lab) -> None:
    asked = ("--flows", "30", "--load", "2", "--failures", "all", "--out", str(tmp_path))
    summary = lab.json("solve", france, *asked)
    page = (tmp_path / "solution.html").read_text()
    flows = page[page.index('id="flows"') : page.index('id="links"')]
    shares = [float(text) for text in re.findall(r"<td>(\d+\.\d)</td>", flows)]
    assert shares == sorted(shares)
    assert len(shares) == 30
    for text in ("<svg", "Utilisation of the links", "Failures, the worst first", "Rennes", "links.csv"):
        assert text in page
    assert "<script" not in page
    failures = list(csv.DictReader((tmp_path / "failures.csv").read_text().splitlines()))
    assert len(failures) == summary["failures"]["surveyed"] == 4 + 4
    assert failures[0]["name"] == summary["failures"]["worst"][0]["name"]
    assert float(failures[0]["lost_bps"]) == max(float(row["lost_bps"]) for row in failures)
    backups = list(csv.DictReader((tmp_path / "backups.csv").read_text().splitlines()))
    assert len(backups) == summary["paths"]
    # Rennes hangs on one link, so paths to it share that one with their backups.
    assert all(("Rennes" in row["path"]) == bool(row["shared_links"]) for row in backups)


def test_all_pairs_are_one_demand_between_each_ordered_pair(france: str, lab: Lab) -> None:
    summary = lab.json("solve", france, "--demands", "all-pairs", "--load", "0.9")
    assert summary["flows"] == 4 * 3
    assert summary["admitted_bps"] == pytest.approx(summary["requested_bps"])
    assert summary["certificate"]["gap"] < 1e-9
    case = make_case(load_routable(france), "all-pairs", flows=None, load=0.9, seed=1)
    pairs = {(demand.source, demand.destination) for demand in case.demands}
    assert len(pairs) == 12
    rates = {(demand.source, demand.destination): demand.rate_bps for demand in case.demands}
    # Gravity: the rate of a pair is the product of two masses, so cross ratios are 1 and both ways are alike.
    assert rates["Paris", "Lyon"] * rates["Nice", "Rennes"] == pytest.approx(
        rates["Paris", "Nice"] * rates["Lyon", "Rennes"]
    )
    assert rates["Paris", "Lyon"] == rates["Lyon", "Paris"]
    assert "there are 12 pairs of nodes" in lab.refusal(
        "solve", france, "--demands", "all-pairs", "--flows", "3"
    )


def test_each_direction_of_an_asymmetric_network_carries_what_it_can(tmp_path: Path, lab: Lab) -> None:
    """From A 10 Gbit/s lead to B and 4 on to C; 2.5 lead back to A, nothing from C."""
    network = DATA / "formats" / "asymmetric.graphml"
    demands = tmp_path / "demands.json"
    demands.write_text('{"A": {"C": "20Gbps", "B": "20Gbps"}, "B": {"A": "20 Gbit/s"}, "C": {"A": "1G"}}')
    summary = lab.json("solve", str(network), "--demands", str(demands), "--out", str(tmp_path))
    assert summary["admitted_bps"] == pytest.approx(10e9 + 2.5e9)
    flows = {
        (row["source"], row["destination"]): float(row["admitted_bps"]) for row in read(tmp_path, "flows.csv")
    }
    assert flows["B", "A"] == pytest.approx(2.5e9)
    assert flows["C", "A"] == 0.0
    loads = {(row["from"], row["to"]): float(row["capacity_bps"]) for row in read(tmp_path, "links.csv")}
    assert loads == {("A", "B"): 10e9, ("B", "A"): 2.5e9, ("B", "C"): 4e9}


def read(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / name).read_text().splitlines()))


def test_a_demand_of_nothing_is_counted_as_such(france: str, tmp_path: Path, lab: Lab) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text("source,destination,rate_bps\nParis,Nice,0\nParis,Lyon,1e6\n")
    text = lab("solve", france, "--demands", str(demands), "--out", str(tmp_path))
    assert "Flows: 1 in full, 0 in part, 0 with nothing, 1 that ask for nothing, over 1 paths" in text
    demands.write_text("source,destination,rate_bps\nParis,Nice,0\n")
    lab("solve", france, "--demands", str(demands), "--failures", "all")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--capacity", "1.7e308"], "at most 1000000000000000"),
        (["--capacity", "10 GB/s"], "counts bytes; rates are in bits"),
        (["--capacity", "0"], "is not a rate above 0"),
        (["--load", "1e308"], "is beyond the largest load of 1e+06"),
        (["--rate-unit", "parsec"], "is no unit of rate"),
        (["--delay-unit", "km"], "is no unit of time"),
        (["--failures", "hosts"], "invalid choice"),
    ],
)
def test_an_absurd_argument_gets_a_sentence(argv: list[str], sentence: str, france: str, lab: Lab) -> None:
    assert sentence in lab.refusal("solve", france, *argv)


def test_what_was_assumed_is_said(france: str, lab: Lab) -> None:
    note = "Note: 4 edges have no rate in the file: 1 Gbit/s each (--capacity)"
    assert note in lab("solve", france, "--flows", "3")
    lab.json("solve", france, "--flows", "3")
    assert note in lab.err
