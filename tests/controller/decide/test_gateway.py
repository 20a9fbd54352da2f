"""A gateway: the host by which the others reach what is no host of the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import topologies
from controller.model.client_events import ClientEventKind
from controller.model.events import PacketArrived, PortWentDown
from controller.model.rules import eth_type_of
from controller.model.settings import Settings
from tests.controller.decide.test_labels import ladder
from tests.fakes.neighbour_frames import arp_frame
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.rule_table import CONTROLLER
from topologies.check import check_network
from topologies.errors import InvalidTopology
from topologies.model import Network

OUTSIDE = {4: "192.0.2.9", 6: "2001:db8::9"}
NEW_MAC = "02:00:00:00:00:77"


def with_hosts(network: Network, **fields: Mapping[str, Any]) -> Network:
    """Return a network some of whose nodes have other values in some fields, by name."""
    nodes = [
        node.model_dump() | {field: those[node.name] for field, those in fields.items() if node.name in those}
        for node in network.nodes
    ]
    return Network.model_validate(network.model_dump() | {"nodes": nodes})


def with_gateway(network: Network, *names: str) -> Network:
    return with_hosts(network, gateway={node.name: node.name in names for node in network.nodes})


def sends(net: ControlledNetwork, source: str, mac: str, ip: str = OUTSIDE[4]) -> tuple[str, ...]:
    """Return where a packet goes that a host sends to an address by a neighbour's MAC."""
    packet = Packet(eth_type_of(ip), 17, None, ip, source_mac="02:00:00:00:00:01", destination_mac=mac)
    nodes, arrived = net.switches.trace(packet, source)
    assert arrived.destination_mac == mac or nodes[-1] == CONTROLLER
    return nodes


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
@pytest.mark.parametrize("spec", ["butterfly", "fat-tree:4", "ladder"])
def test_packets_for_elsewhere_go_by_the_gateway_and_others_as_before(spec: str, routing: Any) -> None:
    network = ladder(70) if spec == "ladder" else topologies.load(spec)
    gateway, *others = network.hosts[::-1]
    net = ControlledNetwork.brought_up(with_gateway(network, gateway), Settings(default_routing=routing))
    mac = network.host_mac(gateway)
    for source in others:
        for ip in (*OUTSIDE.values(), network.host_ip(gateway)):
            assert sends(net, source, mac, ip)[-1] == gateway
        assert sends(net, source, NEW_MAC)[-1] == CONTROLLER, "it is addressed to nobody that is known"
    if len(others) > 1:
        its = network.host_mac(others[1])
        assert sends(net, others[0], its, network.host_ip(others[1]))[-1] == others[1]
        assert sends(net, gateway, its, network.host_ip(others[1]))[-1] == others[1]


def test_the_way_follows_links_the_gateways_address_and_restarts() -> None:
    network = with_gateway(topologies.load("butterfly"), "T2")
    net = ControlledNetwork.brought_up(network)
    mac = network.host_mac("T2")
    assert sends(net, "T0", mac) == ("T0", "S0", "S4", "T2")
    net.handle(PortWentDown(network.datapath_id("S0"), 2))
    assert sends(net, "T0", mac) == ("T0", "S0", "S2", "S3", "S4", "T2")
    place = network.datapath_id("S4"), next(arc.tail_port for arc in network.arcs() if arc.head == "T2")
    net.handle(PacketArrived(*place, arp_frame(1, NEW_MAC, network.host_ip("T2"), network.host_ip("T2"))))
    assert sends(net, "T0", NEW_MAC)[-1] == "T2"
    assert sends(net, "T0", mac)[-1] == CONTROLLER
    rules = {each: set(table.rules.values()) for each, table in net.switches.tables.items()}
    net.reconnect("S5")
    net.pass_time(0.3)
    assert rules == {each: set(table.rules.values()) for each, table in net.switches.tables.items()}
    assert ClientEventKind.RULES_REPAIRED not in [report.kind for report in net.reports]


def test_there_is_one_gateway_and_it_is_a_host() -> None:
    butterfly = topologies.load("butterfly")
    with pytest.raises(InvalidTopology, match="there is already T0"):
        check_network(with_gateway(butterfly, "T0", "T1"))
    with pytest.raises(ValueError, match="is no gateway"):
        with_gateway(butterfly, "S0")
    assert with_gateway(butterfly).gateway is None
    assert "gateway" not in with_gateway(butterfly).nodes[0].model_dump()
