"""What TCP took for losses, from what the runs recorded."""

from __future__ import annotations

import pytest

from experiments.model.evidence import ConnectionEvidence, Evidence, FlowEvidence
from experiments.model.results import Results
from experiments.report.page import make_sections, render
from experiments.report.recovery import recoveries
from experiments.report.summary import summarise
from tests.fakes.results import make_results


def counted() -> Results:
    results = make_results(("ppfs",), ("2",), seeds=2)
    for run in results.runs:
        sent = {"bytes_sent": 1000 * run.seed, "bytes_retrans": 150, "reordering": 5 * run.seed}
        counters = {"1": sent, "2": {"bytes_sent": 1000, "bytes_retrans": 0}}
        run.evidence = Evidence(
            flows={
                name: FlowEvidence(
                    connections=[ConnectionEvidence(source_ip="10.0.0.1", counters=dict(counts))]
                )
                for name, counts in counters.items()
            },
            hosts={
                "T0": {"TcpExtTCPRenoRecovery": 10 * run.seed, "TcpExtTCPPartialUndo": 4},
                "T1": {"TcpExtTCPTimeouts": 1},
            },
        )
    return results


@pytest.mark.usefixtures("undrawn")
def test_counters_are_those_of_each_flows_sender() -> None:
    results = counted()
    (scenario,) = summarise(results)
    first, second = recoveries(scenario.flows)
    assert first.retransmitted == pytest.approx(300 / 3000)
    assert (first.recoveries, first.undone, first.timeouts) == (15, 4, 0)
    assert first.reordering == (5, 10)
    assert (second.retransmitted, second.recoveries, second.timeouts) == (0, 0, 1)
    assert second.reordering == (3, 3)
    page = render(results, make_sections(results))
    assert "What TCP took for losses" in page
    assert "5 to 10" in page


def test_a_host_of_two_flows_tells_nothing_of_one() -> None:
    results = counted()
    for run in results.runs:
        run.flows[1].src = "T0"
    (scenario,) = summarise(results)
    assert all(flow.recoveries is None for flow in recoveries(scenario.flows))


@pytest.mark.usefixtures("undrawn")
def test_without_evidence_there_is_no_table() -> None:
    results = make_results(("mstcp",), ("2",))
    assert recoveries(summarise(results)[0].flows) == []
    assert "What TCP took" not in render(results, make_sections(results))
