"""A topology file that is read again: what is new comes, what is gone goes, and flows are planned again."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Collection, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from controller.api.schema import parse
from controller.errors import RequestError
from controller.model.events import ConfigurationChanged, FlowRequested
from controller.model.messages import FlowEnded
from controller.model.requests import LinkChange
from controller.model.rules import TcpConnection
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.requests import WITH_PORTS as REQUEST
from topologies.model import Link, Network, Node

BUTTERFLY = topologies.load("butterfly")


def changed(
    network: Network,
    without: Collection[str] = (),
    nodes: Collection[Node] = (),
    links: Collection[Link] = (),
) -> Network:
    """Return a network without some nodes and links, by name, and with others after those it has."""
    stay = [node for node in network.nodes if node.name not in without]
    kept = [link for link in network.links if not {link.name, *link.ends} & set(without)]
    return Network(name=network.name, description="", nodes=(*stay, *nodes), links=(*kept, *links))


def read_again(net: ControlledNetwork, network: Network, **links: LinkChange) -> Any:
    """Let the switches be wired as the file says, and the controller read it."""
    net.switches.rewire(network)
    (answer,) = net.handle(ConfigurationChanged(-1, net.settings, links, network))
    for event in net.switches.discoveries():
        net.handle(event)
    net.pass_time(1.0)
    return answer.result


def trace_is_path(net: ControlledNetwork, flow: Any) -> None:
    for stream in flow.streams:
        ends = flow.source_ip, flow.destination_ip, stream.source_port, flow.destination_port
        assert net.switches.path(Packet.tcp(TcpConnection(*ends)), flow.source) == stream.path


def test_a_new_host_behind_a_new_switch_can_be_reached() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    flow = net.request(**REQUEST)
    wider = changed(
        BUTTERFLY,
        nodes=(Node(name="S9", kind="switch"), Node(name="T9", kind="host")),
        links=(
            Link(ends=("S9", "S2"), rate_bps=5e6, delay_us=500),
            Link(ends=("S9", "S3"), rate_bps=5e6, delay_us=500),
            Link(ends=("T9", "S9"), rate_bps=1e7, delay_us=100),
        ),
    )
    assert read_again(net, wider) is None
    health = net.snapshot().health
    assert health.ready
    assert health.faults == ()
    after = net.snapshot().flows[0]
    assert (after.streams, after.lost_links) == (flow.streams, ()), "it stays as it is"
    trace_is_path(net, after)
    trace_is_path(net, net.request(**REQUEST | {"destination": "T9", "rate_bps": 1e6}))
    kinds = [report.kind.value for report in net.reports if report.kind]
    assert "topology_changed" in kinds
    assert net.notifications == []


def test_what_is_gone_goes_and_flows_take_what_is_left() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    flow = net.request(owner="me", **REQUEST)
    lost = {"source": "T1", "destination": "T3", "source_ports": [40009], "rate_bps": 1e5}
    doomed = net.request(owner="you", **REQUEST | lost)
    assert ("T0", "S0", "S4", "T2") in [stream.path for stream in flow.streams]
    assert read_again(net, changed(BUTTERFLY, without=("S0-S4", "T3"))) is None
    (left,) = net.snapshot().flows
    assert left.flow_id == flow.flow_id
    assert left.rate_bps > 0
    assert left.lost_links == ()
    trace_is_path(net, left)
    told = {each.owner: each.change for each in net.notifications}
    assert isinstance(told["you"], FlowEnded)
    assert told["you"].flow_id == doomed.flow_id
    assert told["me"].flow.streams == left.streams  # type: ignore[union-attr]
    net.release(left.flow_id)
    net.release(doomed.flow_id)  # ended already: no error
    net.pass_time(1)
    assert not net.switches.pinned()


def test_a_request_that_waits_is_told_to_ask_again_and_a_link_stays_as_it_was_set() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    net.handle(ConfigurationChanged(-1, net.settings, {"S0-S4": LinkChange(rate_bps=1e6)}))
    net.silent = frozenset({"S0"})
    assert net.handle(FlowRequested(7, parse(REQUEST))) == []
    net.silent = frozenset()
    net.switches.rewire(network := changed(BUTTERFLY, without=("T1",)))
    answers = net.handle(ConfigurationChanged(-1, net.settings, {}, network))
    (refused,) = (answer.result for answer in answers if answer.token == 7)
    assert isinstance(refused, RequestError)
    assert "ask again" in str(refused)
    capacities = {link.link: link.capacity_bps for link in net.snapshot().links}
    assert capacities["S0->S4"] == 1e6


def test_a_file_whose_links_the_configuration_does_not_fit_changes_nothing() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    flow = net.request(**REQUEST)
    before = net.snapshot()
    network = changed(BUTTERFLY, without=("S2-S3",))
    (answer,) = net.handle(ConfigurationChanged(-1, net.settings, {"S2-S3": LinkChange(1e6)}, network))
    assert "no link 'S2-S3'" in str(answer.result)
    assert net.snapshot() == before
    assert net.snapshot().flows[0] == flow


def _drawn(draw: random.Random) -> tuple[Network, Network]:
    """Return a network, and what its file says later."""
    network = topologies.load(f"waxman:{draw.randint(4, 9)}:seed={draw.randint(1, 99)}:rate_bps=10e6")
    between = [link.name for link in network.links if not {*link.ends} & set(network.hosts)]
    without = set(draw.sample(between, draw.randint(0, 2)))
    if draw.random() < 0.5:
        without.add(draw.choice(network.hosts[2:]))
    a, b = draw.sample(network.switches, 2)
    is_new = not {f"{a}-{b}", f"{b}-{a}"} & set(between)
    added = [Link(ends=(a, b), rate_bps=10e6, delay_us=draw.choice([100, 900]))] if is_new else []
    return network, changed(network, without=without, links=added)


def _ask_for_flows(nets: Sequence[ControlledNetwork], draw: random.Random) -> None:
    for port in range(draw.randint(1, 6)):
        source, destination = draw.sample(nets[0].switches.network.hosts, 2)
        ports = {"source_ports": [1000 + port, 2000 + port], "destination_port": 80}
        wanted: dict[str, Any] = {"source": source, "destination": destination, **ports}
        rate_bps = draw.choice([1e6, 6e6, 14e6])
        for net in nets:
            with contextlib.suppress(RequestError):
                net.request(**wanted, rate_bps=rate_bps)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_reading_the_file_again_and_a_restart_with_it_leave_the_same_flows(seed: int) -> None:
    draw = random.Random(seed)
    network, other = _drawn(draw)
    nets = read, restarted = [ControlledNetwork.brought_up(network) for _ in range(2)]
    _ask_for_flows(nets, draw)
    read_again(read, other)
    restarted.switches.rewire(other)
    restarted.restart()
    restarted.come_back()
    flows = []
    for net in nets:
        net.pass_time(5.0)
        flows.append({(flow.flow_id, flow.source, flow.destination) for flow in net.snapshot().flows})
        _check(net)
    assert flows[0] == flows[1]


def _check(net: ControlledNetwork) -> None:
    """Flows' packets take their paths, no link has too much, and with the flows go their rules."""
    snapshot = net.snapshot()
    for flow in snapshot.flows:
        assert flow.lost_links == ()
        if flow.rate_bps > 0:
            trace_is_path(net, flow)
    assert all(link.allocated_bps <= link.capacity_bps * (1 + 1e-6) for link in snapshot.links)
    for flow in snapshot.flows:
        net.release(flow.flow_id)
    net.pass_time(2.0)
    assert not net.switches.pinned()
    assert "rules_repaired" not in [report.kind.value for report in net.reports if report.kind]
