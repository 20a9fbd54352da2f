"""MPTCP in the simulator, by the scenarios that the live engine reads."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.engines.dual_homing import with_second_interfaces
from experiments.engines.sim.description import describe
from experiments.engines.sim.engine import SimEngine
from experiments.engines.sim.routing import routes
from experiments.errors import OverrideError, RunFailed
from experiments.model.results import RunResult
from tests.experiments.engines.sim.sim_plans import plan_of


def simulate(protocol: str, case: str = "2", **sets: Any) -> RunResult:
    return SimEngine().simulate(plan_of(protocol, case, **sets))


def goodputs(run: RunResult) -> list[float]:
    return [flow.goodput_bps for flow in run.flows]


def test_one_subflow_is_tcp_less_the_options() -> None:
    mptcp, tcp = simulate("mptcp"), simulate("ospf")
    for ours, theirs in zip(goodputs(mptcp), goodputs(tcp), strict=True):
        assert 0.9 * theirs <= ours <= theirs * 1.001


def test_subflows_on_allocated_paths_carry_what_the_kernels_do() -> None:
    # Live: 8.50 and 4.50 Mbit/s in scenario 1, 8.59 Mbit/s of flow 1 in scenario 2 (README).
    first, second = simulate("mptcp-sdn", "1"), simulate("mptcp-sdn", "2", duration_s=20.0)
    assert goodputs(first) == pytest.approx([8.5e6, 4.5e6], rel=0.01)
    assert goodputs(second)[0] == pytest.approx(8.59e6, rel=0.02)
    assert [len(flow.allocated) for flow in first.flows] == [2, 2]
    assert all(max(stream.rate_bps) > 1e6 for stream in first.flows[0].series.streams)


def test_second_interfaces_carry_what_the_kernels_do_and_are_links_like_others() -> None:
    run = simulate("mptcp-dualhomed", duration_s=20.0)
    for flow in run.flows:
        first, second = (path.path for path in flow.allocated)
        assert (first[0], second[0]) == (flow.src, f"{flow.src}_2")
    # Live: 6.22 and 6.68 Mbit/s (README).
    assert goodputs(run) == pytest.approx([6.22e6, 6.68e6], rel=0.1)
    names = {link.link for link in run.links}
    assert "T0_2->S2" in names
    assert "T0->T0_2" not in names
    assert max(link.utilisation or 0.0 for link in run.links) <= 1.0


def test_what_happened_beyond_plain_sending_is_evidence() -> None:
    evidence = simulate("mptcp-sdn", duration_s=2.0).evidence.flows
    assert set(evidence) == {"1", "2"}
    assert evidence["1"].counters["opportunistic_retransmissions"] >= 0


def test_settings_reach_the_simulator() -> None:
    plan, homes = with_second_interfaces(
        plan_of("mptcp-dualhomed", sim__mptcp__scheduler="ecf", sim__mptcp__congestion_control="olia")
    )
    described = describe(plan, routes(plan), homes)
    mptcp = described["flows"][0]["mptcp"]
    assert (mptcp["scheduler"], mptcp["congestion_control"]) == ("ecf", "olia")
    # RFC 6182, 5.3: the buffer of all subflows together.
    assert mptcp["receive_buffer_bytes"] == 4 * 131072
    # A packet has room for 28 bytes of the data sequence signal.
    assert described["flows"][0]["mss_bytes"] == 536 - 28
    assert described["flows"][0]["paths"][1]["path"][:3] == ["T0", "T0_2", "S2"]


def test_unknown_methods_are_refused_with_their_place() -> None:
    with pytest.raises(OverrideError, match="scheduler"):
        plan_of("mptcp", sim__mptcp__scheduler="best")
    with pytest.raises(OverrideError, match="congestion_control"):
        plan_of("mptcp", sim__mptcp__congestion_control="reno2")


def test_the_same_seed_gives_the_same_result() -> None:
    plan = plan_of("mptcp-sdn", duration_s=2.0)
    assert SimEngine().simulate(plan) == SimEngine().simulate(plan)


def test_responses_to_spurious_loss_are_settings_and_need_what_they_need() -> None:
    # Packets that overtake each other are no loss: PR-R keeps the window that fast retransmits would halve.
    kept = simulate("ppfs", sim__profile="rfc", sim__spurious="frto", sim__recovery="keep")
    assert goodputs(kept)[1] > 2 * goodputs(simulate("ppfs", sim__profile="rfc"))[1]
    with pytest.raises(RunFailed, match="timestamps must be on, since Eifel compares them"):
        simulate("ppfs", sim__spurious="eifel")
