"""Flow completion times in the report, and flows of one group as one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis import logs
from experiments.model.results import FlowResult, Results, TransferCounts
from experiments.report.completions import completions
from experiments.report.groups import fold_groups
from experiments.report.page import make_sections, render, write_report
from experiments.report.plot_completions import plot_completions
from experiments.report.plot_goodput import plot_goodputs
from experiments.report.summary import summarise
from experiments.report.units import MISSING
from tests.fakes.results import make_results, printed


def with_requests(seeds: int = 2) -> Results:
    """Return results whose flow 1 has requests and whose flow 2 is a file."""
    results = make_results(seeds=seeds, scenarios=("1",))
    for run in results.runs:
        generator = np.random.default_rng(run.seed)
        first, second = run.flows
        first.fct_s = logs.completion_statistics(generator.exponential(0.1, 300))
        first.transfers = TransferCounts(started=310, completed=300)
        second.transfers = TransferCounts(started=1, completed=int(run.protocol == "mstcp"))
        first.workload, second.workload = {"kind": "requests"}, {"kind": "bulk", "size_bytes": 3_000_000}
        second.active_goodput_bps = 7.25e6
        second.completion_s = 3.25 + run.seed if run.protocol == "mstcp" else None
    return results


def with_group(size: int = 30) -> list[FlowResult]:
    """Return flows of a group, of which each completed but the last."""
    (run,) = make_results(("ospf",), ("1",)).runs
    flows = []
    for number in range(size):
        flow = run.flows[number % 2].model_copy(deep=True)
        flow.flow, flow.group = f"d{number + 1}", "demands"
        flow.completion_s = None if number == size - 1 else 0.1 * (number + 1)
        flow.transfers = TransferCounts(started=1, completed=int(flow.completion_s is not None))
        flows.append(flow)
    return flows


def test_completion_times_are_counted_and_averaged_over_the_seeds() -> None:
    results = with_requests()
    by_case = completions(summarise(results)[0].flows)
    ospf, mstcp = by_case["1"]
    assert (ospf.started, ospf.completed) == (620, 600)
    assert not ospf.is_single
    times = [run.flows[0].fct_s for run in results.runs if run.protocol == "ospf"]
    assert ospf.mean_s is not None
    assert ospf.mean_s.mean == pytest.approx(np.mean([each.mean for each in times if each]))
    assert ospf.quantile_s("p99") == pytest.approx(np.mean([each.p99 for each in times if each]))
    none, whole = by_case["2"]
    assert (none.completed, none.mean_s, none.quantile_s("max")) == (0, None, None)
    assert whole.is_single
    assert whole.mean_s is not None
    assert whole.mean_s.mean == pytest.approx(4.75)
    assert mstcp.flow.protocol == "mstcp"


def test_a_group_is_one_flow_that_conserves_rates_bytes_and_transfers() -> None:
    flows = with_group()
    alone = make_results(("ospf",), ("1",)).runs[0].flows[0]
    single, whole = fold_groups([alone, *flows])
    assert single is alone
    assert whole.flow == "demands (30)"
    assert (whole.src, whole.dst) == ("2 hosts", "2 hosts")
    for field in ("requested_bps", "goodput_bps", "bytes_read", "bytes_written"):
        assert getattr(whole, field) == pytest.approx(sum(getattr(flow, field) for flow in flows))
    assert whole.series.goodput_bps[5] == pytest.approx(sum(flow.series.goodput_bps[5] for flow in flows))
    assert whole.transfers == TransferCounts(started=30, completed=29)
    assert whole.fct_s is not None
    assert whole.fct_s.mean == pytest.approx(np.mean([0.1 * (n + 1) for n in range(29)]))
    assert whole.fct_s.max == pytest.approx(2.9)
    assert whole.fct_s.p50 == pytest.approx(1.5, abs=0.11)
    assert whole.delay_s is not None
    means = [flow.delay_s.mean for flow in flows if flow.delay_s]
    assert min(means) <= whole.delay_s.mean <= max(means)


def test_a_group_of_which_nothing_arrived_has_no_delay() -> None:
    flows = with_group(3)
    for flow in flows:
        flow.goodput_bps, flow.delay_s, flow.completion_s = 0.0, None, None
        flow.series.delay_cdf_s = []
    (whole,) = fold_groups(flows)
    assert whole.delay_s is None
    assert whole.fct_s is None
    assert whole.series.delay_cdf_s == []


def test_curves_for_many_and_bars_for_one_file() -> None:
    scenario = summarise(with_requests())[0]
    curves, bars = plot_completions(scenario)
    assert "share of transfers" in curves.svg
    assert "each of the 2 seeds" in curves.caption
    assert "completion time in s" in bars.svg
    assert "not completed within the measurement" in bars.svg
    assert plot_completions(summarise(make_results())[0]) == []


def test_the_page_and_the_terminal_have_them(tmp_path: Path) -> None:
    results = with_requests(1)
    results.runs[0].flows += with_group()
    page = write_report(results, tmp_path).read_text()
    assert "Files and requests" in page
    assert "300 of 310" in page
    assert "demands (30)" in page
    assert (tmp_path / "plots" / "completion-1-1.png").exists()
    out = printed(results)
    assert "Flow completion times" in out
    assert "300 of 310" in out
    assert max(map(len, out.splitlines())) <= 120
    # What the source asks for all the time alone is compared with what was received.
    asked_for = {
        name: [entry.goodput_ratio is not None for entry in group]
        for name, group in summarise(results)[0].flows.items()
    }
    assert asked_for == {"1": [False, False], "2": [False, False], "demands (30)": [True]}
    assert len(re.findall(rf'<td class="ratio"[^>]*>{MISSING}<sup class="mark">\w+</sup></td>', page)) == 4
    assert "a controller is asked for this rate" in page
    assert re.search(r'<td class="active-goodput"[^>]*><data value="7250000.0">7.25</data></td>', page)
    assert "7.25" in out
    assert "requested" not in plot_goodputs(summarise(results)[0])[0].svg


@pytest.mark.usefixtures("undrawn")
def test_reports_without_transfers_say_nothing_of_them() -> None:
    results = make_results()
    assert "Files and requests" not in render(results, make_sections(results))
    assert not re.search("completion|active", printed(results))
