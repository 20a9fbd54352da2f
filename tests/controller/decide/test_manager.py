"""Flows from request to end, on fake switches."""

from dataclasses import replace
from typing import Any

import pytest

import topologies
from controller.api.schema import parse
from controller.errors import (
    Conflict,
    ControllerError,
    InfeasibleRequest,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from controller.model.events import (
    FlowRequested,
    LeaseRenewed,
    PortWentDown,
    RulesRefused,
    SwitchDisconnected,
    Together,
)
from controller.model.messages import AllocationChanged, FlowEnded, InstallRules, LeaseResult, Reply
from controller.model.rules import TcpConnection, is_flow_cookie
from controller.model.settings import Settings
from controller.model.views import FlowView
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from tests.fakes.requests import FIRST as ONE

TWO: dict[str, Any] = {**ONE, "source": "T1", "destination": "T3", "rate_bps": 4.5e6}
UPPER = ("T0", "S0", "S4", "T2")
MIDDLE = ("T0", "S0", "S2", "S3", "S4", "T2")


def overloaded(net: ControlledNetwork, slack: float = 1e-6) -> list[str]:
    links = net.snapshot().links
    return [link.link for link in links if link.allocated_bps > link.capacity_bps * (1 + slack)]


# The paper's scenarios


def test_a_reserved_share_is_given_to_no_flow() -> None:
    net = ControlledNetwork.brought_up(topologies.load("butterfly"), Settings(reserved_share=0.25))
    net.request(**{**ONE, "rate_bps": 100e6})
    links = net.snapshot().links
    used = [link.allocated_bps / link.capacity_bps for link in links]
    assert max(used) == pytest.approx(0.75, rel=1e-6)
    by_hand = {"rate_bps": None, "paths": [{"nodes": UPPER, "rate_bps": 1e6}], "destination_port": 5002}
    with pytest.raises(Conflict, match="bit/s free"):
        net.request(**ONE | by_hand)


def test_scenario_1_even_split(net: ControlledNetwork) -> None:
    one = net.request(**ONE, objective="even_split")
    two = net.request(**TWO, objective="even_split")
    assert [(s.path, s.rate_bps) for s in one.streams] == [(UPPER, 4.25e6), (MIDDLE, 4.25e6)]
    assert [(s.path, s.rate_bps) for s in two.streams] == [(("T1", "S1", "S2", "S3", "S5", "T3"), 4.5e6)]


def test_scenario_2_fills_the_network(net: ControlledNetwork) -> None:
    one = net.request(**ONE | {"rate_bps": 8.95e6})
    two = net.request(**TWO | {"rate_bps": 31.32e6})
    assert one.rate_bps == pytest.approx(10e6 * 528 / 590, rel=1e-6), "8.95 is rounded from 8.949"
    assert two.rate_bps == pytest.approx(31.32e6)
    assert overloaded(net) == []


def test_scenario_2_in_the_other_order_moves_the_first_flow_for_the_good_of_the_whole(
    net: ControlledNetwork,
) -> None:
    two = net.request(owner="two", **TWO | {"rate_bps": 31.32e6})
    one = net.request(**ONE | {"rate_bps": 8.95e6})
    assert one.rate_bps == pytest.approx(10e6 * 528 / 590, rel=1e-6)
    (notify,) = net.notifications
    assert notify.owner == "two"
    assert isinstance(notify.change, AllocationChanged)
    assert notify.change.flow.rate_bps == pytest.approx(31.32e6)
    assert [stream.path for stream in notify.change.flow.streams] == [stream.path for stream in two.streams]
    assert overloaded(net) == []


def test_one_path_is_plain_tcp_and_pays_for_no_identifiers(net: ControlledNetwork) -> None:
    flow = net.request(**ONE | {"rate_bps": 20e6, "max_paths": 1, "source": "T1", "destination": "T3"})
    (stream,) = flow.streams
    assert stream.rate_bps == pytest.approx(20e6)
    link = next(link for link in net.snapshot().links if link.link == "T1->S1")
    assert link.allocated_bps == pytest.approx(20e6 * 590 / 536)
    back = next(link for link in net.snapshot().links if link.link == "S1->T1")
    assert back.allocated_bps == pytest.approx(0.0458 * 20e6 * 590 / 536)


def test_delays_are_one_way_propagation(net: ControlledNetwork) -> None:
    flow = net.request(**ONE)
    assert [stream.delay_s for stream in flow.streams] == pytest.approx([0.003, 0.005])


# Rules


def test_every_stream_takes_its_path_in_both_directions(net: ControlledNetwork) -> None:
    for fields in (ONE, TWO):
        for path, segment in segments_of(net.request(**fields)):
            assert net.switches.path(Packet.tcp(segment), path[0]) == path
            assert net.switches.path(Packet.tcp(segment.reverse), path[-1]) == path[::-1]


def test_other_traffic_of_the_same_hosts_keeps_the_default_routes(net: ControlledNetwork) -> None:
    net.request(**ONE)
    other = TcpConnection("10.0.0.1", "10.0.0.3", 40000, 80)
    assert net.switches.path(Packet.tcp(other), "T0") == UPPER


def test_a_stream_is_one_rule_at_each_end_of_its_path(net: ControlledNetwork) -> None:
    """One round, however long the path; what is sent meanwhile arrives by the default routes or the path."""
    paths = [{"nodes": MIDDLE, "rate_bps": 1e6}]
    event = FlowRequested(1, parse({**ONE, "rate_bps": 1e6, "paths": paths, "source_ports": (4000,)}))
    segment = TcpConnection("10.0.0.1", "10.0.0.3", 4000, 5001)
    rounds, events = 0, [event]
    while events:
        sent = [m for e in events for m in net.core.handle(e, 0.0) if isinstance(m, InstallRules)]
        rounds += bool(sent)
        events = [net.switches.carry_out(message) for message in sent]  # type: ignore[misc]
        for packet, path in ((segment, MIDDLE), (segment.reverse, MIDDLE[::-1])):
            assert net.switches.path(Packet.tcp(packet), path[0])[-1] == path[-1]
    assert rounds == 1
    tables = {name: net.switches.tables[net.switches.network.datapath_id(name)] for name in MIDDLE[1:-1]}
    have = {
        name: [rule.match.source_ip for rule in table.rules.values() if is_flow_cookie(rule.cookie)]
        for name, table in tables.items()
    }
    assert have == {"S0": ["10.0.0.1"], "S2": [], "S3": [], "S4": ["10.0.0.3"]}
    assert net.switches.path(Packet.tcp(segment), "T0") == MIDDLE
    assert net.switches.path(Packet.tcp(segment.reverse), "T2") == MIDDLE[::-1]


def test_release_leaves_no_rule(net: ControlledNetwork) -> None:
    flows = [net.request(**ONE), net.request(**TWO)]
    assert net.switches.pinned()
    for flow in flows:
        net.release(flow.flow_id)
    assert net.switches.pinned() == []
    assert net.snapshot().flows == ()
    assert all(link.allocated_bps == 0 for link in net.snapshot().links)


def test_release_is_idempotent_but_not_credulous(net: ControlledNetwork) -> None:
    flow = net.request(**ONE)
    net.release(flow.flow_id)
    net.release(flow.flow_id)
    for unknown in ("f-2", "x-1", "f-0", "f-", "", "f-x"):
        with pytest.raises(NotFound):
            net.release(unknown)


def test_release_gives_others_what_becomes_free(net: ControlledNetwork) -> None:
    first = net.request(**ONE | {"rate_bps": 8.9e6})
    second = net.request(
        owner="second", **ONE | {"rate_bps": 8.9e6, "destination_port": 5002, "source": "T1"}
    )
    assert second.rate_bps < 8.9e6
    net.release(first.flow_id)
    assert net.snapshot().flows[0].rate_bps > second.rate_bps
    changes = [notify for notify in net.notifications if isinstance(notify.change, AllocationChanged)]
    assert changes[-1].owner == "second"


# Confirmation


def test_a_switch_that_does_not_confirm_fails_the_request_and_leaves_no_rule(net: ControlledNetwork) -> None:
    net.silent = frozenset({"S4"})
    assert net.handle(FlowRequested(7, parse(ONE))) == []
    assert net.pass_time(2.9) == []
    (answer,) = net.pass_time(0.1)
    assert answer.token == 7
    assert isinstance(answer.result, Unavailable)
    assert "S4 did not confirm the rules within 3 s" in answer.result.reason
    assert net.switches.pinned() == []
    assert net.snapshot().flows == ()


def test_a_switch_that_goes_meanwhile_fails_the_request(net: ControlledNetwork) -> None:
    net.silent = frozenset({"S4"})
    net.handle(FlowRequested(7, parse(ONE)))
    (answer,) = net.handle(SwitchDisconnected(5))
    assert isinstance(answer.result, Unavailable)
    assert "S4" in answer.result.reason


def test_a_switch_that_is_lost_after_it_confirmed_fails_the_request(net: ControlledNetwork) -> None:
    """It returns without the rules that it had, so the flow must not begin."""
    net.silent = frozenset({"S0"})
    paths = [{"nodes": MIDDLE, "rate_bps": 1e6}]
    assert net.handle(FlowRequested(7, parse(ONE | {"rate_bps": None, "paths": paths}))) == []
    (answer,) = net.handle(SwitchDisconnected(5))
    assert isinstance(answer.result, Unavailable)
    assert "S4" in answer.result.reason
    net.switches.tables[5].clear()
    assert net.switches.pinned() == []


def test_a_switch_that_refuses_fails_the_request(net: ControlledNetwork) -> None:
    net.silent = frozenset({"S4"})
    net.handle(FlowRequested(7, parse(ONE)))
    barrier = next(sent.barrier for sent in reversed(net.switches.installed) if sent.datapath_id == 5)
    (answer,) = net.handle(RulesRefused(5, barrier, "OFPFMFC_TABLE_FULL"))
    assert isinstance(answer.result, Unavailable)
    assert "OFPFMFC_TABLE_FULL" in answer.result.reason
    assert net.switches.pinned() == []


def test_a_failed_request_gives_running_flows_their_rates_back(net: ControlledNetwork) -> None:
    two = net.request(**TWO | {"rate_bps": 31.32e6})
    before = [stream.rate_bps for stream in two.streams]
    net.silent = frozenset({"S0"})
    net.handle(FlowRequested(7, parse(ONE | {"rate_bps": 8.95e6})))
    assert [stream.rate_bps for stream in net.snapshot().flows[0].streams] != pytest.approx(before)
    net.pass_time(3.0)
    assert [stream.rate_bps for stream in net.snapshot().flows[0].streams] == pytest.approx(before)


def test_a_new_flow_takes_nothing_from_flows_of_equal_worth(net: ControlledNetwork) -> None:
    first = net.request(owner="1", **ONE | {"rate_bps": 8e6})
    second = net.request(owner="2", **ONE | {"destination_port": 2, "rate_bps": 8e6})
    assert second.rate_bps < 2e6
    with pytest.raises(InfeasibleRequest, match="no capacity is free"):
        net.request(**ONE | {"destination_port": 3})
    net.release(second.flow_id)
    net.pass_time(0.5)
    assert net.request(**ONE | {"destination_port": 3, "rate_bps": 8e6}).rate_bps == second.rate_bps
    assert net.notifications == []
    assert net.snapshot().flows[0].rate_bps == first.rate_bps


def test_flows_that_end_together_share_one_optimum(net: ControlledNetwork) -> None:
    first, *others = [
        net.request(owner=str(port), **ONE | {"destination_port": port, "rate_bps": 8e6}, objective="fair")
        for port in (1, 2, 3, 4)
    ]
    for flow in others:
        net.release(flow.flow_id)
    before = len(net.notifications)
    assert net.snapshot().flows[0].rate_bps < 8e6
    net.pass_time(0.5)
    assert net.snapshot().flows[0].rate_bps == pytest.approx(8e6)
    assert [notify.owner for notify in net.notifications[before:]] == ["1"]
    assert net.snapshot().flows[0].flow_id == first.flow_id


# Leases


def test_a_flow_ends_with_its_lease(net: ControlledNetwork) -> None:
    flow = net.request(owner="me", **ONE)
    net.pass_time(29.9)
    assert len(net.snapshot().flows) == 1
    net.pass_time(0.2)
    assert net.snapshot().flows == ()
    assert net.switches.pinned() == []
    (notify,) = net.notifications
    assert notify.owner == "me"
    assert notify.change == FlowEnded(flow.flow_id, "its lease ran out")


def test_renewal_gives_another_lease_and_another_owner(net: ControlledNetwork) -> None:
    flow = net.request(owner="old", **ONE, lease_s=10.0)
    net.now = 9.0
    (answer,) = net.handle(LeaseRenewed(1, (flow.flow_id, "nobody"), "new"))
    assert answer.result == LeaseResult((flow.flow_id,), ("nobody",))
    net.pass_time(9.0)
    assert net.snapshot().flows[0].expires_in_s == pytest.approx(1.0)
    net.pass_time(2.0)
    assert [notify.owner for notify in net.notifications] == ["new"]


# Changes


def test_a_change_keeps_the_paths(net: ControlledNetwork) -> None:
    flow = net.request(**ONE)
    changed = net.change(flow.flow_id, 2e6)
    assert changed.rate_bps == pytest.approx(2e6)
    assert [stream.path for stream in changed.streams] == [stream.path for stream in flow.streams]
    assert net.change(flow.flow_id, 1e9).rate_bps == pytest.approx(10e6 * 528 / 590, rel=1e-6)
    assert overloaded(net) == []


def test_a_change_of_what_cannot_be_changed(net: ControlledNetwork) -> None:
    with pytest.raises(NotFound):
        net.change("f-1", 1e6)
    by_hand = net.request(**{**ONE, "rate_bps": 1e6, "paths": [{"nodes": UPPER, "rate_bps": 1e6}]})
    with pytest.raises(Conflict, match="given by hand"):
        net.change(by_hand.flow_id, 2e6)
    computed = net.request(**ONE | {"destination_port": 5002})
    for port in (2, 3):  # no way out of S0 is left
        net.handle(PortWentDown(1, port))
    with pytest.raises(InfeasibleRequest, match="which is down"):
        net.change(computed.flow_id, 2e6)


# Ports and streams


def test_source_ports_are_taken_in_order(net: ControlledNetwork) -> None:
    flow = net.request(**ONE, source_ports=(40003, 40001, 40002))
    assert [stream.source_port for stream in flow.streams] == [40003, 40001]


def test_as_many_paths_as_ports_at_most(net: ControlledNetwork) -> None:
    flow = net.request(**ONE, source_ports=(40001,))
    assert len(flow.streams) == 1
    assert flow.rate_bps == pytest.approx(5e6 * 536 / 590), "the best single path holds 5 Mbit/s"


def test_picked_ports_are_unused_ones(net: ControlledNetwork) -> None:
    first = net.request(**ONE | {"rate_bps": 2e6})
    second = net.request(**ONE | {"rate_bps": 2e6})
    ports = [stream.source_port for flow in (first, second) for stream in flow.streams]
    assert len(set(ports)) == len(ports)
    assert min(ports) >= 61000


def test_exactly_so_many_streams(net: ControlledNetwork) -> None:
    flow = net.request(**ONE | {"rate_bps": 1e6}, streams=2)
    assert [stream.path for stream in flow.streams] == [UPPER, MIDDLE]
    assert flow.rate_bps == pytest.approx(1e6)


# Refusals


@pytest.mark.parametrize(
    ("fields", "error", "field", "reason"),
    [
        ({"source": "T9"}, NotFound, "source", "no host 'T9'; known are T0, T1, T2, T3"),
        ({"destination": "10.0.0.9"}, NotFound, "destination", "no host '10.0.0.9'"),
        ({"destination": "T0"}, InvalidRequest, "destination", "the source itself"),
        ({"destination": "10.0.0.1"}, InvalidRequest, "destination", "the source itself"),
        ({"rate_bps": -1.0}, InvalidRequest, "rate_bps", "greater than 0"),
        ({"rate_bps": float("nan")}, InvalidRequest, "rate_bps", "finite"),
        ({"rate_bps": float("inf")}, InvalidRequest, "rate_bps", "finite"),
        ({"rate_bps": float("-inf")}, InvalidRequest, "rate_bps", "finite"),
        ({"rate_bps": None}, InvalidRequest, "rate_bps", "is missing"),
        ({"rate_bps": "8"}, InvalidRequest, "rate_bps", "must be a number"),
        ({"destination_port": 0}, InvalidRequest, "destination_port", "at least 1"),
        ({"destination_port": 65536}, InvalidRequest, "destination_port", "at most 65535"),
        ({"source_ports": (5, 5)}, InvalidRequest, "source_ports", "the same port is given twice"),
        ({"source_ports": (5, 0)}, InvalidRequest, "source_ports[1]", "at least 1"),
        ({"packet_bytes": 80, "segment_overhead_bytes": 80}, InvalidRequest, "packet_bytes", "hold no data"),
        ({"objective": "nonsense"}, InvalidRequest, "objective", "no objective 'nonsense'; choose one of"),
        ({"streams": 4}, InfeasibleRequest, "streams", "only 3 lead from T0 to T2"),
        (
            {"streams": 2, "source_ports": (5,)},
            InvalidRequest,
            "source_ports",
            "2 streams need as many ports",
        ),
        ({"streams": 2, "max_paths": 1}, InvalidRequest, "streams", "max_paths is 1"),
        ({"colour": "red"}, InvalidRequest, "colour", "no such field"),
    ],
)
def test_refusals_name_field_and_reason(
    net: ControlledNetwork, fields: dict[str, Any], error: type[ControllerError], field: str, reason: str
) -> None:
    with pytest.raises(error) as raised:
        net.request(**ONE | fields)
    assert isinstance(raised.value, NotFound | InvalidRequest | InfeasibleRequest)
    assert raised.value.field == field
    assert reason in raised.value.reason
    assert net.snapshot().flows == ()
    assert net.switches.pinned() == []


def test_a_port_in_use_is_a_conflict(net: ControlledNetwork) -> None:
    net.request(**ONE | {"rate_bps": 1e6}, source_ports=(40001, 40002))
    with pytest.raises(Conflict, match="port 40001 of T0 to port 5001 of T2 is in use by flow f-1"):
        net.request(**ONE | {"rate_bps": 1e6}, source_ports=(40009, 40001))
    with pytest.raises(Conflict):  # the same connection from its other end
        net.request(source="T2", destination="T0", destination_port=40001, source_ports=(5001,), rate_bps=1e6)
    net.request(**ONE | {"rate_bps": 1e6, "destination_port": 5002}, source_ports=(40001,))


def test_a_destination_that_cannot_be_reached(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(5, 1))
    with pytest.raises(InfeasibleRequest, match="T2 cannot be reached from T0") as raised:
        net.request(**ONE)
    assert raised.value.field == "destination"


def test_nothing_free_is_infeasible_and_changes_nothing(net: ControlledNetwork) -> None:
    paths = [{"nodes": UPPER, "rate_bps": 4.475e6}, {"nodes": MIDDLE, "rate_bps": 4.475e6}]
    net.request(**ONE | {"rate_bps": None, "paths": paths})
    before = net.snapshot()
    with pytest.raises(InfeasibleRequest, match="no capacity is free from T0 to T2"):
        net.request(**ONE | {"destination_port": 5002})
    assert net.snapshot() == before


# Paths given by hand


def test_paths_given_by_hand_are_taken_as_they_are(net: ControlledNetwork) -> None:
    paths = [{"nodes": MIDDLE, "rate_bps": 4.25e6}, {"nodes": UPPER, "rate_bps": 4.25e6}]
    flow = net.request(**ONE | {"paths": paths}, source_ports=(7, 8, 9))
    assert [(s.source_port, s.path, s.rate_bps) for s in flow.streams] == [
        (7, MIDDLE, 4.25e6),
        (8, UPPER, 4.25e6),
    ]
    assert flow.objective is None
    for path, segment in segments_of(flow):
        assert net.switches.path(Packet.tcp(segment), "T0") == path


def test_computed_flows_leave_paths_given_by_hand_alone(net: ControlledNetwork) -> None:
    by_hand = net.request(**ONE | {"rate_bps": None, "paths": [{"nodes": UPPER, "rate_bps": 4e6}]})
    computed = net.request(**ONE | {"destination_port": 5002})
    assert net.snapshot().flows[0].streams == by_hand.streams
    assert computed.rate_bps < 8.5e6
    assert overloaded(net) == []


def test_the_papers_rounded_rates_fit(net: ControlledNetwork) -> None:
    paths = [{"nodes": UPPER, "rate_bps": 4.475e6}, {"nodes": MIDDLE, "rate_bps": 4.475e6}]
    assert net.request(**ONE | {"rate_bps": 8.95e6, "paths": paths}).rate_bps == 8.95e6
    assert overloaded(net, slack=1e-3) == []


def by_hand(*paths: tuple[tuple[str, ...], float]) -> list[dict[str, Any]]:
    return [{"nodes": nodes, "rate_bps": rate_bps} for nodes, rate_bps in paths]


ELSEWHERE = ("T0", "S0", "S4", "T3")
NO_SUCH_LINK = ("T0", "S0", "S3", "S4", "T2")
IN_A_CIRCLE = ("T0", "S0", "S2", "S0", "S4", "T2")
GOOD = by_hand((UPPER, 1e6))
BOTH = by_hand((UPPER, 1e6), (MIDDLE, 1e6))


@pytest.mark.parametrize(
    ("fields", "error", "field", "reason"),
    [
        ({"paths": by_hand((ELSEWHERE, 1e6))}, InvalidRequest, "paths[0].nodes", "not from T0 to T2"),
        ({"paths": by_hand((NO_SUCH_LINK, 1e6))}, InvalidRequest, "paths[0].nodes", "no link S0->S3"),
        ({"paths": by_hand((IN_A_CIRCLE, 1e6))}, InvalidRequest, "paths[0].nodes", "twice"),
        ({"paths": GOOD * 2}, InvalidRequest, "paths", "the same path is given twice"),
        ({"paths": GOOD, "rate_bps": 2e6}, InvalidRequest, "rate_bps", "add up to 1e+06"),
        ({"paths": by_hand((UPPER, 0.0))}, InvalidRequest, "paths[0].rate_bps", "greater than 0"),
        ({"paths": by_hand((UPPER, 5e6))}, Conflict, "paths", "link S0->S4 has 5e+06 of 5e+06"),
        ({"paths": GOOD, "objective": "even_split"}, InvalidRequest, "objective", "left out"),
        ({"paths": GOOD, "streams": 1}, InvalidRequest, "streams", "left out"),
        ({"paths": BOTH, "source_ports": (5,)}, InvalidRequest, "source_ports", "2 streams need as many"),
    ],
)
def test_bad_paths(
    net: ControlledNetwork, fields: dict[str, Any], error: type[ControllerError], field: str, reason: str
) -> None:
    with pytest.raises(error) as raised:
        net.request(**{**ONE, "rate_bps": None, **fields})
    assert isinstance(raised.value, InvalidRequest | Conflict)
    assert raised.value.field == field
    assert reason in raised.value.reason


def test_a_path_over_a_lost_link_is_infeasible(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(1, 2))
    with pytest.raises(InfeasibleRequest, match="link S0-S4 is down"):
        net.request(**{**ONE, "rate_bps": 1e6, "paths": [{"nodes": UPPER, "rate_bps": 1e6}]})


def test_a_flow_that_no_path_carries_is_reported(net: ControlledNetwork) -> None:
    flow = net.request(**ONE)
    for port in (2, 3):
        net.handle(PortWentDown(1, port))
    net.request(**TWO)
    (lost,) = net.snapshot().health.flows_on_lost_links
    assert lost.flow_id == flow.flow_id
    assert lost.links == ("S0-S2",), "where it went last"


def together(**fields: Any) -> tuple[FlowRequested, ...]:
    """Return four requests, each of which wants more than its path of least delay has: it takes a solve."""
    wanted = ONE | {"rate_bps": 6e6}
    return tuple(
        FlowRequested(
            token, parse(wanted | {"source_ports": (40000 + 2 * token, 40001 + 2 * token)} | fields)
        )
        for token in range(1, 5)
    )


def granted_bps(answers: list[Reply]) -> list[float]:
    return [answer.result.rate_bps for answer in answers if isinstance(answer.result, FlowView)]


def test_of_requests_that_come_together_one_solve_is_made_at_a_time() -> None:
    """What switches say meanwhile waits for one solve, not for all; nobody is overtaken."""
    net = ControlledNetwork.brought_up(topologies.load("butterfly"))
    answers = net.handle(Together(together(streams=2)))
    assert sorted(answer.token for answer in answers) == [1, 2, 3, 4]
    assert [len(message.events) for message in net.postponed] == [3]
    assert sum(granted_bps(answers)) == pytest.approx(8.95e6, rel=0.01)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "min_max_utilisation"])
def test_requests_that_come_together_share_a_solve_and_are_granted_each_by_itself(objective: str) -> None:
    net = ControlledNetwork.brought_up(topologies.load("butterfly"), Settings(objective=objective))
    first, second, third, fourth = together()
    same_ports = replace(fourth, request=replace(fourth.request, source_ports=first.request.source_ports))
    unknown = replace(third, request=replace(third.request, destination="T9"))
    solves = net.core._flows._optima.solves
    answers = net.handle(Together((first, second, unknown, same_ports)))
    assert net.core._flows._optima.solves <= solves + 2, "one for all, one for what a refused one leaves"
    assert net.postponed == []
    outcomes = {answer.token: answer.result for answer in answers}
    assert isinstance(outcomes[3], NotFound)
    assert isinstance(outcomes[4], Conflict | InfeasibleRequest)
    net.pass_time(2.0)
    flows = net.snapshot().flows
    assert sum(flow.rate_bps for flow in flows) == pytest.approx(8.95e6, rel=0.01)
    assert all(link.allocated_bps <= link.capacity_bps * (1 + 1e-6) for link in net.snapshot().links)
