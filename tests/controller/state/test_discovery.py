"""What the core makes of switches, ports, links and ARP."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from controller.model import arp, lldp
from controller.model.events import (
    LinkDiscovered,
    PacketArrived,
    PortCameUp,
    PortWentDown,
    RulesRefused,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.model.neighbour import NeighbourMessage
from controller.model.packet_limits import PortLimits
from controller.model.rules import ETH_TYPE_ARP, ETH_TYPE_IPV4, ETH_TYPE_IPV6, ETH_TYPE_LLDP
from controller.model.settings import Settings
from tests.fakes.neighbour_frames import arp_frame
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.rule_table import CONTROLLER, DROPPED

S0, S1, S2, S3, S4 = 1, 2, 3, 4, 5

SLOW = Settings(probe_interval_s=1.0, silence_s=10.0)


@pytest.fixture
def net() -> ControlledNetwork:
    return ControlledNetwork.brought_up(topologies.load("butterfly"), SLOW)


def arp_request(sender_ip: str, target_ip: str, mac: str = "02:00:0a:00:00:01") -> bytes:
    return arp_frame(1, mac, sender_ip, target_ip)


def to_host(ip: str) -> Packet:
    return Packet(ETH_TYPE_IPV4, 17, "10.0.0.1", ip)


def test_a_complete_network_is_ready(net: ControlledNetwork) -> None:
    health = net.snapshot().health
    assert health.status == "ok"
    assert health.ready
    assert health.faults == ()


def test_a_network_is_not_ready_before_discovery_of_both_directions() -> None:
    net = ControlledNetwork(topologies.load("butterfly"))
    net.switches.lose_probes()
    for event in net.switches.connections():
        net.handle(event)
    one_way = [each for each in net.switches.discoveries() if each.tail_datapath_id < each.head_datapath_id]
    for discovery in (None, *one_way):
        if discovery is not None:
            net.handle(discovery)
        health = net.snapshot().health
        assert not health.ready
        assert len(health.links_down) == 7, "the links between switches; those to hosts need no discovery"


def test_a_network_is_not_ready_before_all_switches_confirm() -> None:
    net = ControlledNetwork(topologies.load("butterfly"))
    net.silent = frozenset({"S3"})
    net.bring_up()
    health = net.snapshot().health
    assert not health.ready
    assert [switch.name for switch in health.switches if not switch.rules_confirmed] == ["S3"]


def test_classification(net: ControlledNetwork) -> None:
    for table in net.switches.tables.values():
        assert table.apply(Packet(ETH_TYPE_LLDP)) == CONTROLLER
        assert table.apply(Packet(ETH_TYPE_ARP)) == CONTROLLER
        for kind in (135, 136):
            assert table.apply(Packet(ETH_TYPE_IPV6, 58, icmp_type=kind)) == CONTROLLER
        assert table.apply(Packet(0x88A8)) == DROPPED, "nothing is flooded"
        assert table.apply(to_host("10.0.0.99")) == CONTROLLER, "it may know such a host"
        for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:fb", "33:33:00:00:00:01", "16:00:00:00:00:00"):
            assert table.apply(replace(to_host("10.0.0.99"), destination_mac=mac)) == DROPPED


def test_a_port_down_reroutes_at_once_and_discovery_brings_the_link_back(net: ControlledNetwork) -> None:
    assert net.switches.path(to_host("10.0.0.3"), "T0") == ("T0", "S0", "S4", "T2")
    net.handle(PortWentDown(S0, 2))  # S0-S4
    assert net.snapshot().health.links_down == ("S0-S4",)
    assert net.switches.path(to_host("10.0.0.3"), "T0") == ("T0", "S0", "S2", "S3", "S4", "T2")
    net.switches.lose_probes()
    net.handle(PortCameUp(S0, 2))
    net.handle(LinkDiscovered(S0, 2, S4, 2))
    assert net.snapshot().health.links_down == ("S0-S4",)
    net.handle(LinkDiscovered(S4, 2, S0, 2))
    assert net.snapshot().health.ready
    assert net.switches.path(to_host("10.0.0.3"), "T0") == ("T0", "S0", "S4", "T2")


def test_a_discovery_packet_that_was_under_way_does_not_raise_a_dead_link(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(S0, 2))
    net.handle(LinkDiscovered(S0, 2, S4, 2))
    net.handle(LinkDiscovered(S4, 2, S0, 2))
    assert net.snapshot().health.links_down == ("S0-S4",)


def test_probes_find_the_links_of_a_network_that_connects() -> None:
    net = ControlledNetwork(topologies.load("butterfly"))
    for event in net.switches.connections():
        net.handle(event)
    assert net.snapshot().health.ready


def test_a_silent_loss_is_found_soon_and_a_link_that_answers_again_is_up_at_once(
    net: ControlledNetwork,
) -> None:
    net.switches.silent_arcs = frozenset({"S0->S4"})
    assert seconds_until_down(net, ("S0-S4",)) == pytest.approx(10.5, abs=0.6)
    assert net.switches.path(to_host("10.0.0.3"), "T0") == ("T0", "S0", "S2", "S3", "S4", "T2")
    net.switches.silent_arcs = frozenset()
    elapse(net, 1.1)
    assert net.snapshot().health.ready


@pytest.mark.parametrize("arc", ["S0->S4", "S4->S0", "S2->S3", "S5->S1"])
def test_a_silent_loss_is_noticed_within_half_a_second(arc: str) -> None:
    net = ControlledNetwork.brought_up(topologies.load("butterfly"))
    net.pass_time(0.07)
    for _ in range(50):
        net.pass_time(0.02)
    net.switches.silent_arcs = frozenset({arc})
    lost_at = net.now
    while not net.snapshot().health.links_down:
        net.pass_time(0.01)
        assert net.now - lost_at <= 0.5
    net.switches.silent_arcs = frozenset()
    for _ in range(15):
        net.pass_time(0.01)
    assert net.snapshot().health.ready


def test_a_port_that_is_said_to_be_up_again_can_still_be_lost_in_silence(net: ControlledNetwork) -> None:
    net.switches.silent_arcs = frozenset({"S0->S4"})
    net.handle(PortCameUp(S0, 2))
    assert seconds_until_down(net, ("S0-S4",)) == pytest.approx(10.5, abs=0.6)


def test_a_pause_of_the_controller_loses_no_link(net: ControlledNetwork) -> None:
    for pause_s in (2.0, 12.0, 60.0):
        net.pass_time(pause_s)
        elapse(net, 20.0)
    assert not any("is down" in report.text for report in net.reports)


@pytest.mark.parametrize("pause_s", [3.0, 9.5, 10.2, 25.0])
def test_a_pause_of_all_switches_loses_no_link(net: ControlledNetwork, pause_s: float) -> None:
    net.switches.lose_probes()
    elapse(net, pause_s)
    net.switches.silent_arcs = frozenset()
    elapse(net, 20.0)
    assert not any("is down" in report.text for report in net.reports)


def test_a_link_alone_is_given_up_in_the_end() -> None:
    net = ControlledNetwork.brought_up(topologies.load("line:2"), SLOW)
    net.switches.lose_probes()
    assert seconds_until_down(net, ("s1-s2",)) == pytest.approx(30.0, abs=1.1)


def test_every_port_is_probed_each_second_without_bursts(net: ControlledNetwork) -> None:
    elapse(net, 5.0)
    net.switches.probes.clear()
    elapse(net, 10.0)
    counts = Counter(net.switches.probes)
    assert len(counts) == 18, "those to hosts too: there may be a link that the file does not have"
    assert set(counts.values()) <= {9, 10, 11}
    net.switches.probes.clear()
    net.pass_time(100.0)
    assert len(net.switches.probes) <= 18


def elapse(net: ControlledNetwork, duration_s: float) -> None:
    for _ in range(round(duration_s / 0.1)):
        net.pass_time(0.1)


def seconds_until_down(net: ControlledNetwork, links: tuple[str, ...]) -> float:
    start = net.now
    while net.snapshot().health.links_down != links:
        assert net.now < start + 60
        elapse(net, 0.1)
    return net.now - start


def test_a_host_behind_a_dead_port_has_no_routes(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(S4, 1))
    assert net.switches.path(to_host("10.0.0.3"), "T1")[-1] == CONTROLLER
    assert not next(host for host in net.snapshot().hosts if host.name == "T2").reachable


def test_links_that_the_file_does_not_have_are_faults_and_not_used(net: ControlledNetwork) -> None:
    before = {datapath_id: dict(table.rules) for datapath_id, table in net.switches.tables.items()}
    net.handle(PortCameUp(S0, 9))
    net.handle(LinkDiscovered(S0, 9, S4, 9))
    net.handle(LinkDiscovered(S0, 2, S3, 2))
    faults = net.snapshot().health.faults
    assert faults == (
        "A link from S0 port 2 to S3 port 2 was found but is not in the topology file; it is not used.",
        "A link from S0 port 9 to S4 port 9 was found but is not in the topology file; it is not used.",
    )
    assert net.snapshot().health.status == "degraded"
    assert before == {datapath_id: table.rules for datapath_id, table in net.switches.tables.items()}
    elapse(net, 12.0)
    assert net.snapshot().health.faults == ()
    assert net.snapshot().health.links_down == ()


def test_a_switch_that_the_file_does_not_have_is_a_fault_and_gets_no_rules(net: ControlledNetwork) -> None:
    net.handle(SwitchConnected(77, frozenset({1})))
    assert "datapath id 77" in net.snapshot().health.faults[0]
    assert all(message.datapath_id != 77 for message in net.switches.installed)
    net.handle(SwitchDisconnected(77))
    assert net.snapshot().health.faults == ()


def test_a_switch_that_comes_back_gets_all_its_rules_again(net: ControlledNetwork) -> None:
    net.request(source="T0", destination="T2", destination_port=5001, rate_bps=8.5e6)
    before = dict(net.switches.tables[S2].rules)
    net.handle(SwitchDisconnected(S2))
    net.switches.tables[S2].rules.clear()
    for event in net.switches.arrivals():
        if not isinstance(event, SwitchConnected) or event.datapath_id == S2:
            net.handle(event)
    assert net.switches.tables[S2].rules == before
    assert net.snapshot().health.ready


def test_refused_rules_are_a_fault() -> None:
    net = ControlledNetwork(topologies.load("butterfly"))
    net.silent = frozenset({"S0"})
    net.bring_up()
    net.handle(RulesRefused(S0, net.switches.installed_in(S0)[-1].barrier, "table full"))
    assert "S0 refused the rules: table full." in net.snapshot().health.faults
    assert not net.snapshot().health.ready


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.binary(max_size=40))
def test_probes_are_read_back_and_nothing_else_is_taken_for_one(
    datapath_id: int, port: int, noise: bytes
) -> None:
    frame = lldp.build(datapath_id, port)
    assert lldp.parse(frame) == lldp.parse(frame + noise) == (datapath_id, port)
    for end in range(len(frame) - 6):  # the last fields say nothing that is needed
        assert lldp.parse(frame[:end]) is None
    assert lldp.parse(frame[:14] + noise) is None
    assert lldp.parse(arp_request("10.0.0.1", "10.0.0.3")) is None


def test_arp_is_answered_for_known_hosts(net: ControlledNetwork) -> None:
    request = arp_request("10.0.0.1", "10.0.0.3")
    net.handle(PacketArrived(S0, 1, request))
    (out,) = net.switches.packets_out
    assert (out.datapath_id, out.port) == (S0, 1)
    assert arp.parse(out.frame) == NeighbourMessage(False, "02:00:0a:00:00:03", "10.0.0.3", "10.0.0.1")


@pytest.mark.parametrize("target", ["10.0.0.99", "192.168.0.1", "10.0.0.1"])
def test_arp_for_unknown_hosts_and_oneself_is_not_answered(net: ControlledNetwork, target: str) -> None:
    net.handle(PacketArrived(S0, 1, arp_request("10.0.0.1", target)))
    said = [arp.parse(out.frame) for out in net.switches.packets_out]
    assert all(packet is not None and packet.is_probe for packet in said), "it may be asked for"
    assert bool(said) == (target != "10.0.0.1")


def test_a_stranger_is_learned_and_reached(net: ControlledNetwork) -> None:
    net.handle(PortCameUp(S3, 9))
    net.handle(PacketArrived(S3, 9, arp_request("10.0.7.7", "10.0.0.1", "02:00:00:00:00:77")))
    host = net.snapshot().hosts[-1]
    assert (*host.addresses, host.mac, host.switch, host.port, host.learned) == (
        "10.0.7.7",
        "02:00:00:00:00:77",
        "S3",
        9,
        True,
    )
    assert net.switches.tables[S3].apply(to_host("10.0.7.7")) == 9
    assert net.switches.tables[S0].apply(to_host("10.0.7.7")) != DROPPED
    net.handle(PacketArrived(S0, 1, arp_request("10.0.0.1", "10.0.7.7")))
    reply = arp.parse(net.switches.packets_out[-1].frame)
    assert reply is not None
    assert reply.sender_mac == "02:00:00:00:00:77"


def test_nothing_is_learned_between_switches_or_of_addresses_that_no_host_has(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S0, 2, arp_request("10.0.7.7", "10.0.0.1")))
    for ip in ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255"):
        net.handle(PacketArrived(S0, 1, arp_request(ip, "10.0.0.1")))
    net.handle(PacketArrived(S0, 1, arp_request("10.0.7.7", "10.0.0.1", "01:00:5e:00:00:01")))
    assert [host.name for host in net.snapshot().hosts] == ["T0", "T1", "T2", "T3"]


def test_hosts_with_addresses_of_any_prefix_are_learned(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S0, 1, arp_request("192.168.1.1", "10.0.0.1")))
    net.pass_time(1.0)
    assert net.switches.tables[S3].apply(to_host("192.168.1.1")) != DROPPED


def test_nobody_takes_the_place_of_a_host_of_the_file(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S1, 1, arp_request("10.0.0.1", "10.0.0.3", "02:00:00:00:00:66")))
    host = net.snapshot().hosts[0]
    assert (host.name, host.mac, host.switch) == ("T0", "02:00:0a:00:00:01", "S0")
    net.handle(PacketArrived(S0, 1, arp_request("10.0.0.1", "10.0.0.3", "02:00:00:00:00:11")))
    assert net.snapshot().hosts[0].mac == "02:00:00:00:00:11", "its own word from its own port is believed"


def test_a_probe_that_is_not_signed_with_the_key_is_none() -> None:
    frame = lldp.build(1, 2, b"key")
    assert lldp.parse(frame, b"key") == (1, 2)
    assert lldp.parse(frame, b"other") is None
    assert lldp.parse(frame.replace(b"dpid:0000000000000001", b"dpid:0000000000000007"), b"key") is None


def test_a_host_that_forges_probes_harms_nobody(net: ControlledNetwork) -> None:
    """What it can forge at best is a copy of the probe of its own port."""
    for _ in range(3000):
        net.handle(LinkDiscovered(S0, 1, S3, 9))
    assert len(net.snapshot().health.faults) == 1
    net.handle(PacketArrived(S0, 1, arp_request("10.0.0.1", "10.0.0.3")))
    assert len(net.switches.packets_out) == 1, "another host's ARP is answered still"


def test_strange_links_are_few_faults(net: ControlledNetwork) -> None:
    for port in range(100, 3100):
        net.handle(LinkDiscovered(S0, 1, S3, port))
    assert len(net.snapshot().health.faults) == 64


def test_a_port_that_claims_many_addresses_keeps_no_other_host_out(net: ControlledNetwork) -> None:
    for number in range(2000):
        ip = f"10.0.{100 + number // 200}.{1 + number % 200}"
        net.handle(PacketArrived(S3, 9, arp_request(ip, "10.0.0.1", "02:00:00:00:00:77")))
    learned = [host for host in net.snapshot().hosts if host.learned]
    assert len(learned) == 16
    net.handle(PacketArrived(S3, 8, arp_request("10.0.7.7", "10.0.0.1", "02:00:00:00:00:78")))
    assert "10.0.7.7" in [host.name for host in net.snapshot().hosts]


def test_a_learned_host_that_says_nothing_is_forgotten_with_its_rules(net: ControlledNetwork) -> None:
    net.handle(PortCameUp(S3, 9))
    for ip in ("10.0.7.7", "10.0.7.8"):
        net.handle(PacketArrived(S3, 9, arp_request(ip, "10.0.0.1", "02:00:00:00:00:77")))
    net.pass_time(200)
    net.handle(PacketArrived(S3, 9, arp_request("10.0.7.8", "10.0.0.1", "02:00:00:00:00:77")))
    net.pass_time(150)
    assert [host.name for host in net.snapshot().hosts if host.learned] == ["10.0.7.8"]
    assert net.switches.tables[S0].apply(to_host("10.0.7.7")) == CONTROLLER
    assert net.switches.tables[S0].apply(to_host("10.0.7.8")) != CONTROLLER
    assert list(net.records["learned_host"]) == ["10.0.7.8"]


def test_a_port_that_floods_is_heard_at_its_rate_and_others_at_theirs() -> None:
    limits = PortLimits(rate_per_s=100, burst=200)
    heard = sum(limits.allows(1, 1, 5.0 + number / 16000) for number in range(16000))
    assert heard == pytest.approx(300, abs=2)
    assert limits.allows(1, 2, 6.0)
    assert limits.allows(2, 1, 6.0)
    assert limits.allows(1, 1, 7.0)
