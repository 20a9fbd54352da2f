"""Flows whose links go and return: planned again, moved make before break, within the capacity."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

import topologies
from controller.errors import RequestError
from controller.model.events import (
    PortWentDown,
    RulesRefused,
    SwitchDisconnected,
    TimePassed,
)
from controller.model.messages import AllocationChanged, InstallRules
from controller.model.rules import TABLE_DEFAULT, Rule, is_flow_cookie
from tests.controller.decide.failing_links import (
    BUTTERFLY,
    Soak,
    bring_up,
    check,
    installed_is_desired,
    only_flow,
)
from tests.fakes.growing_host import GrowingHost
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.requests import WITH_PORTS as REQUEST


def test_a_flow_whose_link_goes_gets_another_path_and_its_owner_is_told(net: ControlledNetwork) -> None:
    flow = net.request(owner="me", **REQUEST)
    net.break_link("S2-S3")
    now = only_flow(net)
    assert now.rate_bps == pytest.approx(8.5e6), "there is a third path: S0-S2-S1-S5-S3-S4"
    assert now.lost_links == ()
    assert [s.source_port for s in now.streams] == [s.source_port for s in flow.streams]
    assert any(stream.path[2:-2] == ("S2", "S1", "S5", "S3") for stream in now.streams)
    told = net.notifications[-1]
    assert told.owner == "me"
    assert isinstance(told.change, AllocationChanged)
    assert told.change.flow.streams == now.streams
    check(net)
    installed_is_desired(net)


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_a_split_flow_gets_other_paths_under_its_stamps(net: ControlledNetwork, splitting: str) -> None:
    flow = net.request(**{**REQUEST, "source_ports": [40001], "splitting": splitting})
    net.break_link("S2-S3")
    now = only_flow(net)
    assert now.lost_links == ()
    assert now.rate_bps == pytest.approx(flow.rate_bps, rel=0.01)
    assert now.split is not None
    assert flow.split is not None
    assert now.split.stamps == flow.split.stamps
    check(net)
    installed_is_desired(net)


def test_what_cannot_be_carried_is_off_the_accounts_and_comes_back(net: ControlledNetwork) -> None:
    flow = net.request(owner="me", **REQUEST)
    for link in ("S0-S4", "S0-S2"):
        net.break_link(link)
    now = only_flow(net)
    assert now.rate_bps == 0
    assert all(link.allocated_bps == 0 for link in net.snapshot().links)
    assert net.notifications[-1].owner == "me"
    assert net.notifications[-1].change.flow.rate_bps == 0  # type: ignore[union-attr]
    for link in ("S0-S4", "S0-S2"):
        net.restore_link(link)
    net.pass_time(1)
    assert only_flow(net).rate_bps == pytest.approx(flow.rate_bps)
    check(net)
    installed_is_desired(net)


def test_when_the_link_returns_the_optimum_does() -> None:
    net = bring_up()
    flow = net.request(**{**REQUEST, "rate_bps": 12e6})
    net.break_link("S3-S4")
    assert only_flow(net).rate_bps < 5e6
    check(net)
    net.restore_link("S3-S4")
    net.pass_time(1)
    assert only_flow(net).rate_bps == pytest.approx(flow.rate_bps)
    check(net)
    installed_is_desired(net)


def test_when_another_flow_ends_a_running_one_moves_to_better_paths(net: ControlledNetwork) -> None:
    first = net.request(**{**REQUEST, "source": "T1", "destination": "T2", "source_ports": [1, 2, 3]})
    second = net.request(**REQUEST)
    assert second.rate_bps < 8.5e6
    net.release(first.flow_id)
    net.pass_time(2)
    assert only_flow(net).rate_bps == pytest.approx(8.5e6)
    check(net)
    installed_is_desired(net)


def test_paths_given_by_hand_are_kept_and_get_their_rates_back(net: ControlledNetwork) -> None:
    paths = ({"nodes": ["T0", "S0", "S4", "T2"], "rate_bps": 4e6},)
    fields = {**REQUEST, "paths": paths, "source_ports": [40001]}
    del fields["rate_bps"]
    net.request(**fields)
    net.break_link("S0-S4")
    assert only_flow(net).rate_bps == 0
    net.restore_link("S0-S4")
    net.pass_time(1)
    assert only_flow(net).rate_bps == 4e6


def test_new_requests_use_what_a_lost_flow_leaves(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    for link in ("S0-S4", "S0-S2"):
        net.break_link(link)
    other = net.request(source="T1", destination="T2", destination_port=1, rate_bps=4e6)
    assert other.rate_bps == pytest.approx(4e6)


def test_a_move_that_a_switch_refuses_is_taken_back_and_tried_again(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    net.silent = frozenset({"S1"})
    net.break_link("S2-S3")
    (waiting,) = [
        m for m in net.switches.installed if m.datapath_id == BUTTERFLY.datapath_id("S1") and m.entries
    ][-1:]
    net.silent = frozenset()
    net.handle(RulesRefused(waiting.datapath_id, waiting.barrier, "TABLE_FULL"))
    check(net)
    net.pass_time(6)
    assert only_flow(net).rate_bps == pytest.approx(8.5e6)
    check(net)
    installed_is_desired(net)


def test_a_switch_that_never_confirms_a_move_loses_no_other_flow(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    other = net.request(source="T2", destination="T3", destination_port=9, rate_bps=1e5)
    net.silent = frozenset({"S1"})
    net.break_link("S2-S3")
    net.pass_time(4)
    flows = {flow.flow_id: flow for flow in net.snapshot().flows}
    assert flows[other.flow_id].rate_bps == pytest.approx(1e5)
    check(net)


def test_a_flow_that_ends_while_it_is_moved_leaves_nothing(net: ControlledNetwork) -> None:
    flow = net.request(**REQUEST)
    net.silent = frozenset({"S1"})
    net.break_link("S2-S3")
    net.silent = frozenset()
    net.release(flow.flow_id)
    net.pass_time(4)
    assert all(link.allocated_bps == 0 for link in net.snapshot().links)
    installed_is_desired(net)


def test_many_flows_on_one_link_are_moved_together_by_one_barrier_a_switch_and_stage() -> None:
    net = bring_up(topologies.load("butterfly", overrides=None))
    for number in range(40):
        net.request(**{**REQUEST, "destination_port": 6000 + number, "rate_bps": 1e5, "source_ports": [5000]})
    before: list[InstallRules] = list(net.switches.installed)
    net.break_link("S0-S4")
    barriers = [
        m for m in net.switches.installed[len(before) :] if any(hasattr(e, "match") for e in m.entries)
    ]
    assert all(not flow.lost_links for flow in net.snapshot().flows)
    assert len(barriers) < 40
    check(net)
    installed_is_desired(net)


def test_the_rules_of_flows_go_out_before_anything_else_is_computed() -> None:
    net = bring_up()
    net.request(**REQUEST)
    net.switches.path(Packet(0x0800, 17, "10.0.0.2", "10.0.0.4"), "T1")
    core, now = net.core, net.now
    core.handle(PortWentDown(*net.port_of("S2-S3")), now)
    first = [m for m in core.handle(TimePassed(), now) if isinstance(m, InstallRules)]
    assert first
    assert all(is_flow_cookie(e.cookie) for m in first for e in m.entries if isinstance(e, Rule))
    core.sent(now)
    due = core.next_deadline()
    assert due is not None and due <= now, "the others are due still"
    others = [m for m in core.handle(TimePassed(), now) if isinstance(m, InstallRules)]
    assert any(e.table == TABLE_DEFAULT for m in others for e in m.entries if isinstance(e, Rule))


def test_the_optimum_of_flows_that_stay_waits_for_moves_but_not_for_long() -> None:
    net = bring_up()
    net.request(**REQUEST)
    stays = net.request(**{**REQUEST, "source": "T1", "destination": "T3", "source_ports": [40001]})
    assert [stream.path for stream in stays.streams] == [("T1", "S1", "S5", "T3")]
    net.pass_time(2.0)
    core, optima = net.core, net.core._flows._optima
    began = net.now
    core.handle(PortWentDown(*net.port_of("S2-S3")), began)
    core.handle(TimePassed(), began)  # new rules are on their way, and no switch confirms them
    core.sent(began)
    planned = optima.solves
    solved_at = None
    while solved_at is None and net.now < began + 2.0:
        net.now = max(net.now, core.next_deadline() or 0.0)
        core.handle(TimePassed(), net.now)
        core.sent(net.now)
        solved_at = net.now if optima.solves > planned else None
    assert solved_at is not None
    assert 0.5 <= solved_at - began <= 0.8


class NetworkSoak(Soak):
    """Links, switches, controllers, refusals, clients that vanish."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.network = topologies.load("butterfly" if seed % 2 else "fat-tree:4:rate_bps=10e6")
        super().__init__(draw, bring_up(self.network, default_routing=draw.choice(["shortest", "ecmp"])))
        self.flows: list[str] = []

    def request(self) -> None:
        source, destination = self.draw.sample(self.network.hosts, 2)
        fields: dict[str, Any] = {
            "source": source,
            "destination": destination,
            "destination_port": self.draw.randrange(1, 60000),
            "rate_bps": self.draw.choice([1e5, 1e6, 4e6, 8e6]),
            "objective": self.draw.choice(["max_throughput_min_delay", "fair"]),
            "max_paths": 2,
        }
        with contextlib.suppress(RequestError):
            self.flows.append(self.net.request(**fields).flow_id)

    def request_growing(self) -> None:
        """A flow whose host opens and closes streams; of some ports it finds later that they are taken."""
        source, destination = self.draw.sample(self.network.hosts, 2)
        fields: dict[str, Any] = {
            "source": source,
            "destination": destination,
            "destination_port": self.draw.randrange(1, 60000),
            "rate_bps": self.draw.choice([1e6, 4e6, 8e6]),
            "source_ports": self.draw.sample(range(1, 60000), 3),
        }
        with contextlib.suppress(RequestError):
            host = GrowingHost(self.net, **fields)
            host.unusable = set(self.draw.sample(fields["source_ports"], 1)) - host.open_ports
            self.flows.append(host.flow_id)
            self.hosts.append(host)

    def hosts_follow(self) -> None:
        for host in self.hosts:
            host.is_slow = self.draw.random() < 0.3
            host.follow()

    def release(self) -> None:
        if self.flows:
            with contextlib.suppress(RequestError):
                self.net.release(self.flows.pop(self.draw.randrange(len(self.flows))))

    def switch(self) -> None:
        """A switch loses its connection, and perhaps its rules."""
        if self.down:
            return  # what comes back says that all its ports are up
        name = self.draw.choice(self.network.switches)
        self.net.handle(SwitchDisconnected(self.network.datapath_id(name)))
        if self.draw.random() < 0.5:
            self.net.switches.tables[self.network.datapath_id(name)].clear()
        self.net.pass_time(self.draw.choice([1, 5]))
        self.net.reconnect(name)

    def vanish(self) -> None:
        """Clients renew nothing for a while."""
        self.net.pass_time(self.draw.choice([1, 10, 20]))


STEPS = ["request"] * 3 + ["request_growing"] * 2 + ["hosts_follow"] * 3
STEPS += ["release", "link", "link", "switch", "restart", "refuse", "vanish"]


@pytest.mark.parametrize("seed", range(10))
def test_a_soak_of_random_faults(seed: int) -> None:
    """Some minutes of simulated time a seed."""
    soak = NetworkSoak(seed)
    for _ in range(60):
        getattr(soak, soak.draw.choice(STEPS))()
        check(soak.net)
        soak.net.pass_time(1)
        check(soak.net)
    soak.calm_down()
    for host in soak.hosts:
        host.follow()
    soak.net.pass_time(10)
    check(soak.net)
    installed_is_desired(soak.net)
    soak.end_all(40)
