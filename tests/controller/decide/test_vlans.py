"""Hosts with a VLAN tag: their frames have it at their ports, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

import topologies
from controller.model.events import PacketArrived
from controller.model.rules import TcpConnection
from tests.controller.decide.test_gateway import with_hosts
from tests.controller.decide.test_labels import ask
from tests.controller.decide.test_neighbours import asks
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.rule_table import DROPPED
from topologies.check import check_numbered
from topologies.errors import InvalidTopology
from topologies.model import Network

VLANS = {"T2": 7, "T1": 9}
TAGGED = with_hosts(topologies.load("butterfly"), vlan=VLANS)
ONE_SWITCH = Network.model_validate(
    {
        "name": "one",
        "nodes": [
            {"name": "S", "kind": "switch"},
            {"name": "T0", "kind": "host"},
            {"name": "T2", "kind": "host", "vlan": 7},
        ],
        "links": [{"ends": ["S", host], "rate_bps": 1e7, "delay_us": 100} for host in ("T0", "T2")],
    }
)


def carried(net: ControlledNetwork, source: str, destination: str, tag: int | None, **ports: int) -> Any:
    """Return where a packet ends, and the tag with which it arrives."""
    network = net.switches.network
    ends = network.host_ip(source), network.host_ip(destination), ports.get("port", 1), 5001
    nodes, arrived = net.switches.trace(Packet.tcp(TcpConnection(*ends), tag=tag), source)
    return nodes[-1], arrived.tag


@pytest.mark.parametrize("network", [TAGGED, ONE_SWITCH])
def test_tags_are_taken_off_and_written_at_the_edges(network: Network) -> None:
    net = ControlledNetwork.brought_up(network)
    one, other = "T0", "T2"
    ask(net, one, other)
    for flows in range(2):
        assert carried(net, one, other, None, port=40000) == (other, 7)
        assert carried(net, other, one, 7) == (one, None)
        assert carried(net, other, one, None) == (DROPPED, None), "it is not the host's frame"
        assert carried(net, other, one, 8) == (DROPPED, 8)
        if not flows:
            ends: dict[str, Any] = {"source": one, "destination": other, "destination_port": 5001}
            net.request(**ends, source_ports=[40000], rate_bps=1e5)


def test_what_the_controller_sends_has_the_tag() -> None:
    net = ControlledNetwork.brought_up(TAGGED)
    net.handle(PacketArrived(TAGGED.datapath_id("S1"), 1, asks("10.0.0.3", sender="10.0.0.2")))
    assert {(out.datapath_id, out.tag) for out in net.switches.packets_out} == {(TAGGED.datapath_id("S1"), 9)}
    assert {host.name: host.vlan for host in net.snapshot().hosts if host.vlan} == VLANS


def test_hosts_alone_have_tags_and_they_are_not_emulated() -> None:
    with pytest.raises(ValueError, match="a switch has no ip, ip6, mac or vlan"):
        with_hosts(TAGGED, vlan={"S0": 3})
    with pytest.raises(InvalidTopology, match="T1 has an address of its own or a VLAN"):
        check_numbered(TAGGED)
