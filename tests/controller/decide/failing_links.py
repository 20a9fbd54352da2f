"""A network whose links fail and return, and what must hold at any time."""

from __future__ import annotations

import random
from typing import Any

import pytest

import topologies
from controller.model.events import RulesRefused
from controller.model.rules import Rule
from controller.model.settings import Settings
from controller.model.views import FlowView
from tests.fakes.growing_host import GrowingHost
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from topologies.model import Network

BUTTERFLY = topologies.load("butterfly")


def bring_up(network: Network = BUTTERFLY, **settings: Any) -> ControlledNetwork:
    return ControlledNetwork.brought_up(network, Settings(**settings))


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


class Soak:
    """Random faults on a network, by a seed; `STEPS` are names of methods.

    Attributes:
        down: Links.
        hosts: Whose flows have streams that come and go.
    """

    def __init__(self, draw: random.Random, net: ControlledNetwork) -> None:
        self.draw = draw
        self.net = net
        network = net.switches.network
        self.links = [link.name for link in network.links if not {*link.ends} & {*network.hosts}]
        self.down: set[str] = set()
        self.hosts: list[GrowingHost] = []

    def link(self) -> None:
        """A link fails or returns."""
        link = self.draw.choice(self.links)
        if link in self.down:
            self.down.discard(link)
            self.net.restore_link(link)
        elif len(self.down) < 3:
            self.down.add(link)
            self.net.break_link(link)

    def restart(self) -> None:
        """The controller is killed, and another one takes over."""
        if not self.down:  # what comes back says that all its ports are up
            self.net.restart()
            self.net.come_back()
            self.renew()

    def renew(self) -> None:
        """All hosts begin other sessions."""
        for number, host in enumerate(self.hosts):
            host.renew(f"session {number} of {self.draw.random()}")

    def refuse(self) -> None:
        """A switch sends an error for what it was sent last."""
        if self.net.switches.installed:
            message = self.net.switches.installed[-1]
            self.net.handle(RulesRefused(message.datapath_id, message.barrier, "TABLE_FULL"))

    def calm_down(self) -> None:
        """All links return, and hosts do what they are told."""
        for link in sorted(self.down):
            self.net.restore_link(link)
        for host in self.hosts:
            host.is_slow = False

    def end_all(self, seconds: float) -> None:
        """See that nothing is left when all leases have run out."""
        self.net.pass_time(seconds)
        snapshot = self.net.snapshot()
        assert snapshot.flows == ()
        assert all(link.allocated_bps == 0 for link in snapshot.links)
        assert self.net.records.get("flow", {}) == {}
        installed_is_desired(self.net)
