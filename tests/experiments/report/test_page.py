"""The page against the document it is made of: numbers, missing values, names, plots, bytes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments.errors import OutputError
from experiments.model.evidence import Evidence
from experiments.model.results import LinkResult, Results
from experiments.report.canvas import file_stem
from experiments.report.page import all_plots, make_sections, render, write_report
from experiments.report.plot_topology import arrange, labelled_links
from experiments.report.units import MISSING
from tests.fakes.results import make_results
from topologies import load

HOSTILE = '<script>alert("x")</script> & $a_b$ _x'
VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Collects the cells of the result tables, tags, identifiers, references; checks that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.cells: dict[tuple[str, str, str], dict[str, tuple[str, str | None]]] = {}
        self._open: list[str] = []
        self._row: dict[str, tuple[str, str | None]] | None = None
        self._cell: str | None = None
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.references += [
            value for name in ("src", "href", "xlink:href") if (value := attributes.get(name))
        ]
        if tag == "tr":
            key = tuple(attributes.get(f"data-{name}") for name in ("case", "flow", "protocol"))
            self._row = self.cells.setdefault(key, {}) if None not in key else None  # type: ignore[arg-type]
        elif tag == "td" and self._row is not None:
            self._cell = (attributes.get("class") or "").split()[0]
            self._row[self._cell] = ("", None)
        elif tag == "data" and self._row is not None and self._cell:
            self._row[self._cell] = (self._row[self._cell][0], attributes["value"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in ("td", "tr"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._row is not None and self._cell:
            text, value = self._row[self._cell]
            self._row[self._cell] = (text + data.strip(), value)


@dataclass
class Report:
    """A document, the page made of it, and the folder where that stands with its plots."""

    results: Results
    folder: Path
    text: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The paper's scenarios with two protocols."""
    results, folder = make_results(("ospf", "mstcp")), tmp_path_factory.mktemp("report")
    return Report(results, folder, write_report(results, folder).read_text(encoding="utf-8"))


def cells_of(results: Results) -> dict[tuple[str, str, str], dict[str, tuple[str, str | None]]]:
    return Page(render(results, make_sections(results))).cells


def test_the_tables_numbers_are_those_of_the_document(whole: Report) -> None:
    results, page = whole.results, Page(whole.text)
    assert len(page.cells) == 8
    for run in results.runs:
        for flow in run.flows:
            cells = page.cells[(run.case, flow.flow, run.protocol)]
            assert flow.delay_s is not None
            exact = {
                "requested": flow.requested_bps,
                "goodput": flow.goodput_bps,
                "ratio": flow.goodput_bps / flow.requested_bps,
                "delay-mean": flow.delay_s.mean,
                "delay-p50": flow.delay_s.p50,
                "delay-p95": flow.delay_s.p95,
                "delay-p99": flow.delay_s.p99,
            }
            for name, value in exact.items():
                assert float(cells[name][1] or "nan") == pytest.approx(value, rel=1e-12), name
            assert cells["goodput"][0] == f"{flow.goodput_bps / 1e6:.2f}"
            assert cells["delay-p95"][0] == f"{flow.delay_s.p95 * 1e3:.2f}"


@pytest.mark.usefixtures("undrawn")
def test_the_papers_cells_and_ratio_stand_beside_ours() -> None:
    results = make_results(("mstcp", "mptcp"), ("1",))
    cells = cells_of(results)
    ours = results.runs[0].flows[0].goodput_bps
    row = cells[("1", "1", "mstcp")]
    assert row["paper-goodput"] == ("8.50", "8500000.0")
    assert row["paper-delay"][0] == "17.56"
    assert float(row["goodput-versus"][1] or "nan") == pytest.approx(ours / 8.5e6)
    assert cells[("1", "1", "mptcp")]["paper-goodput"][0].startswith(MISSING)
    assert cells[("1", "2", "mstcp")]["paper-delay"][0] != "9.34", "a doubtful cell carries a mark"


@pytest.mark.usefixtures("undrawn")
def test_an_interval_in_the_table() -> None:
    results = make_results(("mstcp",), ("1",), seeds=3)
    for run, rate in zip(results.runs, (8e6, 9e6, 10e6), strict=True):
        run.flows[0].goodput_bps = rate
    text, value = cells_of(results)[("1", "1", "mstcp")]["goodput"]
    assert value == "9000000.0"
    assert text.replace(" ", "") == "9.00±2.48"  # 4.3027 / sqrt(3)


@pytest.mark.usefixtures("undrawn")
def test_missing_values_are_dashes_with_a_letter_and_never_zero() -> None:
    results = make_results(("ospf",), ("1",))
    results.runs[0].flows[0].delay_s = None
    results.runs[0].flows[0].series.delay_cdf_s = []
    cells = cells_of(results)[("1", "1", "ospf")]
    for name in ("delay-mean", "delay-p50", "delay-p95", "delay-p99", "out-of-order", "reorder-buffer"):
        text, value = cells[name]
        assert re.fullmatch(f"{MISSING}[a-z]", text), name
        assert value is None


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    results = make_results((HOSTILE, "../../etc"), (HOSTILE,), scenario=HOSTILE, variant=HOSTILE)
    results.runs[0].why_invalid = [HOSTILE]
    results.runs[0].valid = False
    results.runs[0].sysctls = {HOSTILE: HOSTILE}
    results.runs[0].evidence = Evidence(further={HOSTILE: HOSTILE})
    results.runs[0].flows[0].flow = HOSTILE
    results.runs[0].flows[0].series.streams[0].path = [HOSTILE]
    results.runs[0].links[0].link = HOSTILE
    page = Page(write_report(results, tmp_path).read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert {path.parent for path in tmp_path.rglob("*.svg")} == {tmp_path / "plots"}
    for path in tmp_path.rglob("*.svg"):
        ET.parse(path)


def test_the_page_needs_nothing_from_elsewhere(whole: Report) -> None:
    page = Page(whole.text)
    assert "script" not in page.tags
    assert all(reference.startswith("#") for reference in page.references)
    assert not re.search(r"url\((?!#)|@import", whole.text)


def test_identifiers_are_unique_and_references_resolve(whole: Report) -> None:
    page = Page(whole.text)
    assert len(page.ids) == len(set(page.ids))
    wanted = {reference[1:] for reference in page.references} | set(
        re.findall(r"url\(#([^)]*)\)", whole.text)
    )
    assert wanted <= set(page.ids)


def test_plots_are_valid_and_all_there(whole: Report) -> None:
    plots = whole.folder / "plots"
    names = {path.stem for path in plots.glob("*.svg")}
    wanted = {
        f"{kind}-{case}-{flow}" for kind in ("goodput", "delay", "rates") for case in "12" for flow in "12"
    }
    assert names == wanted | {f"links-{case}-{protocol}" for case in "12" for protocol in ("ospf", "mstcp")}
    assert names <= set(Page(whole.text).ids)
    for name in names:
        assert ET.parse(plots / f"{name}.svg").getroot().tag.endswith("svg")
        png = (plots / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert png.endswith(b"IEND\xaeB`\x82")


def test_the_same_document_gives_the_same_bytes(tmp_path: Path) -> None:
    results = make_results(("mstcp",), ("1",), seeds=2)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (write_report(results, tmp_path / name).parent for name in ("first", "second"))
    )
    assert first == second
    assert len(first) == 1 + 3 * 7


def test_no_two_plots_share_a_name() -> None:
    results = make_results(("a.b", "a-b"), ("1",))
    for run in results.runs:
        run.flows = []
    names = [plot.name for plot in all_plots(make_sections(results))]
    assert names == ["links-1-a-b", "links-1-a-b-2"]


def test_the_colours_of_inlined_plots_follow_the_page(whole: Report) -> None:
    plots = "".join(re.findall(r"<svg.*?</svg>", whole.text, re.DOTALL))
    assert "var(--ink)" in plots
    assert not re.search("#1b1f24|#ffffff", plots)


def test_a_document_without_runs_says_so(tmp_path: Path) -> None:
    text = write_report(make_results(runs=[]), tmp_path).read_text(encoding="utf-8")
    assert "The document holds no results" in text
    assert list((tmp_path / "plots").iterdir()) == []


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    results = make_results(("ospf",), ("1",), network={"nodes": 3})
    for flow in results.runs[0].flows:
        flow.delay_s, flow.series.delay_cdf_s, flow.series.time_s = None, [], []
        flow.series.goodput_bps, flow.series.streams, flow.goodput_bps = [], [], 0.0
    text = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert "There is no plot of the delay: nothing arrived." in text
    assert "There is no drawing of the links: the document does not describe the network." in text


@pytest.mark.usefixtures("undrawn")
def test_the_banner_names_the_reasons() -> None:
    results = make_results(("ospf",), ("1",))
    assert 'class="banner good"' in render(results, make_sections(results))
    results.runs[0].valid, results.runs[0].why_invalid = False, ["98 % busy"]
    text = render(results, make_sections(results))
    assert 'class="banner bad"' in text
    assert "ospf, case 1, seed 1 is not valid: 98 % busy." in text


@pytest.mark.parametrize("spec", ["line:2", "ring:6", "fat-tree:4", "waxman:40:seed=1"])
def test_any_network_can_be_drawn(spec: str) -> None:
    network = load(spec)
    results = make_results(("ospf",), ("x",), network=network.model_dump(mode="json"))
    results.runs[0].flows = []
    results.runs[0].links = [
        LinkResult(
            link=f"{arc.tail}->{arc.head}",
            capacity_bps=arc.rate_bps,
            utilisation=0.5 if index else None,
            packets_dropped=None,
            lateness_mean_us=None,
            lateness_p99_us=None,
            lateness_max_us=None,
        )
        for index, arc in enumerate(network.arcs())
    ]
    assert [plot.name for plot in all_plots(make_sections(results))] == ["links-x-ospf"]


def test_every_link_of_the_butterfly_is_labelled() -> None:
    network = load("butterfly")
    canvas = arrange(network)
    assert labelled_links(network, {}, canvas) == {link.name for link in network.links}
    for x, y in canvas.places.values():
        assert canvas.radius < x < canvas.width - canvas.radius
        assert canvas.radius < y < canvas.height - canvas.radius


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_report(make_results(runs=[]), tmp_path / "file")


def test_file_names_hold_letters_digits_and_hyphens_alone() -> None:
    assert file_stem("links", "../../etc", "Ünï <x>") == "links-etc-n-x"
    assert file_stem("rates", "", "1") == "rates-x-1"
