"""Hosts whose place or address is in doubt: claimed, moved, gone, replaced, too many."""

from __future__ import annotations

import ipaddress
import sys
from dataclasses import replace
from typing import Any

import pytest

import topologies
from controller.core import Core
from controller.model.events import PacketArrived, PortCameUp, PortWentDown, SwitchConnected
from controller.model.host_frames import parse_neighbour
from controller.model.ndp import PROBER_IP
from controller.model.neighbour import NO_IP, NO_IP6, NeighbourMessage
from controller.model.rules import eth_type_of
from controller.state.hosts import Host
from tests.fakes.neighbour_frames import advertisement, arp_frame, solicitation
from tests.fakes.openflow_table import ControlledNetwork, Packet
from topologies.model import DATA_NETWORKS

BUTTERFLY = topologies.load("butterfly")
S0, S1, S3 = (BUTTERFLY.datapath_id(name) for name in ("S0", "S1", "S3"))
MAC, OTHER_MAC = "02:00:00:00:00:77", "02:00:00:00:00:88"
IP = "10.0.7.7"
VERSION = 4


@pytest.fixture(autouse=True, params=[4, 6])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test over ARP and over neighbour discovery: it speaks of IPv4 addresses, or of their like."""
    monkeypatch.setattr(sys.modules[__name__], "VERSION", request.param)


def real(ip: str) -> str:
    """Return the address that stands behind one of IPv4: fd00::3 for 10.0.0.3."""
    number = int(ipaddress.IPv4Address(ip))
    if VERSION == 4 or not number:
        return ip if VERSION == 4 else NO_IP6
    return str(DATA_NETWORKS[6][number - int(DATA_NETWORKS[4][0])])


def shown(ip: str) -> str:
    """Return the address of IPv4 that one stands for; none for that of the controller."""
    number = int(ipaddress.ip_address(ip))
    if VERSION == 4 or ip in (NO_IP6, PROBER_IP):
        return ip if VERSION == 4 else NO_IP
    return str(DATA_NETWORKS[4][number - int(DATA_NETWORKS[6][0])])


def announces(mac: str, ip: str = IP) -> bytes:
    return arp_frame(1, mac, ip, ip) if VERSION == 4 else advertisement(mac, real(ip))


def answers(mac: str, ip: str = IP) -> bytes:
    """The answer to a question of the controller."""
    return arp_frame(2, mac, ip, NO_IP) if VERSION == 4 else advertisement(mac, real(ip), PROBER_IP)


def asks(ip: str, sender: str = "10.0.0.1", mac: str = "02:00:0a:00:00:01") -> bytes:
    return arp_frame(1, mac, sender, ip) if VERSION == 4 else solicitation(mac, real(sender), real(ip))


def defends(mac: str, against: str) -> bytes:
    """The answer to a host that asks whether an address is in use."""
    return arp_frame(2, mac, IP, NO_IP, against) if VERSION == 4 else advertisement(mac, real(IP))


@pytest.fixture
def net() -> ControlledNetwork:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    for switch, port in ((S3, 9), (S1, 8)):
        net.handle(PortCameUp(switch, port))
    net.handle(PacketArrived(S3, 9, announces(MAC)))
    net.switches.packets_out.clear()
    net.reports.clear()
    return net


def sent(net: ControlledNetwork) -> list[tuple[int, int, NeighbourMessage]]:
    out, net.switches.packets_out = net.switches.packets_out, []
    packets = [(each.datapath_id, each.port, parse_neighbour(each.frame)) for each in out]
    return [
        (switch, port, replace(said, sender_ip=shown(said.sender_ip), target_ip=shown(said.target_ip)))
        for switch, port, said in packets
        if said is not None
    ]


def host(net: ControlledNetwork, ip: str = IP) -> Host | None:
    core: Core = net.core
    return core._state.hosts.find(real(ip))


def told(net: ControlledNetwork) -> list[str]:
    reports, net.reports = net.reports, []
    kinds = [each.kind.value for each in reports if each.kind is not None]
    return [kind for kind in kinds if kind.startswith("host_")]


def place(net: ControlledNetwork, ip: str = IP) -> tuple[str, int, str]:
    known = host(net, ip)
    assert known is not None
    return known.switch, known.port, known.mac


@pytest.mark.parametrize(("switch", "port", "mac"), [(S1, 8, OTHER_MAC), (S1, 8, MAC), (S3, 9, OTHER_MAC)])
def test_an_address_that_is_claimed_stays_with_the_host_that_answers(
    net: ControlledNetwork, switch: int, port: int, mac: str
) -> None:
    for _ in range(5):
        net.handle(PacketArrived(switch, port, announces(mac)))
    ((at, out, question),) = sent(net)
    assert (at, out, question.target_ip, question.is_probe) == (S3, 9, IP, True)
    net.pass_time(0.5)
    net.handle(PacketArrived(S3, 9, answers(MAC)))
    net.pass_time(2.0)
    assert place(net) == ("S3", 9, MAC)
    assert told(net) == ["host_conflict"]
    assert len(net.snapshot().health.faults) == 1
    net.handle(PacketArrived(switch, port, announces(mac)))
    net.handle(PacketArrived(S3, 9, answers(MAC)))
    assert told(net) == [], "once a minute"
    net.pass_time(61.0)
    assert net.snapshot().health.faults == ()


def test_a_host_that_does_not_answer_at_its_old_place_has_moved(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S1, 8, announces(MAC)))
    net.pass_time(0.9)
    assert place(net) == ("S3", 9, MAC)
    net.pass_time(0.2)
    assert place(net) == ("S1", 8, MAC)
    assert told(net) == ["host_moved"]
    assert net.switches.tables[S1].apply(Packet(eth_type_of(real(IP)), 17, None, real(IP))) == 8
    assert net.records["learned_host"][real(IP)]["switch"] == "S1"


def test_a_host_whose_old_port_is_down_has_moved_at_once(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(S3, 9))
    net.handle(PacketArrived(S1, 8, announces(MAC)))
    assert place(net) == ("S1", 8, MAC)
    assert sent(net) == []


def test_a_host_that_moved_and_only_answers_is_found(net: ControlledNetwork) -> None:
    net.handle(PortWentDown(S3, 9))
    net.handle(PacketArrived(S0, 1, asks(IP)))
    questions = sent(net)
    assert {(switch, port) for switch, port, _ in questions} == set(net.core._state.live.edge_ports())
    assert all(packet.is_probe and packet.target_ip == IP for _, _, packet in questions)
    net.handle(PacketArrived(S1, 8, answers(MAC)))
    assert place(net) == ("S1", 8, MAC)
    ((switch, port, reply),) = sent(net)
    assert (switch, port, reply.sender_mac, reply.sender_ip) == (S0, 1, MAC, IP), "who asked is answered"


def test_a_host_that_is_silent_at_a_port_that_is_up_is_asked_forgotten_and_searched(
    net: ControlledNetwork,
) -> None:
    net.pass_time(31.0)
    net.handle(PacketArrived(S0, 1, asks(IP)))
    reply, question = sent(net)
    assert (reply[0], question[:2], question[2].is_probe) == (S0, (S3, 9), True)
    net.pass_time(1.1)
    assert host(net) is None
    assert told(net) == ["host_lost"]
    net.handle(PacketArrived(S0, 1, asks(IP)))
    net.handle(PacketArrived(S1, 8, answers(MAC)))
    assert place(net) == ("S1", 8, MAC)


def test_searches_are_few(net: ControlledNetwork) -> None:
    for number in range(200):
        net.handle(PacketArrived(S0, 1, asks(f"10.0.9.{number + 1}")))
    assert len(sent(net)) == len(net.core._state.live.edge_ports())
    net.pass_time(1.0)
    net.handle(PacketArrived(S0, 1, asks("10.0.9.1")))
    assert len(sent(net)) == len(net.core._state.live.edge_ports())


def test_nobody_answers_for_a_host_that_is_gone(net: ControlledNetwork) -> None:
    """A replacement asks whether its address is free (RFC 5227): the host itself answers, or nobody."""
    probe = asks(IP, NO_IP, OTHER_MAC)
    net.handle(PacketArrived(S1, 8, probe))
    ((switch, port, packet),) = sent(net)
    assert (switch, port, packet.is_probe) == (S3, 9, True)
    net.handle(PacketArrived(S3, 9, defends(MAC, OTHER_MAC)))
    ((switch, port, packet),) = sent(net)
    assert (switch, port, packet.sender_mac) == (S1, 8, MAC), "it is alive and says so"
    net.handle(PortWentDown(S3, 9))
    net.handle(PacketArrived(S1, 8, probe))
    assert sent(net) == []
    net.handle(PacketArrived(S3, 9, probe))
    assert sent(net) == []


def test_hosts_behind_a_port_that_comes_back_are_asked(net: ControlledNetwork) -> None:
    net.handle(PacketArrived(S3, 9, announces(OTHER_MAC, "10.0.7.8")))
    net.handle(PortWentDown(S3, 9))
    told(net)
    sent(net)
    net.handle(PortCameUp(S3, 9))
    assert {packet.target_ip for _, _, packet in sent(net)} == {IP, "10.0.7.8"}
    net.handle(PacketArrived(S3, 9, answers(MAC)))
    net.pass_time(1.1)
    assert host(net, "10.0.7.8") is None
    assert host(net) is not None
    assert told(net) == ["host_lost"]


def test_the_seventeenth_host_behind_a_port_is_said(net: ControlledNetwork) -> None:
    for number in range(30):
        net.handle(PacketArrived(S1, 8, announces(OTHER_MAC, f"10.0.8.{number + 1}")))
    (fault,) = net.snapshot().health.faults
    assert "behind S1 port 8 is not learned" in fault
    warnings = [report for report in net.reports if report.level == "warning"]
    assert len(warnings) == 1


def test_after_a_restart_hosts_are_where_they_were(net: ControlledNetwork) -> None:
    events: list[Any] = net.switches.connections()
    net.restart()
    for event in events:
        assert isinstance(event, SwitchConnected)
        net.handle(event)
    assert place(net) == ("S3", 9, MAC)
