"""Shares of paths: from packets where they were counted, else from rates and bytes."""

from __future__ import annotations

import re

import pytest

from experiments.model.evidence import Evidence, FlowEvidence, PathEvidence
from experiments.model.results import Results
from experiments.report.page import make_sections, render
from experiments.report.splits import FlowSplit, flow_splits
from experiments.report.summary import summarise
from tests.fakes.results import PATHS, make_results

SHORT, LONG = PATHS["1"]


def splits_of(results: Results) -> dict[str, FlowSplit]:
    (scenario,) = summarise(results)
    return {split.flow.protocol: split for split in flow_splits(scenario.flows) if split.flow.flow == "1"}


def with_evidence(*per_seed: list[PathEvidence] | None) -> Results:
    results = make_results(("ppfs",), ("2",), seeds=len(per_seed))
    for run, paths in zip(results.runs, per_seed, strict=True):
        run.evidence = Evidence(flows={"1": FlowEvidence(paths=paths)} if paths else {})
    return results


def entries(short: int, long: int, asked: float = 0.5) -> list[PathEvidence]:
    total = short + long
    return [
        PathEvidence(path=path, asked=share, realised=packets / total if total else None, packets=packets)
        for path, share, packets in ((SHORT, asked, short), (LONG, 1 - asked, long))
    ]


def test_packets_of_all_seeds_are_pooled() -> None:
    split = splits_of(with_evidence(entries(5100, 4900), entries(300, 100)))["ppfs"]
    first, second = split.shares
    assert (first.path, first.packets, first.packets_of_flow) == (tuple(SHORT), 5400, 10400)
    assert first.realised == pytest.approx(5400 / 10400)
    # 200 packets more than half of 10,400; the binomial's standard deviation is sqrt(10400) / 2 packets.
    assert first.deviations == pytest.approx(200 / (10400**0.5 / 2))
    assert second.deviations == pytest.approx(-200 / (10400**0.5 / 2))
    assert not split.asked_varies


def test_seeds_that_ask_for_different_shares_are_marked() -> None:
    split = splits_of(with_evidence(entries(50, 50), entries(80, 20, asked=0.8)))["ppfs"]
    assert split.asked_varies
    assert split.shares[0].asked == pytest.approx(0.65)


def test_without_evidence_the_rates_and_the_bytes_tell() -> None:
    split = splits_of(with_evidence(None))["ppfs"]
    assert [share.asked for share in split.shares] == [0.5, 0.5]
    assert sum(share.realised or 0 for share in split.shares) == pytest.approx(1.0)
    assert {(share.packets, share.deviations) for share in split.shares} == {(None, None)}


def test_a_protocol_that_allocates_no_rate_asks_for_no_share() -> None:
    (share,) = splits_of(make_results(("ospf",), ("2",)))["ospf"].shares
    assert (share.asked, share.realised) == (None, 1.0)


def test_packets_on_a_path_of_no_share_have_no_deviation() -> None:
    split = splits_of(with_evidence(entries(10, 0, asked=1.0)))["ppfs"]
    assert split.shares[0].deviations is None


def test_no_packet_at_all_is_missing_and_not_zero() -> None:
    split = splits_of(with_evidence(entries(0, 0)))["ppfs"]
    assert [share.realised for share in split.shares] == [None, None]


@pytest.mark.usefixtures("undrawn")
def test_the_page_has_the_table() -> None:
    results = with_evidence(entries(5100, 4900))
    text = render(results, make_sections(results))
    table = re.search(r'<table class="plain splits">.*?</table>', text, re.DOTALL)
    assert table
    assert "T0→S0→S4→T2" in table.group()
    assert '<data value="0.51">51.00</data>' in table.group()
    assert "+2.0" in table.group()
