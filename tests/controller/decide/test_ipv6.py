"""Flows, routes and rates over IPv6 beside those over IPv4."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import topologies
from controller.errors import InvalidRequest
from controller.model.events import PacketArrived, PortCameUp
from controller.model.rules import ETH_TYPE_IPV6, IP_PROTO_UDP
from controller.model.views import FlowView
from tests.fakes.neighbour_frames import solicitation
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from topologies.model import Network, ip_version

BUTTERFLY = topologies.load("butterfly")
S3 = BUTTERFLY.datapath_id("S3")
STRANGER, STRANGER_MAC = "fd00::707", "02:00:00:00:00:77"
WANTED: dict[str, Any] = {"destination_port": 5001, "rate_bps": 8.5e6, "packet_bytes": 610}


def request(net: ControlledNetwork, source: str = "T0", destination: str = "T2", **fields: Any) -> FlowView:
    return net.request(source=source, destination=destination, **WANTED | fields)


def assert_follows_its_paths(net: ControlledNetwork, flow: FlowView) -> None:
    for path, segment in segments_of(flow):
        assert ip_version(segment.source_ip) == ip_version(segment.destination_ip)
        assert net.switches.path(Packet.tcp(segment), flow.source) == path
        assert net.switches.path(Packet.tcp(segment.reverse), flow.destination) == path[::-1]


def test_flows_over_both_versions_have_paths_of_their_own(net: ControlledNetwork) -> None:
    same: dict[str, Any] = {"source_ports": (40001, 40002), "objective": "even_split", "rate_bps": 3e6}
    flows = [
        request(net, **same),
        request(net, "FD00:0::1", "T2", **same),
        request(net, "T0", "T2", **same | {"ip_version": 6, "destination_port": 5002}),
        request(net, "T1", "fd00::4", streams=1, rate_bps=1e6),
    ]
    assert [ip_version(flow.source_ip) for flow in flows] == [4, 6, 6, 6]
    assert (flows[1].source, flows[1].source_ip, flows[1].destination_ip) == ("T0", "fd00::1", "fd00::3")
    for flow in flows:
        assert_follows_its_paths(net, flow)
    rules = {each: set(table.rules) for each, table in net.switches.tables.items()}
    net.restart()
    net.come_back()
    assert rules == {each: set(table.rules) for each, table in net.switches.tables.items()}


def test_split_flows_and_datagrams_too(net: ControlledNetwork) -> None:
    split = request(net, "fd00::1", splitting="packets", source_ports=(40001,))
    assert split.split is not None
    _, segment = segments_of(split)[0]
    for stamp, path in zip(split.split.stamps, [each.path for each in split.streams], strict=True):
        assert net.switches.path(Packet.tcp(segment, stamp), "T0") == path
    assert net.switches.path(Packet.tcp(segment.reverse), "T2") == split.split.ack_path
    udp = request(net, "fd00::2", "T3", protocol="udp", streams=1, rate_bps=1e6)
    path, segment = segments_of(udp)[0]
    datagram = segment._replace(ip_protocol=IP_PROTO_UDP)
    packet = Packet(ETH_TYPE_IPV6, IP_PROTO_UDP, *datagram[:4])
    assert net.switches.path(packet, "T1") == path


def test_headers_and_acknowledgements_are_longer(net: ControlledNetwork) -> None:
    def acks_per_bit(flow: FlowView) -> float:
        loads = {link.link: link.allocated_bps for link in net.snapshot().links}
        net.release(flow.flow_id)
        return loads["S0->T0"] / loads["T0->S0"]

    asked: dict[str, Any] = {"streams": 1, "rate_bps": 1e6}
    over_4, over_6 = request(net, packet_bytes=590, **asked), request(net, "T1", "fd00::4", **asked)
    assert over_4.streams[0].wire_bps == pytest.approx(1e6 * 590 / 536)
    assert over_6.streams[0].wire_bps == pytest.approx(1e6 * 610 / 536)
    net.release(over_6.flow_id)
    less = acks_per_bit(over_4)
    assert acks_per_bit(request(net, "fd00::1", **asked)) == pytest.approx(less * 74 / 54)


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"source": "10.0.0.1", "destination": "fd00::3"}, "destination", "fd00::3 has no IPv4 address"),
        ({"destination": "10.0.0.3", "ip_version": 6}, "destination", "10.0.0.3 has no IPv6 address"),
        ({"destination": "fd00::1"}, "destination", "the source itself"),
        ({"ip_version": 6, "segment_overhead_bytes": 66}, "segment_overhead_bytes", "at least 74"),
        ({"ip_version": 5}, "ip_version", "4 or 6"),
    ],
)
def test_what_does_not_go_together_is_refused(
    net: ControlledNetwork, fields: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        request(net, **fields)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_hosts_are_reached_without_a_flow(net: ControlledNetwork) -> None:
    net.handle(PortCameUp(S3, 9))
    net.handle(PacketArrived(S3, 9, solicitation(STRANGER_MAC, STRANGER, "fd00::1")))
    net.handle(PacketArrived(S3, 9, solicitation(STRANGER_MAC, "fe80::77", "fd00::1")))
    hosts = {host.name: host.addresses for host in net.snapshot().hosts}
    own = {f"T{number}": (f"10.0.0.{number + 1}", f"fd00::{number + 1}") for number in range(4)}
    assert hosts == own | {STRANGER: (STRANGER,)}
    assert len(net.switches.packets_out) == 2, "an asker without an address for other links is answered too"
    packet = Packet(ETH_TYPE_IPV6, 58, "fd00::1", STRANGER, icmp_type=128)
    assert net.switches.tables[S3].apply(packet) == 9
    assert net.switches.path(replace(packet, destination_ip="fd00::4"), "T0")[-1] == "T3"
    back = replace(packet, source_ip=STRANGER, destination_ip="fd00::1", in_port=9)
    assert isinstance(net.switches.tables[S3].apply(back), int), "who asked has a route"


def test_the_file_may_give_hosts_addresses_of_either_version() -> None:
    nodes = [node.model_dump() for node in BUTTERFLY.nodes]
    given: dict[str, dict[str, str]] = {
        "T0": {"ip": "192.0.2.7"},
        "T1": {"ip6": "2001:DB8:0::7"},
        "T2": {"ip": "192.0.2.8", "ip6": "2001:db8::8"},
    }
    for node in nodes:
        node |= given.get(node["name"], {})
    own = Network.model_validate(BUTTERFLY.model_dump() | {"nodes": nodes})
    net = ControlledNetwork.brought_up(own)
    hosts = {host.name: host.addresses for host in net.snapshot().hosts}
    assert hosts == {
        "T0": ("192.0.2.7",),
        "T1": ("2001:db8::7",),
        "T2": ("192.0.2.8", "2001:db8::8"),
        "T3": ("10.0.0.4", "fd00::4"),
    }
    assert request(net, "T1", "T2", streams=1, rate_bps=1e6).destination_ip == "2001:db8::8"
    with pytest.raises(InvalidRequest, match="T1 has no IPv4 address"):
        request(net, "T0", "T1")
