"""A network whose links fail and return, and what must hold at any time."""

from __future__ import annotations

from typing import Any

import pytest

import topologies
from controller.model.events import LinkDiscovered, PortCameUp, PortWentDown
from controller.model.rules import Rule
from controller.model.settings import Settings
from controller.model.views import FlowView
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from topologies.model import Network

BUTTERFLY = topologies.load("butterfly")


def bring_up(network: Network = BUTTERFLY, **settings: Any) -> ControlledNetwork:
    return ControlledNetwork.brought_up(network, Settings(**settings))


def port_of(net: ControlledNetwork, link: str) -> tuple[int, int]:
    a, b = link.split("-")
    arc = net.core._state.live.arcs[f"{a}->{b}"]
    return net.switches.network.datapath_id(a), arc.tail_port


def break_link(net: ControlledNetwork, link: str) -> None:
    """One end is enough."""
    net.handle(PortWentDown(*port_of(net, link)))


def restore_link(net: ControlledNetwork, link: str) -> None:
    a, b = link.split("-")
    net.handle(PortCameUp(*port_of(net, link)))
    ends = port_of(net, link), port_of(net, f"{b}-{a}")
    for tail, head in (ends, ends[::-1]):
        net.handle(LinkDiscovered(*tail, *head))


def check(net: ControlledNetwork) -> None:
    """No link is promised more than it has; what is installed is what should be; packets go as promised."""
    snapshot = net.snapshot()
    for link in snapshot.links:
        assert net.core._state.flows.load_bps(link.link) == pytest.approx(link.allocated_bps, abs=1e-3)
        assert link.allocated_bps <= link.capacity_bps * (1 + 1e-6), link
    for flow in snapshot.flows:
        if flow.state == "active" and flow.splitting == "streams" and not flow.lost_links:
            for path, connection in segments_of(flow):
                assert net.switches.path(Packet.tcp(connection), flow.source) == path
                assert net.switches.path(Packet.tcp(connection.reverse), flow.destination) == path[::-1]


def installed_is_desired(net: ControlledNetwork) -> None:
    for name in net.switches.network.switches:
        table = net.switches.tables[net.switches.network.datapath_id(name)]
        pinned = {rule for rule in table.rules.values() if rule.cookie >> 32 & 0xF == 2}
        wanted = {entry for entry in net.core._state.pinned_rules(name) if hasattr(entry, "match")}
        assert pinned == wanted, name
        rules = net.core._rules
        assert rules.count(name) == sum(isinstance(entry, Rule) for entry in rules.wanted(name))


def only_flow(net: ControlledNetwork) -> FlowView:
    (flow,) = net.snapshot().flows
    return flow
