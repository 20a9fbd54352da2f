"""DHCP: requests reach the servers of the file, and their answers the client."""

from __future__ import annotations

from os_ken.lib.packet import dhcp, ethernet, ipv4, udp
from os_ken.lib.packet.packet import Packet as Frame

import topologies
from controller.model import dhcp as dhcp_model
from controller.model.events import PacketArrived
from controller.model.rules import ETH_TYPE_IPV4, IP_PROTO_UDP
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.rule_table import CONTROLLER, DROPPED
from topologies.model import Network

BUTTERFLY = topologies.load("butterfly")
ALL, CLIENT = "ff:ff:ff:ff:ff:ff", "02:00:00:00:00:77"


def network(*servers: str) -> Network:
    nodes = [node.model_dump() | {"dhcp_server": node.name in servers} for node in BUTTERFLY.nodes]
    return Network.model_validate(BUTTERFLY.model_dump() | {"nodes": nodes})


def place(host: str) -> tuple[int, int]:
    arc = next(arc for arc in BUTTERFLY.arcs() if arc.head == host)
    return BUTTERFLY.datapath_id(arc.tail), arc.tail_port


def message(op: int, to: str = ALL, client: str = CLIENT) -> bytes:
    ports = (68, 67) if op == dhcp.DHCP_BOOT_REQUEST else (67, 68)
    frame = Frame()
    frame.add_protocol(ethernet.ethernet(to, "02:00:00:00:00:01", ETH_TYPE_IPV4))
    frame.add_protocol(ipv4.ipv4(src="0.0.0.0", dst="255.255.255.255", proto=IP_PROTO_UDP))
    frame.add_protocol(udp.udp(*ports))
    options = dhcp.options([dhcp.option(dhcp.DHCP_MESSAGE_TYPE_OPT, bytes([1]))])
    frame.add_protocol(dhcp.dhcp(op, client, options=options))
    frame.serialize()
    return bytes(frame.data)


ASKED, OFFERED = message(dhcp.DHCP_BOOT_REQUEST), message(dhcp.DHCP_BOOT_REPLY, CLIENT)


def passed_on(net: ControlledNetwork, at: str, frame: bytes) -> set[tuple[int, int]]:
    """Return where a frame goes that comes in at a host's port; it goes as it is."""
    net.switches.packets_out.clear()
    net.handle(PacketArrived(*place(at), frame))
    assert all(out.frame == frame for out in net.switches.packets_out)
    return {(out.datapath_id, out.port) for out in net.switches.packets_out}


def test_requests_go_to_servers_and_their_answers_to_who_has_asked() -> None:
    net = ControlledNetwork.brought_up(network("T2", "T3"))
    for port in (67, 68):
        packet = Packet(ETH_TYPE_IPV4, IP_PROTO_UDP, destination_port=port, destination_mac=ALL)
        assert all(table.apply(packet) == CONTROLLER for table in net.switches.tables.values())
        other = Packet(ETH_TYPE_IPV4, IP_PROTO_UDP, destination_port=69, destination_mac=ALL)
        assert all(table.apply(other) == DROPPED for table in net.switches.tables.values())
    assert passed_on(net, "T3", OFFERED) == set(), "nobody has asked"
    assert passed_on(net, "T0", ASKED) == {place("T2"), place("T3")}
    assert passed_on(net, "T1", OFFERED) == set(), "it is no server"
    assert passed_on(net, "T3", OFFERED) == {place("T0")}
    assert passed_on(net, "T2", message(dhcp.DHCP_BOOT_REPLY)) == {place("T0")}, "to all, but for one"
    net.pass_time(31.0)
    assert passed_on(net, "T3", OFFERED) == set()
    asking = [
        message(dhcp.DHCP_BOOT_REQUEST, client=f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}") for n in range(1025)
    ]
    assert [bool(passed_on(net, "T0", frame)) for frame in asking] == [True] * 1024 + [False]


def test_without_a_server_it_is_dropped_and_other_bytes_are_no_message() -> None:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    packet = Packet(ETH_TYPE_IPV4, IP_PROTO_UDP, destination_port=67, destination_mac=ALL)
    assert all(table.apply(packet) == DROPPED for table in net.switches.tables.values())
    assert passed_on(net, "T0", ASKED) == set()
    assert dhcp_model.parse(ASKED) == dhcp_model.DhcpMessage(True, CLIENT)
    assert all(dhcp_model.parse(ASKED[:end]) is None for end in range(282))
    assert dhcp_model.parse(ASKED[:14] + b"\x4f" + ASKED[15:]) is None
