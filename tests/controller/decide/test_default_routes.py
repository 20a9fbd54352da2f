"""Default routes: made when a host asks for another one or sends to it, and gone when they are not used."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import topologies
from controller.model import arp
from controller.model.client_events import ClientEventKind
from controller.model.events import (
    PacketArrived,
    PortCameUp,
    PortWentDown,
    RuleExpired,
    TimePassed,
)
from controller.model.host_frames import destination_of
from controller.model.messages import InstallRules, PacketOut
from controller.model.rules import ETH_TYPE_ARP, ETH_TYPE_IPV6, Rule
from controller.model.settings import Settings
from tests.controller.decide.test_labels import ask, ladder
from tests.controller.decide.test_neighbours import announces, asks
from tests.fakes.openflow_table import ControlledNetwork, Packet, ip_frame
from tests.fakes.rule_table import CONTROLLER, DROPPED
from topologies.model import IpVersion, Network

BUTTERFLY = topologies.load("butterfly")
S0, S1, S2, S3, S4 = (BUTTERFLY.datapath_id(f"S{number}") for number in range(5))
IP, MAC = "10.0.7.7", "02:00:00:00:00:77"


def routes(net: ControlledNetwork) -> dict[int, list[str]]:
    """Return to which addresses each switch has a route that goes when it is not used."""
    found = {
        datapath_id: [str(rule.match.destination_ip) for rule in table.rules.values() if rule.idle_s]
        for datapath_id, table in net.switches.tables.items()
    }
    return {datapath_id: sorted(ips) for datapath_id, ips in found.items() if ips}


def test_a_host_that_asks_is_answered_when_both_ends_have_a_label(net: ControlledNetwork) -> None:
    assert routes(net) == {}, "nobody has asked"
    messages = net.core.handle(PacketArrived(S0, 1, asks("10.0.0.3")), net.now)
    *installed, answer = [m for m in messages if isinstance(m, InstallRules | PacketOut)]
    assert isinstance(answer, PacketOut)
    assert [(m.datapath_id, len(m.entries)) for m in installed if isinstance(m, InstallRules)] == [
        (S0, 2),
        (S4, 2),
    ], "one for packets, and one for who asks for the host"
    for message in installed:
        net.switches.carry_out(message)
    assert routes(net) == {S0: ["10.0.0.3"], S4: ["10.0.0.1"]}
    assert ask(net, "T0", "T2") == ("T0", "S0", "S4", "T2")
    assert ask(net, "T2", "T0") == ("T2", "S4", "S0", "T0")
    (again,) = net.core.handle(PacketArrived(S0, 1, asks("10.0.0.3")), net.now)
    assert isinstance(again, PacketOut), "they have them already"
    assert net.snapshot().health.ready


def test_a_packet_without_a_route_is_delivered_and_the_next_ones_have_one(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S1, 1, ip_frame("10.0.0.4")))
    assert routes(net) == {S1: ["10.0.0.4"]}
    (delivered,) = net.switches.packets_out
    host = next(host for host in net.snapshot().hosts if "10.0.0.4" in host.addresses)
    assert (delivered.datapath_id, delivered.port) == (BUTTERFLY.datapath_id(host.switch), host.port)
    assert delivered.frame == bytes.fromhex(host.mac.replace(":", "")) + ip_frame("10.0.0.4")[6:]
    net.handle(PacketArrived(S1, 1, ip_frame("10.0.9.9")))
    net.handle(PacketArrived(S1, 1, ip_frame("10.0.0.2")))
    net.handle(PacketArrived(S1, 1, ip_frame("2001:db8::9")))
    assert len(net.switches.packets_out) == 1, "unknown hosts, and itself"
    told = [each for each in net.reports if each.kind is ClientEventKind.DESTINATION_UNKNOWN]
    assert [each.data["ip"] for each in told] == ["10.0.9.9"], "once a minute"
    assert routes(net) == {S1: ["10.0.0.4"]}


def test_a_route_that_is_not_used_goes_and_comes_back(net: ControlledNetwork) -> None:
    ask(net, "T0", "T2")
    net.let_run(3.0)
    table = net.switches.tables[S0]
    (rule,) = [rule for rule in table.rules.values() if rule.idle_s]
    del table.rules[rule.key]
    net.handle(RuleExpired(S0, "10.0.0.3"))
    assert net.let_run(5.0) == [], "it is no rule that vanished"
    assert ask(net, "T0", "T2") == ("T0", "S0", "S4", "T2")
    assert routes(net) == {S0: ["10.0.0.3"]}


@pytest.mark.parametrize(("version", "eth_type"), [(4, ETH_TYPE_ARP), (6, ETH_TYPE_IPV6)])
def test_hosts_with_routes_find_each_other_without_the_controller(version: IpVersion, eth_type: int) -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    one, other, local = (BUTTERFLY.host_ip(name, version) for name in ("T0", "T2", "T1"))
    ask(net, "T0", "T2", version)
    ask(net, "T2", "T0", version)
    net.switches.asks = lambda _: None  # the controller is down

    def says(source: str, destination: str, is_answer: bool = False) -> Packet:
        if version == 4:
            return Packet(eth_type, source_ip=source, destination_ip=destination)
        if is_answer:
            return Packet(eth_type, 58, source, destination, icmp_type=136, neighbour_ip=source)
        return Packet(eth_type, 58, source, "ff02::1:ff00:3", icmp_type=135, neighbour_ip=destination)

    assert net.switches.path(says(one, other), "T0") == ("T0", "S0", "S4", "T2")
    assert net.switches.path(says(other, one, is_answer=True), "T2") == ("T2", "S4", "S0", "T0")
    assert net.switches.path(says(one, local), "T0")[-1] == DROPPED, "there is no route"
    assert net.switches.path(says(one, one), "T0")[-1] == DROPPED, "it announces itself"
    assert net.switches.path(says(local, other), "T0")[-1] == CONTROLLER, "T1 is not behind this port"
    net.handle(RuleExpired(S0, other))
    assert net.switches.path(says(one, other), "T0")[-1] == DROPPED, "its packets would not arrive either"


def test_routes_follow_links_and_come_back_where_there_was_no_way(net: ControlledNetwork) -> None:
    ask(net, "T0", "T2")
    net.handle(PortWentDown(S0, 2))
    assert routes(net) == {S0: ["10.0.0.3"]}
    assert ask(net, "T0", "T2") == ("T0", "S0", "S2", "S3", "S4", "T2")
    net.handle(PortWentDown(S4, 1))  # of T2
    assert routes(net) == {}
    assert ask(net, "T0", "T2")[-1] == CONTROLLER
    assert net.switches.packets_out == net.switches.packets_out[:1], "nobody is delivered past the network"
    net.handle(PortCameUp(S4, 1))
    assert routes(net) == {S0: ["10.0.0.3"]}, "without being asked for again"


def test_routes_follow_a_host_that_moves_and_go_with_one_that_is_forgotten(net: ControlledNetwork) -> None:
    for datapath_id, port in ((S3, 9), (S1, 8)):
        net.handle(PortCameUp(datapath_id, port))
    net.handle(PacketArrived(S3, 9, announces(MAC, IP)))
    net.handle(PacketArrived(S0, 1, asks(IP)))
    net.handle(PacketArrived(S1, 8, ip_frame(IP)))
    before = dict(net.switches.tables[S0].rules)
    assert routes(net) == {S0: [IP], S1: [IP], S3: ["10.0.0.1"]}
    net.handle(PacketArrived(S1, 8, announces(MAC, IP)))
    net.pass_time(1.1)  # it does not answer at its old place
    assert routes(net) == {S0: [IP], S3: ["10.0.0.1"]}
    assert before != net.switches.tables[S0].rules
    net.handle(PortWentDown(S1, 8))
    net.handle(PortWentDown(S0, 2))
    assert routes(net) == {S3: ["10.0.0.1"]}
    net.pass_time(400.0)
    assert routes(net) == {S3: ["10.0.0.1"]}
    assert net.core._default_routes._users.keys() == {"10.0.0.1"}


def test_a_controller_that_starts_again_keeps_the_routes_in_use(net: ControlledNetwork) -> None:
    ask(net, "T0", "T2")
    ask(net, "T1", "T3")
    before = {each: dict(table.rules) for each, table in net.switches.tables.items()}
    net.restart()
    sent = len(net.switches.installed)
    net.come_back()
    net.let_run(2.0)
    assert {each: table.rules for each, table in net.switches.tables.items()} == before
    rules = [entry for m in net.switches.installed[sent:] for entry in m.entries if isinstance(entry, Rule)]
    assert rules == []
    net.handle(PortWentDown(S0, 2))
    assert ask(net, "T0", "T2") == ("T0", "S0", "S2", "S3", "S4", "T2"), "it knows whom they are for"


def test_a_switch_that_lost_all_gets_its_routes_with_its_rules(net: ControlledNetwork) -> None:
    ask(net, "T0", "T2")
    net.connect_empty("S0")
    assert routes(net) == {S0: ["10.0.0.3"]}


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
def test_a_path_longer_than_a_label_takes_others_on_the_way(routing: Any) -> None:
    net = ControlledNetwork.brought_up(ladder(70), Settings(default_routing=routing))
    path = ask(net, "A", "B")
    assert (path[0], len(path), path[-1]) == ("A", 72, "B")
    reach = net.core._state.live.ports.format.most_fields + 1
    assert 70 // (reach + 1) <= len(routes(net)) <= 4 * (70 // reach + 1)
    for datapath_id in list(routes(net))[1:]:
        table = net.switches.tables[datapath_id]
        (rule,) = [rule for rule in table.rules.values() if rule.idle_s]
        del table.rules[rule.key]
        net.handle(RuleExpired(datapath_id, net.switches.network.host_ip("B")))
        assert ask(net, "A", "B") == path, "labels of packets that still come end there"


def test_no_switch_on_the_way_has_a_rule_for_hosts() -> None:
    net = ControlledNetwork.brought_up(topologies.load("fat-tree:4"))
    network = net.switches.network
    before = {each: dict(table.rules) for each, table in net.switches.tables.items()}
    for source, destination in permutations(network.hosts, 2):
        assert ask(net, source, destination)[-1] == destination
    edges = {network.datapath_id(arc.head) for arc in network.arcs() if arc.tail in network.hosts}
    for datapath_id, table in net.switches.tables.items():
        assert (table.rules == before[datapath_id]) == (datapath_id not in edges)


def test_frames_are_read_as_far_as_they_go() -> None:
    frame = ip_frame("10.1.2.3")
    assert destination_of(frame) == destination_of(frame + b"more") == "10.1.2.3"
    assert all(destination_of(frame[:end]) is None for end in range(len(frame)))
    assert destination_of(arp.build_probe("10.1.2.3")) is None


def test_many_routes_change_in_several_events() -> None:
    """A link of the core fails: other events come between, and all routes are right in the end."""
    net = ControlledNetwork.brought_up(topologies.load("fat-tree:6"))
    network, now = net.switches.network, net.now
    pairs = list(permutations(network.hosts, 2))
    for source, destination in pairs:
        net.handle(PacketArrived(*edge_of(network, source), ip_frame(network.host_ip(destination))))
    net.core.handle(PortWentDown(network.datapath_id("c0_0"), 1), now)
    changed = []
    while (due := net.core.next_deadline()) is not None and due <= now:
        messages = net.core.handle(TimePassed(), now)
        installed = [message for message in messages if isinstance(message, InstallRules)]
        for message in installed:
            net.switches.carry_out(message)
        changed.append(sum(len(message.entries) for message in installed))
    assert len(changed) > 1
    assert 0 < max(changed) <= 500 + 18, "a turn ends with the host that passes 500"
    for source, destination in pairs[::40]:
        assert ask(net, source, destination)[-1] == destination


def edge_of(network: Network, host: str) -> tuple[int, int]:
    arc = next(arc for arc in network.arcs() if arc.head == host)
    return network.datapath_id(arc.tail), arc.tail_port
