"""Changes of the network during runs, on the page and on the terminal."""

from __future__ import annotations

from experiments.model.results import LinkChange, PathAllocation, PathChange
from experiments.report.changes import change_rows
from experiments.report.page import render
from tests.fakes.results import make_results, printed


def test_changes_are_told_in_the_order_of_time_and_nothing_without_them() -> None:
    results = make_results(seeds=2, scenarios=("1",))
    assert "Links were changed" not in printed(results)
    assert "Changes of the network" not in render(results, [])

    run = results.runs[1]
    run.path_changes = [
        PathChange(time_s=1.25, flow="1", paths=[PathAllocation(path=["T0", "S0", "T2"], rate_bps=4.5e6)])
    ]
    run.link_changes = [
        LinkChange(time_s=1.0, link="S0-S4", up=False),
        LinkChange(time_s=2.0, link="S0-S4", up=True, settings={"rate_bps": 2.5e6, "loss": 0.015}),
        LinkChange(time_s=3.0, link="S2-S3", up=False, silent=True),
        LinkChange(time_s=4.0, link="S2-S3", settings={"delay_us": 2500.0, "queue_packets": None}),
    ]
    told = [(row.time_s, row.what, row.became) for row in change_rows(run)]
    assert told == [
        (1.0, "link S0-S4", "down"),
        (1.25, "flow 1", "T0→S0→T2 4.50 Mbit/s"),
        (2.0, "link S0-S4", "up, rate 2.50 Mbit/s, loss 1.5 %"),
        (3.0, "link S2-S3", "down, with carrier"),
        (4.0, "link S2-S3", "delay 2.5 ms, no queue_packets"),
    ]
    page = render(results, [])
    assert page.count("Links were changed during 1 run (S0-S4, S2-S3)") == 1
    assert '<a href="#changes">' in page
    for _, what, became in told:
        assert f'<td class="text">{what}</td><td class="text">{became}</td>' in page
    assert "Links were changed during 1 run (S0-S4, S2-S3)" in " ".join(printed(results).split())
