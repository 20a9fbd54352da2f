"""Networks that nobody drew by hand: simulator and kernel agree on them, with every workload and protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.random_networks import compare
from benchmarks.random_networks.draw import CASE, PROTOCOLS, WORKLOADS, draw
from experiments import runner

pytestmark = pytest.mark.timeout(1800)

SEEDS = (70, 110, 190, 201, 203, 206, 208, 209, 217, 219, 226, 1022)
"""In these networks nothing saturates, and all protocols and workloads are among them."""
DELAY_TOLERANCE = 0.01
"""A tenth of what networks in general are held to."""


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_agree(seed: int, tmp_path: Path) -> None:
    outcome = compare.run(draw(seed), tmp_path)
    assert outcome.problems == []
    assert outcome.apart is None
    assert outcome.pairs
    for pair in outcome.pairs:
        kernel, ours = pair.delays_s
        assert not pair.is_told or ours == pytest.approx(kernel, rel=DELAY_TOLERANCE), pair


def test_connections_are_looked_at_before_the_end_whatever_the_interval_of_samples_is(tmp_path: Path) -> None:
    """At the first look the second subflow's handshake is under way: nothing tells its options yet."""
    outcome = runner.run(draw(28).job("virtual", out=tmp_path, parallel=1), lambda event: None)
    (run,) = outcome.results.runs
    assert run.valid, run.why_invalid
    subflows = run.evidence.flows["1"].connections
    assert [state.options for state in subflows] == [["ts", "sack"]] * 2
    assert all(state.counters["bytes_sent"] > 1000 for state in subflows)


@pytest.mark.parametrize(("cut", "problems"), [(1 / 40, 0), (1 / 400, 1)])
def test_what_is_cut_off_by_the_end_is_no_difference(cut: float, problems: int) -> None:
    pair = compare.Pair("1", True, cut, (1e6, 0.976e6), (0.01, 0.01), (None, None))
    assert len(pair.problems()) == problems
    file = replace(pair, cut=1.0, completions_s=(0.933, 1.005))
    assert [len(replace(file, last_frame_s=wait_s).problems()) for wait_s in (0.08, 0.02)] == [0, 1]
    slower = replace(pair, cut=1.0, answers_s=(0.0198, 0.0158))
    assert [text.partition(" simulated")[0] for text in slower.problems()] == [
        "flow 1: mean time to an answer 15.800 ms"
    ]


def test_the_draws_have_every_protocol_and_workload() -> None:
    drawn = [draw(seed) for seed in SEEDS]
    assert {each.protocol for each in drawn} == set(PROTOCOLS)
    kinds = {
        (each.protocol, flow.workload.kind)
        for each in drawn
        for flow in each.scenario.case(CASE).flows.values()
    }
    assert {kind for _, kind in kinds} == {kind for name, kind in kinds if name == "mstcp"} == set(WORKLOADS)
    assert draw(5) == draw(5) != draw(6)
