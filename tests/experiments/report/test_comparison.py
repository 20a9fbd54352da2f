"""Comparisons: pairs, intervals, settings and warnings, and the three forms that show them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.analysis.statistics import welch
from experiments.errors import OutputError
from experiments.model import scenario, settings
from experiments.model.results import Results
from experiments.report.comparison import Comparison, FlowComparison, NotComparable, compare
from experiments.report.comparison_json import to_json
from experiments.report.comparison_page import write_comparison
from experiments.report.comparison_terminal import print_comparison
from tests.fakes.results import make_results, settings_with

HOSTILE = "<script>alert('x')</script>"


def altered(factor: float, seeds: int = 3, **changes: Any) -> Results:
    """The document of `make_results` whose flows received `factor` times as much."""
    results = make_results(seeds=seeds, scenarios=("2",), **changes)
    for run in results.runs:
        for flow in run.flows:
            flow.goodput_bps *= factor
    return results


def compared(factor: float = 1.5, seeds: int = 3, **changes: Any) -> Comparison:
    first = make_results(seeds=seeds, scenarios=("2",))
    return compare([("results/a", first), ("results/b", altered(factor, seeds, **changes))])


def row_of(comparison: Comparison, flow: str, protocol: str) -> FlowComparison:
    (row,) = (row for row in comparison.pairs[0].rows if (row.flow, row.protocol) == (flow, protocol))
    return row


def printed(comparison: Comparison) -> str:
    stream = io.StringIO()
    print_comparison(comparison, Console(file=stream))
    return stream.getvalue()


def test_a_row_has_the_means_of_both_and_their_difference() -> None:
    comparison = compared()
    row = row_of(comparison, "1", "mstcp")
    before, after = (
        [flow.goodput_bps for run in document.results.runs if run.protocol == "mstcp"
         for flow in run.flows if flow.flow == "1"]
        for document in comparison.documents
    )  # fmt: skip
    assert row.goodput_bps.difference == welch(before, after)
    assert row.goodput_bps.relative == pytest.approx(0.5)
    assert row.goodput_bps.difference is not None
    assert row.goodput_bps.difference.significant is True
    assert row.delay_mean_s.difference is not None
    assert row.delay_mean_s.difference.value == 0
    assert row.delay_mean_s.difference.significant is False


def test_single_runs_differ_without_interval_or_mark() -> None:
    comparison = compared(seeds=1)
    difference = row_of(comparison, "1", "ospf").goodput_bps.difference
    assert difference is not None
    assert (difference.half_width, difference.significant) == (None, None)
    assert not re.search(r"\d \*", printed(comparison))


def test_nothing_arrived_is_missing_and_not_zero() -> None:
    other = altered(1.0)
    for run in other.runs:
        for flow in run.flows:
            flow.delay_s = None
    comparison = compare([("a", make_results(seeds=3, scenarios=("2",))), ("b", other)])
    quantity = row_of(comparison, "1", "ospf").delay_mean_s
    assert (quantity.other, quantity.difference, quantity.relative) == (None, None, None)


def test_settings_that_differ_are_listed_and_no_others() -> None:
    other = altered(1.0, settings=settings_with(sack=True, frto=2), duration_s=10.0)
    other.environment.kernel = "Linux 6.8"
    other.environment.datapath = "system"
    other.environment.link_backend = "netem"
    other.environment.versions["openvswitch"] = "3.3.0"
    other.network["links"][0]["rate_bps"] = 40e6
    for run in other.runs:
        run.sysctls["net.ipv4.tcp_sack"] = "1"
    comparison = compare([("a", make_results(seeds=3, scenarios=("2",))), ("b", other)])
    assert {setting.name: setting.values for setting in comparison.settings} == {
        "duration": ("20 s", "10 s"),
        "tcp.sack": ("false", "true"),
        "tcp.frto": ("default", "2"),
        "links.T0-S0.rate_bps": ("8e+07", "4e+07"),
        "net.ipv4.tcp_sack of the hosts": ("0", "1"),
        "link backend": ("emulator", "netem"),
        "datapath": ("netdev", "system"),
        "kernel": ("Linux 6.1.0-18-amd64", "Linux 6.8"),
        "version of openvswitch": ("3.1.0", "3.3.0"),
    }
    assert "The links of A and B are not the same" in comparison.warnings[0]


def test_defaults_that_differ_are_named() -> None:
    """A default that is not the same in two documents matters as much as what was set."""
    butterfly = scenario.load("butterfly")
    first, other = (
        make_results(settings=changed.model_dump(mode="json"))
        for changed in (
            butterfly,
            butterfly.model_copy(
                update={
                    "mstcp": settings.Mstcp(scheduler="redundant"),
                    "tcp": butterfly.tcp.model_copy(update={"reordering": 5}),
                }
            ),
        )
    )
    other.overrides["tcp.reordering"] = 5
    comparison = compare([("a", first), ("b", other)])
    assert {setting.name: setting.values for setting in comparison.settings} == {
        "mstcp.scheduler": (butterfly.mstcp.scheduler, "redundant"),
        "tcp.reordering": ("default", "5"),
    }


def test_a_document_against_itself_differs_in_nothing() -> None:
    results = make_results(seeds=2)
    comparison = compare([("a", results), ("b", results)])
    assert comparison.settings == ()
    assert comparison.warnings == ()
    assert all(
        quantity.difference is not None and quantity.difference.significant is False
        for row in comparison.pairs[0].rows
        for quantity in (row.goodput_bps, row.delay_mean_s)
    )
    assert "All settings are the same." in printed(comparison)


def test_what_only_one_has_is_said() -> None:
    first, other = make_results(("ospf", "mstcp")), make_results(("ospf", "ppfs"))
    (pair,) = compare([("a", first), ("b", other)]).pairs
    assert pair.lonely == (
        "Only A has mstcp in case 1, mstcp in case 2.",
        "Only B has ppfs in case 1, ppfs in case 2.",
    )
    assert {row.protocol for row in pair.rows} == {"ospf"}


def test_other_scenarios_networks_and_protocols_cannot_be_compared() -> None:
    first = make_results()
    with pytest.raises(NotComparable, match="the one is of scenario butterfly, the other of ring"):
        compare([("a", first), ("b", make_results(scenario="ring"))])
    shrunk = make_results()
    shrunk.network["nodes"].pop()
    with pytest.raises(NotComparable, match="different nodes or links"):
        compare([("a", first), ("b", shrunk)])
    with pytest.raises(NotComparable, match="no flow was run with the same protocol"):
        compare([("a", make_results(("ospf",))), ("b", make_results(("mstcp",)))])


def test_invalid_runs_and_other_requests_are_warned_of() -> None:
    other = altered(1.0)
    for run in other.runs:
        run.valid, run.why_invalid = False, ["the processor was busy"]
        run.flows[0].requested_bps *= 2
    comparison = compare([("a", make_results(seeds=3, scenarios=("2",))), ("b", other)])
    assert comparison.warnings[0] == ("B: ospf, case 2, seed 1 is not valid: the processor was busy.")
    assert "different goodputs: ospf, flow 1, case 2; mstcp, flow 1" in comparison.warnings[-1]
    assert not row_of(comparison, "1", "ospf").valid
    assert "ospf (invalid)" in re.sub(r"\s+", " ", printed(comparison))


def test_the_terminal_is_narrow_ascii_with_settings_first() -> None:
    text = printed(compared(settings=settings_with(sack=True)))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120
    assert text.index("A = results/a") < text.index("tcp.sack") < text.index("B against A")
    assert re.search(r"\+\d+\.\d+ \+-\d+\.\d+ \*", text)


def test_the_json_document_has_the_same_numbers() -> None:
    comparison = compared()
    document = json.loads(to_json(comparison))
    row = document["comparisons"][0]["rows"][0]
    expected = comparison.pairs[0].rows[0].goodput_bps
    assert expected.first is not None
    assert expected.difference is not None
    assert row["goodput_bps"]["first"]["mean"] == expected.first.mean
    assert row["goodput_bps"]["difference"]["half_width"] == expected.difference.half_width
    assert [entry["letter"] for entry in document["documents"]] == ["A", "B"]


def test_the_page_shows_all_and_is_the_same_each_time(tmp_path: Path) -> None:
    first = make_results(seeds=2)
    named = [("a", first), (HOSTILE, altered(1.5, 2)), ("c", make_results(("ospf",)))]
    page = write_comparison(compare(named), tmp_path / "x")
    text = page.read_text(encoding="utf-8")
    assert page.name == "compare.html"
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    rows = re.findall(r'data-pair="(\S+)" data-case="(\d)" data-flow="(\d)" data-protocol="(\w+)"', text)
    assert len(rows) == len(set(rows)) == 4 + 4
    again = write_comparison(compare(named), tmp_path / "y")
    assert again.read_bytes() == page.read_bytes()
    plots = sorted(path.name for path in (tmp_path / "x" / "plots").iterdir())
    assert len(plots) == 3 * (2 * 2 * 2)  # SVG, PNG and PDF of goodput and delay of two flows in two cases
    assert all(name.startswith("compare-") for name in plots)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_comparison(compared(), tmp_path / "file")
