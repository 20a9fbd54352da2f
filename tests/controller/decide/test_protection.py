"""A port that goes down is healed by the switch, before the controller has heard of it."""

import re
from dataclasses import replace
from typing import Any

import pytest

import topologies
from controller.decide.component import Context
from controller.decide.protection import Protection
from controller.install.outbox import Outbox
from controller.install.transactions import Transactions
from controller.model.client_events import ClientEventKind
from controller.model.events import PortCameUp, PortWentDown
from controller.model.journal import Journal
from controller.model.rules import ETH_TYPE_IPV4, IP_PROTO_TCP, TABLE_LABEL, Rule
from controller.model.settings import Settings
from controller.state.state import State
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.requests import WITH_PORTS as REQUEST
from topologies.model import Arc, Network


def bring_up(network: str, **settings: Any) -> ControlledNetwork:
    net = ControlledNetwork.brought_up(topologies.load(network), Settings(**settings))
    net.let_run(1, 0.05)
    for packet, source, destination in packets(net):
        assert net.switches.path(packet, source)[-1] == destination
    return net


def between_switches(network: Network) -> list[Arc]:
    return [arc for arc in network.arcs() if not {arc.tail, arc.head} & set(network.hosts)]


def set_down(net: ControlledNetwork, link: str, is_down: bool) -> None:
    """Let both ends of a link notice; the controller hears nothing."""
    for arc in between_switches(net.switches.network):
        if arc.link == link:
            ports = net.switches.tables[net.switches.network.datapath_id(arc.tail)].down
            (ports.add if is_down else ports.discard)(arc.tail_port)


def arrives(net: ControlledNetwork, packet: Packet, source: str) -> str:
    """Return where a packet ends; switches may see it twice on its way around a link."""
    network = net.switches.network
    node = next(arc.head for arc in network.arcs() if arc.tail == source)
    for _ in range(3 * len(network.switches)):
        if node in network.hosts:
            return node
        step, packet = net.switches.tables[network.datapath_id(node)].forward(packet)
        if isinstance(step, str):
            return step
        arc = next(arc for arc in network.arcs() if (arc.tail, arc.tail_port) == (node, step))
        node, packet = arc.head, replace(packet, in_port=arc.head_port)
    return "a circle"


def packets(net: ControlledNetwork) -> list[tuple[Packet, str, str]]:
    """Return a packet of each stream and direction, and one of some pairs of hosts without a flow."""
    network = net.switches.network
    cases = []
    for flow in net.snapshot().flows:
        for stream in flow.streams:
            ends = (flow.source, flow.destination), (stream.source_port, flow.destination_port)
            for (a, b), (p, q) in (ends, (ends[0][::-1], ends[1][::-1])):
                packet = Packet(ETH_TYPE_IPV4, IP_PROTO_TCP, network.host_ip(a), network.host_ip(b), p, q)
                cases.append((packet, a, b))
    hosts = network.hosts
    pairs = [(a, b) for k, a in enumerate(hosts) for b in hosts[k + 1 : k + 4]]
    cases += [(Packet(ETH_TYPE_IPV4, 17, network.host_ip(a), network.host_ip(b)), a, b) for a, b in pairs]
    return cases


@pytest.mark.parametrize("network", ["butterfly", "ring:5", "fat-tree:4:rate_bps=10e6"])
def test_switches_heal_any_link_that_the_network_can_do_without(network: str) -> None:
    net = bring_up(network)
    if network == "butterfly":
        assert len(net.request(**REQUEST).streams) == 2
    for link in sorted({arc.link for arc in between_switches(net.switches.network)}):
        set_down(net, link, True)
        for packet, source, destination in packets(net):
            assert arrives(net, packet, source) == destination, (link, packet)
        set_down(net, link, False)


@pytest.mark.parametrize("size", [21, 22, 23, 45])
def test_a_bypass_longer_than_a_label_takes_others_on_the_way(size: int) -> None:
    """In a ring a label reaches 20 switches, and 17 where another one follows."""
    net = bring_up(f"ring:{size}")
    network = net.switches.network
    links = sorted({arc.link for arc in between_switches(network)})
    sample = packets(net)[:: size // 4]
    for link in links[:: size // 4]:
        set_down(net, link, True)
        for packet, source, destination in sample:
            assert arrives(net, packet, source) == destination, (link, packet)
        set_down(net, link, False)
    assert len(relays(net)) == {21: 0, 22: 2 * 22, 23: 2 * 23, 45: 2 * 45 * 2}[size]
    first = between_switches(network)[0]
    net.handle(PortWentDown(network.datapath_id(first.tail), first.tail_port))
    net.let_run(3, 0.05)
    assert len(relays(net)) == {21: 0, 22: 2, 23: 2, 45: 4}[size], "of the link itself: others have no way"
    net.handle(PortCameUp(network.datapath_id(first.tail), first.tail_port))
    for event in net.switches.discoveries():
        net.handle(event)
    net.let_run(3, 0.05)
    assert len(relays(net)) == {21: 0, 22: 2 * 22, 23: 2 * 23, 45: 2 * 45 * 2}[size]
    assert not [report for report in net.reports if report.kind is ClientEventKind.RULES_REPAIRED]


def relays(net: ControlledNetwork) -> list[Rule]:
    """Return the rules at which a label of a bypass ends and another begins."""
    relayed = [
        rule for rule in net.switches.rules() if rule.table == TABLE_LABEL and rule.match.destination_mac
    ]
    return [rule for rule in relayed if re.fullmatch("1e:[0-9a-f:]*", str(rule.match.destination_mac))]


def test_without_another_way_packets_are_dropped() -> None:
    net = bring_up("line:3")
    set_down(net, "s1-s2", True)
    assert {arrives(net, *p[:2]) for p in packets(net)} <= {"dropped", *net.switches.network.hosts}
    assert "a circle" not in {arrives(net, *p[:2]) for p in packets(net)}


def test_a_bypass_that_loses_a_link_is_replaced() -> None:
    net = bring_up("fat-tree:4:rate_bps=10e6")
    network = net.switches.network
    lost, *_ = between_switches(network)
    net.handle(PortWentDown(network.datapath_id(lost.tail), lost.tail_port))
    net.let_run(1, 0.05)
    for link in sorted({arc.link for arc in between_switches(network)} - {lost.link}):
        set_down(net, lost.link, True)
        set_down(net, link, True)
        outcomes = {arrives(net, packet, source) for packet, source, _ in packets(net)}
        assert "a circle" not in outcomes, link
        set_down(net, link, False)
    set_down(net, lost.link, False)
    net.handle(PortCameUp(network.datapath_id(lost.tail), lost.tail_port))
    net.let_run(1, 0.05)
    before = {number: dict(table.rules) for number, table in net.switches.tables.items()}
    net.let_run(1, 0.05)
    assert {number: dict(table.rules) for number, table in net.switches.tables.items()} == before


def test_switches_without_such_groups_get_none() -> None:
    net = bring_up("butterfly", fast_failover=False)
    assert not any(table.groups for table in net.switches.tables.values())
    assert net.snapshot().health.ready


def test_each_link_that_comes_up_costs_the_same() -> None:
    state = State(topologies.load("waxman:30:seed=1"), Settings())
    protection = Protection(Context(state, Outbox(), Transactions(state, Outbox())))
    state.live.assume_all()
    for link in state.live.take_changed_links():
        with Journal() as journal:
            protection.links_changed([link], now=1.0)
        assert len(journal) < 10, "with thousands of links, nothing else would be done for a minute"
    while (due := protection.next_deadline()) is not None:
        protection.tick(due)
    assert all(len(group.buckets) == 2 for group in protection.groups("s1"))


@pytest.mark.parametrize("cost_s", [0.0, 0.001, 0.004])
def test_bypasses_are_found_in_a_tenth_of_the_time_at_most(cost_s: float) -> None:
    """`cost_s` is that of one bypass."""
    state = State(topologies.load("waxman:30:seed=1"), Settings())
    protection = Protection(Context(state, Outbox(), Transactions(state, Outbox())))
    state.live.assume_all()
    protection.links_changed(sorted(state.live.take_changed_links()), now=0.0)
    began = protection.next_deadline()
    assert began is not None
    now, busy_s, rounds, due = began, 0.0, [], protection.next_deadline()
    while due is not None:
        now, left = due, len(protection._todo) or len(protection._arcs)  # at first all of them
        protection.tick(now)
        rounds.append(cost_s * (left - len(protection._todo)))
        protection.sent(now + rounds[-1])
        due = protection.next_deadline()
        busy_s += rounds[-1]
        assert due is None or due - now >= 9.99 * rounds[-1]
    assert sum(rounds) == pytest.approx(cost_s * len(protection._arcs))
    assert max(rounds[2:]) <= max(0.01, cost_s), "others do not wait long for one round"
    assert now - began <= 10 * busy_s + 0.021 * len(rounds), "and no more"


def test_a_small_network_has_its_bypasses_at_once() -> None:
    net = ControlledNetwork(topologies.load("butterfly"))
    for event in net.switches.arrivals():
        net.handle(event)
    net.pass_time(0.3)
    net.pass_time(0.02)
    tables = net.switches.tables.values()
    assert all(len(group.buckets) == 2 for table in tables for group in table.groups.values())
