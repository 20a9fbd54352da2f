"""Flows that met on a link, against birthday arithmetic and against what a run recorded."""

from __future__ import annotations

import pytest

import topologies
from experiments.model.evidence import Evidence, FlowEvidence, PathEvidence
from experiments.report.collisions import collisions, expected_share
from experiments.report.summary import summarise
from tests.fakes.results import make_results


def pairs(count: int) -> list[tuple[str, str]]:
    return [(f"A{number}", f"B{number}") for number in range(1, count + 1)]


@pytest.mark.parametrize("name, paths", [("parallel2", 2), ("parallel4", 4)])
@pytest.mark.parametrize("flows", [1, 2, 3, 4])
def test_on_disjoint_paths_it_is_birthday_arithmetic(name: str, paths: int, flows: int) -> None:
    share = expected_share(topologies.load(name), pairs(flows))
    assert share == pytest.approx(1 - (1 - 1 / paths) ** (flows - 1))


def test_in_a_fat_tree_links_on_the_way_up_and_down_count() -> None:
    network = topologies.load("fat-tree:4")
    # Two hosts of one edge switch to two of another: they meet unless the first choice differs.
    share = expected_share(network, [("h0_0_0", "h2_0_0"), ("h0_0_1", "h2_0_1")])
    assert share == pytest.approx(1 / 2)
    # Of different edge switches: up to the same core switch by the same aggregation switch.
    share = expected_share(network, [("h0_0_0", "h2_0_0"), ("h0_1_0", "h2_1_0")])
    assert share == pytest.approx(1 / 4)


def test_flows_without_a_choice_have_no_chance() -> None:
    assert expected_share(topologies.load("butterfly"), [("T0", "T2"), ("T1", "T3")]) is None


def test_a_run_is_counted_by_what_it_recorded() -> None:
    results = make_results(("ecmp",), ("1",), seeds=2)
    network = topologies.load("parallel2")
    ways = {1: ["M1", "M1"], 2: ["M1", "M2"]}
    for run in results.runs:
        for number, (flow, middle) in enumerate(zip(run.flows, ways[run.seed], strict=True), start=1):
            flow.src, flow.dst = f"A{number}", f"B{number}"
            flow.goodput_bps = 4e6 if run.seed == 1 else 8e6
            path = [flow.src, "L", middle, "R", flow.dst]
            taken = FlowEvidence(paths=[PathEvidence(path=path, packets=9, realised=1.0)])
            run.evidence = Evidence(flows={**run.evidence.flows, flow.flow: taken})
    (summary,) = summarise(results)
    (counted,) = collisions(summary, network)
    assert (counted.runs, counted.flows, counted.shared) == (2, 4, 2)
    assert counted.measured == counted.expected == 0.5
    assert (counted.shared_bps, counted.alone_bps) == (4e6, 8e6)
    for run in results.runs:
        run.evidence = Evidence()
    assert collisions(summary, network) == []
