"""Meters hold flows to their rates where they enter, through all that happens to flows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import topologies
from controller.model.events import ConfigurationChanged, PortWentDown
from controller.model.rules import IP_PROTOCOLS, TcpConnection, is_policing_cookie
from controller.model.settings import Settings
from tests.fakes.openflow_table import ControlledNetwork, Packet
from topologies.model import Network

BUTTERFLY = topologies.load("butterfly")
BURST_S = 0.05
SETTINGS = Settings(objective="fair", lease_s=1e6, policing_burst_s=BURST_S)
ENDS: dict[str, Any] = {"source": "T0", "destination": "T2", "packet_bytes": 590}


def with_meters(network: Network, settings: Settings) -> ControlledNetwork:
    net = ControlledNetwork(network, settings)
    for table in net.switches.tables.values():
        table.has_meters = True
    net.come_back()
    net.pass_time(0.5)
    return net


def check(net: ControlledNetwork, burst_s: float = BURST_S) -> None:
    """Check that each connection meets the meter of its flow at its ingress, and that there are no others."""
    wanted: dict[tuple[int, int], None] = {}
    for flow in net.snapshot().flows:
        for at in {stream.path[1] for stream in flow.streams} if burst_s else ():
            table = net.switches.tables[net.switches.network.datapath_id(at)]
            entering = [stream for stream in flow.streams if stream.path[1] == at]
            met = set()
            for stream in entering:
                ends = flow.source_ip, flow.destination_ip, stream.source_port, flow.destination_port
                packet = Packet.tcp(TcpConnection(*ends, IP_PROTOCOLS[flow.protocol]))
                packet = replace(packet, ip_protocol=IP_PROTOCOLS[flow.protocol])
                rules = [rule for rule, _, _ in table.steps(packet) if rule is not None]
                met |= {rule.meter for rule in rules if is_policing_cookie(rule.cookie)}
            (number,) = met
            assert number is not None
            meter, bps = table.meters[number], sum(stream.wire_bps for stream in entering)
            assert (meter.rate, meter.in_kilobits) == (max(1, math.ceil(bps / 1e3)), True)
            assert meter.burst == math.ceil(max(bps * burst_s, 16 * flow.packet_bytes * 8) / 1e3)
            wanted[net.switches.network.datapath_id(at), number] = None
    there = {
        (datapath_id, number)
        for datapath_id, table in net.switches.tables.items()
        for number, meter in table.meters.items()
        if meter.in_kilobits
    }
    assert there == wanted.keys()
    policing = [is_policing_cookie(rule.cookie) for rule in net.switches.rules()]
    assert sum(policing) == sum(
        len({stream.source_port for stream in flow.streams}) for flow in net.snapshot().flows if burst_s
    )


def test_meters_follow_flows() -> None:
    net = with_meters(BUTTERFLY, SETTINGS)
    split = net.request(**ENDS, destination_port=5001, rate_bps=8e6, splitting="packets")
    check(net)
    net.request(**ENDS, destination_port=5002, rate_bps=8e6)
    net.request(**ENDS, destination_port=5003, rate_bps=8e6, protocol="udp")
    net.request(**ENDS | {"source": "T1"}, destination_port=5004, rate_bps=1e6, splitting="group")
    check(net)
    net.change(split.flow_id, 1e6)
    net.let_run(2.0)
    check(net)
    net.handle(PortWentDown(BUTTERFLY.datapath_id("S0"), 2))
    net.let_run(2.0)
    check(net)
    net.release(split.flow_id)
    net.let_run(2.0)
    check(net)
    before = len(net.switches.installed)
    net.restart()
    net.come_back()
    check(net)
    policing = [
        entry
        for message in net.switches.installed[before:]
        for entry in message.entries
        if is_policing_cookie(getattr(entry, "cookie", 0))
    ]
    assert policing == [], "what is right stays"
    net.handle(ConfigurationChanged(1, replace(SETTINGS, policing_burst_s=0.0), {}))
    check(net, burst_s=0.0)


def test_switches_without_meters_and_settings_without_a_burst_police_nothing() -> None:
    for net in (ControlledNetwork.brought_up(BUTTERFLY, SETTINGS), with_meters(BUTTERFLY, Settings())):
        net.request(**ENDS, destination_port=5001, rate_bps=8e6)
        check(net, burst_s=0.0)
