"""Flows that met on a link, by what a run recorded."""

from __future__ import annotations

from experiments.model.evidence import Evidence, FlowEvidence, PathEvidence
from experiments.report.collisions import collisions
from experiments.report.summary import summarise
from tests.fakes.results import make_results


def test_a_run_is_counted_by_what_it_recorded() -> None:
    results = make_results(("ecmp",), ("1",), seeds=2)
    ways = {1: ["M1", "M1"], 2: ["M1", "M2"]}
    for run in results.runs:
        for number, (flow, middle) in enumerate(zip(run.flows, ways[run.seed], strict=True), start=1):
            flow.src, flow.dst = f"A{number}", f"B{number}"
            flow.goodput_bps = 4e6 if run.seed == 1 else 8e6
            path = [flow.src, "L", middle, "R", flow.dst]
            taken = FlowEvidence(paths=[PathEvidence(path=path, packets=9, realised=1.0)])
            run.evidence = Evidence(flows={**run.evidence.flows, flow.flow: taken})
    (summary,) = summarise(results)
    (counted,) = collisions(summary)
    assert (counted.runs, counted.flows, counted.shared) == (2, 4, 2)
    assert (counted.shared_bps, counted.alone_bps) == (4e6, 8e6)
    for run in results.runs:
        run.evidence = Evidence()
    assert collisions(summary) == []
