"""What a run is checked for: TCP as the scenario asks for it, and second interfaces where they are needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topologies
from experiments.engines.dual_homing import with_second_interfaces
from experiments.engines.live.socket_state import SocketState
from experiments.engines.live.verification import mismatches, not_vouched_for, unverified
from experiments.errors import ScenarioError
from experiments.model import scenario
from experiments.model.plan import RunPlan
from experiments.model.scenario import Scenario
from experiments.model.settings import Mptcp, Tcp


def socket_with(congestion_control: str, *options: str) -> SocketState:
    return SocketState("10.0.0.1", 61000, 5001, congestion_control, False, options, None, {})


def test_a_connection_as_asked_for_has_no_mismatch() -> None:
    asked = Tcp(congestion_control="cubic", sack=True, timestamps=False)
    assert mismatches(asked, "cubic", "1", [socket_with("cubic", "sack")]) == []
    assert mismatches(Tcp(), "reno", "1", [socket_with("reno", "ts", "sack"), socket_with("reno")]) == []
    # A subflow whose join is under way has not agreed on options yet.
    joining = replace(socket_with("cubic"), is_open=False)
    assert mismatches(asked, "cubic", "1", [socket_with("cubic", "sack"), joining]) == []


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        (socket_with("bbr", "sack"), "congestion control bbr where cubic was asked for"),
        (socket_with("cubic"), "flow 1 sent without tcp_sack, which was set to 1"),
        (socket_with("cubic", "ts", "sack"), "flow 1 sent with tcp_timestamps, which was set to 0"),
    ],
)
def test_each_mismatch_is_told_even_of_one_connection_among_others(actual: SocketState, reason: str) -> None:
    asked = Tcp(congestion_control="cubic", sack=True, timestamps=False)
    (told,) = mismatches(asked, "cubic", "1", [socket_with("cubic", "sack"), actual])
    assert told.endswith(reason)


def test_a_connection_that_was_missed_needs_one_between_the_same_hosts() -> None:
    ends = {"1": ("T0", "T2"), "2": ("T0", "T2"), "3": ("T2", "T0")}
    seen = {name: [socket_with("reno")] for name in ends}
    assert unverified(ends, seen) == not_vouched_for(ends, seen) == []
    seen = {"1": [socket_with("reno")], "2": []}
    assert unverified(ends, seen) == ["2", "3"]
    (told,) = not_vouched_for(ends, seen)
    assert told.startswith("no connection from T2 to T0 was there")
    assert "flow 3" in told
    assert "flow 1, 2" in not_vouched_for(ends, {})[0]


@pytest.mark.parametrize("name", ["butterfly", "ring", "fat-tree", "wan"])
def test_every_case_of_these_files_runs_with_second_interfaces(name: str) -> None:
    loaded = scenario.load(name)
    network = topologies.load(loaded.network, variant=loaded.variant)
    for case_name, case in loaded.cases.items():
        plan = plan_of("mptcp-dualhomed", loaded).model_copy(
            update={"network": network, "case_name": case_name}
        )
        extended, homes = with_second_interfaces(plan)
        assert set(homes.values()) == {host for flow in case.flows.values() for host in (flow.src, flow.dst)}
        links = {link.ends for link in extended.network.links}
        for second, host in homes.items():
            (first,) = (b for a, b in (arc_ends(link) for link in network.links) if a == host)
            assert all(set(ends) != {second, first} for ends in links), "its own switch has the same paths"


def arc_ends(link: topologies.Link) -> tuple[str, str]:
    """Return the ends of a link, a host first."""
    a, b = link.ends
    return (b, a) if b.startswith(("T", "h")) else (a, b)


def butterfly_with(**changes: object) -> Scenario:
    return scenario.load("butterfly").model_copy(update=changes)


def test_mptcp_has_a_buffer_that_its_packets_cannot_fill() -> None:
    assert butterfly_with().mptcp_receive_buffer_bytes == 4 * 131072
    assert butterfly_with(mptcp=Mptcp(receive_buffer_bytes=8192)).mptcp_receive_buffer_bytes == 8192
    assert butterfly_with(tcp=Tcp()).mptcp_receive_buffer_bytes is None


def plan_of(protocol: str, used: Scenario) -> RunPlan:
    return RunPlan(
        scenario=used,
        network=topologies.load("butterfly"),
        case_name="1",
        protocol=protocol,
        seed=1,
        duration_s=1.0,
    )


def test_only_dual_homed_terminals_get_a_second_interface() -> None:
    plan = plan_of("mptcp", butterfly_with())
    assert with_second_interfaces(plan) == (plan, {})
    extended, homes = with_second_interfaces(plan_of("mptcp-dualhomed", butterfly_with()))
    assert homes == {"T0_2": "T0", "T2_2": "T2", "T1_2": "T1", "T3_2": "T3"}
    assert set(extended.network.hosts) == {*plan.network.hosts, *homes}


def test_a_missing_second_link_is_named() -> None:
    plan = plan_of("mptcp-dualhomed", butterfly_with(second_links={}))
    with pytest.raises(ScenarioError, match="needs a second link of T0, T2, T1, T3"):
        with_second_interfaces(plan)
