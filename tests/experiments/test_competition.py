"""Flows of several protocols and congestion controls in one run, and how they share a link."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import topologies
from experiments import engines, runner
from experiments.analysis.fairness import jain_index
from experiments.analysis.tables import tables
from experiments.errors import MissingRequirement, ScenarioError
from experiments.model.job import Job
from experiments.model.plan import RunPlan
from experiments.model.results import Results
from experiments.model.scenario import parse
from experiments.report.page import write_report
from experiments.report.terminal import print_table

FLOWS = {
    "a": {"protocol": "mstcp"},
    "b": {"protocol": "mptcp"},
    "c": {},
    "d": {"congestion_control": "cubic"},
}


def job(out: Path, flows: dict[str, dict[str, Any]], **settings: Any) -> Job:
    workload = {"kind": "bulk", "size_bytes": 1 << 30}
    common = {"src": "h1", "dst": "h2", "requested_bps": 2.5e6, "workload": workload}
    described = {name: {**common, **own} for name, own in flows.items()}
    data = {"format": 1, "name": "shared", "network": "line:2", "duration_s": 8.0, "warm_up_s": 2.0}
    scenario = parse({**data, **settings, "cases": {"1": {"flows": described}}}, "shared.toml")
    network = topologies.load(
        "line:2", overrides={"links.s1-s2.rate_bps": 10e6, "links.s1-s2.queue_packets": 50}
    )
    return Job(
        engine="sim",
        scenario=scenario,
        network=network,
        variant=None,
        overrides={},
        cases=("1",),
        protocols=("ospf",),
        seeds=(1, 2),
        duration_s=scenario.duration_s,
        out=out,
        retries=0,
        parallel=1,
        extensions=(),
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("competition") / "out"
    runner.prepare_output(out)
    outcome = runner.run(job(out, FLOWS), lambda _: None)
    assert outcome.failures == []
    return outcome.results


def test_each_flow_has_its_own_protocol_and_control(results: Results) -> None:
    for run in results.runs:
        flows = {flow.flow: flow for flow in run.flows}
        assert [flows[name].protocol for name in FLOWS] == ["mstcp", "mptcp", None, None]
        assert flows["d"].congestion_control == "cubic" != flows["c"].congestion_control
        assert flows["a"].allocated[0].rate_bps is not None, "MSTCP asked the controller"
        assert flows["c"].allocated[0].rate_bps is None
        assert all(flow.goodput_bps > 0 for flow in flows.values())
        assert run.evidence.flows["b"].counters, "an MPTCP connection counts what plain TCP does not"


def test_the_shared_link_and_who_got_it(results: Results, tmp_path: Path) -> None:
    for run in results.runs:
        (bottleneck,) = [each for each in run.bottlenecks if each.link == "s1->s2"]
        assert sum(bottleneck.shares.values()) == pytest.approx(1.0)
        assert bottleneck.jain_index == pytest.approx(jain_index([*bottleneck.shares.values()]))
    rows = tables(results)
    assert rows["flows"]["bottleneck_share"][0] == results.runs[0].bottlenecks[0].shares["a"]
    assert len(set(rows["runs"]["jain_index"])) == 2
    page = write_report(results, tmp_path).read_text()
    console = Console(file=io.StringIO(), width=200)
    print_table(results, console)
    for text in (page, console.file.getvalue()):  # type: ignore[attr-defined]
        assert "s1-&gt;s2 was shared by flow a (mstcp" in text or "s1->s2 was shared by flow a (mstcp" in text


@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=20))
def test_jains_index_is_between_one_nth_and_one(rates: list[float]) -> None:
    assert 1 / len(rates) <= jain_index(rates) * (1 + 1e-9)
    assert jain_index(rates) <= 1 + 1e-9
    assert jain_index([rates[0]] * len(rates)) == pytest.approx(1.0)


def plans(job_: Job) -> list[RunPlan]:
    return [plan for _, plan in job_.pending()]


def test_what_does_not_go_together_is_told(tmp_path: Path) -> None:
    live = job(tmp_path, {"a": {"protocol": "ecmp"}, "b": {"protocol": "ospf"}})
    with pytest.raises(MissingRequirement, match="ecmp and ospf want other default routes"):
        engines.get("live").check(plans(live))
    simulated = job(tmp_path, {"a": {"protocol": "ppfs-group"}})
    with pytest.raises(MissingRequirement, match="does not have protocol ppfs-group"):
        engines.get("sim").check(plans(simulated))


def test_an_unknown_key_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"cases\.1\.flows\.a\.protcol: .*Did you mean protocol\?"):
        job(tmp_path, {"a": {"protcol": "mstcp"}})
    with pytest.raises(ScenarioError, match=r"duraton_s: there is no such key\. Did you mean duration_s\?"):
        job(tmp_path, {"a": {}}, duraton_s=3)
