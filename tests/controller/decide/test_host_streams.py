"""Streams that are added to running flows and taken off, with hosts that open and close them, or don't."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from controller.decide.preview import preview
from controller.errors import Conflict, InvalidRequest, RequestError
from controller.model.callers import Caller
from controller.model.client_events import ClientEventKind
from controller.model.events import LinkChanged, RulesRefused, StreamsReported
from controller.model.requests import FailedElements, LinkChange, PreviewRequest
from controller.model.views import FlowView
from tests.controller.decide.failing_links import Soak, bring_up, check, installed_is_desired, only_flow
from tests.fakes.growing_host import GrowingHost
from tests.fakes.openflow_table import ControlledNetwork
from topologies.model import Network

DIAMOND = Network.model_validate(
    {
        "name": "diamond",
        "nodes": [
            *({"name": name, "kind": "host"} for name in ("A", "B")),
            *({"name": name, "kind": "switch"} for name in ("S0", "S1", "S2", "S3", "S4")),
        ],
        "links": [
            {"ends": ends, "rate_bps": rate_bps, "delay_us": delay_us}
            for ends, rate_bps, delay_us in (
                (("A", "S0"), 100e6, 100),
                (("B", "S4"), 100e6, 100),
                (("S0", "S1"), 12e6, 1000),
                (("S1", "S4"), 12e6, 1000),
                (("S0", "S2"), 6e6, 2000),
                (("S2", "S4"), 6e6, 2000),
                (("S0", "S3"), 6e6, 3000),
                (("S3", "S4"), 6e6, 3000),
            )
        ],
    }
)
"""One path that carries 12 Mbit/s on the wire, and two that carry 6 each."""

REQUEST: dict[str, Any] = {
    "source": "A",
    "destination": "B",
    "destination_port": 5001,
    "rate_bps": 10e6,
    "source_ports": [40001, 40002, 40003],
}


@pytest.fixture
def net() -> ControlledNetwork:
    return bring_up(DIAMOND)


@pytest.fixture
def host(net: ControlledNetwork) -> GrowingHost:
    """A host whose flow takes the shortest path, and may take others."""
    return GrowingHost(net, **REQUEST)


def paths(flow: FlowView) -> list[str]:
    return [stream.path[2] for stream in flow.streams]


def pass_seconds(net: ControlledNetwork, host: GrowingHost | None, seconds: float) -> None:
    """Let time pass bit by bit; what was promised holds at each moment, and the host does as it is told."""
    for _ in range(round(seconds / 0.25)):
        net.pass_time(0.25)
        if host is not None:
            host.follow()
        check(net)


def test_a_flow_grows_when_its_only_path_fails_and_shrinks_when_it_returns(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    assert paths(only_flow(net)) == ["S1"]
    net.break_link("S0-S1")
    check(net)
    grown = only_flow(net)
    assert grown.rate_bps == pytest.approx(10e6)
    assert sorted(paths(grown)) == ["S2", "S3"]
    assert [stream.is_opening for stream in grown.streams] == [False, True]
    assert net.notifications[-1].change.flow.streams == grown.streams  # type: ignore[union-attr]
    host.follow()
    assert not any(stream.is_opening for stream in only_flow(net).streams)
    pass_seconds(net, host, 2)
    assert sorted(paths(only_flow(net))) == ["S2", "S3"], "both carry something"
    installed_is_desired(net)
    net.restore_link("S0-S1")
    pass_seconds(net, host, 4)
    assert paths(only_flow(net)) == ["S1"]
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    assert host.open_ports == {only_flow(net).streams[0].source_port}
    installed_is_desired(net)
    kinds = [report.kind for report in net.reports]
    assert ClientEventKind.FLOW_STREAMS_ADDED in kinds
    assert ClientEventKind.FLOW_STREAMS_REMOVED in kinds


def test_a_client_that_does_not_opt_in_keeps_its_streams(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    net.break_link("S0-S1")
    pass_seconds(net, None, 3)
    assert len(only_flow(net).streams) == 1
    assert only_flow(net).rate_bps < 6e6
    net.restore_link("S0-S1")
    pass_seconds(net, None, 2)
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    assert [stream.source_port for stream in only_flow(net).streams] == [40001]


def test_it_never_grows_beyond_what_its_client_allows(net: ControlledNetwork) -> None:
    host = GrowingHost(net, **REQUEST | {"rate_bps": 20e6, "max_paths": 2})
    assert len(only_flow(net).streams) == 2
    pass_seconds(net, host, 3)
    assert len(only_flow(net).streams) == 2


def test_the_rules_of_a_new_stream_are_there_before_its_owner_is_told(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    told = len(net.notifications)
    net.silent = frozenset({"S4"})
    net.break_link("S0-S1")
    assert all(len(note.change.flow.streams) == 1 for note in net.notifications[told:])  # type: ignore[union-attr]
    net.silent = frozenset()
    pass_seconds(net, host, 12)
    assert len(only_flow(net).streams) == 2
    installed_is_desired(net)


def test_a_stream_that_the_host_cannot_open_is_taken_off_and_another_is_tried(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    host.unusable = {40002}
    net.break_link("S0-S1")
    host.follow()
    check(net)
    assert len(only_flow(net).streams) == 1
    pass_seconds(net, host, 2)
    assert len(only_flow(net).streams) == 2
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    assert host.open_ports == {stream.source_port for stream in only_flow(net).streams}
    assert 40002 not in host.open_ports
    installed_is_desired(net)


def test_a_host_that_can_open_nothing_is_asked_a_few_times_only(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    host.unusable = set(range(65536))
    net.break_link("S0-S1")
    pass_seconds(net, host, 20)
    assert len(only_flow(net).streams) == 1
    added = [report for report in net.reports if report.kind is ClientEventKind.FLOW_STREAMS_ADDED]
    assert len(added) == 3
    installed_is_desired(net)


def test_a_stream_of_which_the_host_says_nothing_is_taken_off_after_a_while(net: ControlledNetwork) -> None:
    flow = GrowingHost(net, **REQUEST | {"lease_s": 600.0})
    net.break_link("S0-S1")
    pass_seconds(net, None, 10)
    assert len(only_flow(net).streams) == 2
    pass_seconds(net, None, 60)
    assert len(only_flow(net).streams) == 1, "three were tried"
    flow.follow()
    pass_seconds(net, flow, 12)
    installed_is_desired(net)


def test_the_rules_of_a_stream_that_was_taken_off_stay_until_it_is_closed(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.break_link("S0-S1")
    host.follow()
    net.restore_link("S0-S1")
    host.is_slow = True
    pass_seconds(net, host, 3)
    assert len(only_flow(net).streams) == 1
    assert host.still_leads(40001) and host.still_leads(40002), "it is being drained"
    installed_is_desired(net)
    host.is_slow = False
    host.follow()
    assert host.still_leads(40001) != host.still_leads(40002)
    installed_is_desired(net)


def test_a_host_that_never_says_that_it_closed_a_stream_has_its_rules_for_a_while(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.break_link("S0-S1")
    host.follow()
    net.restore_link("S0-S1")
    pass_seconds(net, None, 14)
    assert len(only_flow(net).streams) == 1
    assert host.still_leads(40001) != host.still_leads(40002)
    installed_is_desired(net)


def test_a_report_that_is_lost_or_comes_twice_does_no_harm(net: ControlledNetwork, host: GrowingHost) -> None:
    net.break_link("S0-S1")
    host.follow()
    before = only_flow(net)
    host.report()
    assert only_flow(net).streams == before.streams
    assert only_flow(net).revision == before.revision


def test_ports_that_are_bound_for_later_are_no_other_flows(net: ControlledNetwork) -> None:
    GrowingHost(net, **REQUEST)
    with pytest.raises(Conflict):
        net.request(**REQUEST | {"source_ports": [40003]})


@pytest.mark.parametrize("splitting", ["streams", "packets"])
@pytest.mark.parametrize("other", [{"streams": 2}, {"source_ports": [1]}, {"max_paths": 1}])
def test_what_contradicts_growing_is_refused(
    net: ControlledNetwork, other: dict[str, Any], splitting: str
) -> None:
    with pytest.raises(InvalidRequest):
        net.request(may_grow=True, **REQUEST | {"splitting": splitting} | other)


def test_a_controller_that_restarts_while_a_stream_is_being_added_takes_it_out(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.silent = frozenset({"S4"})
    net.break_link("S0-S1")
    assert len(only_flow(net).streams) == 1
    net.silent = frozenset()
    restart(net, host)
    installed_is_desired(net)
    pass_seconds(net, host, 3)
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    assert host.open_ports == {stream.source_port for stream in only_flow(net).streams}
    installed_is_desired(net)


def test_a_controller_that_restarts_before_its_host_has_opened_a_stream_goes_on(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.break_link("S0-S1")
    restart(net, host, links_back=False)
    assert [stream.is_opening for stream in only_flow(net).streams] == [False, False], "the owner was told"
    assert len(host.open_ports) == 2
    check(net)
    installed_is_desired(net)


def test_a_controller_that_restarts_while_a_stream_leaves_removes_its_rules_later(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.break_link("S0-S1")
    host.follow()
    net.restore_link("S0-S1")
    host.is_slow = True
    pass_seconds(net, host, 3)
    restart(net, host)
    assert host.still_leads(40001) and host.still_leads(40002)
    host.is_slow = False
    pass_seconds(net, host, 2)
    assert host.still_leads(40001) != host.still_leads(40002)
    installed_is_desired(net)


def test_rules_of_a_new_stream_that_a_switch_refuses_are_taken_back(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.silent = frozenset({"S3"})
    net.break_link("S0-S1")
    refused = [m for m in net.switches.installed if m.datapath_id == DIAMOND.datapath_id("S3") and m.entries][
        -1
    ]
    net.silent = frozenset()
    net.handle(RulesRefused(refused.datapath_id, refused.barrier, "TABLE_FULL"))
    check(net)
    pass_seconds(net, host, 7)
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    installed_is_desired(net)


def test_a_flow_that_ends_while_streams_come_and_go_leaves_nothing(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.break_link("S0-S1")
    net.restore_link("S0-S1")
    host.is_slow = True
    pass_seconds(net, host, 2)
    net.release(host.flow_id)
    pass_seconds(net, None, 15)
    assert all(link.allocated_bps == 0 for link in net.snapshot().links)
    assert net.records.get("flow", {}) == {}
    installed_is_desired(net)
    net.request(**REQUEST)


def test_a_flow_whose_link_becomes_slower_takes_another_path_too(
    net: ControlledNetwork, host: GrowingHost
) -> None:
    net.handle(LinkChanged(1, "S0-S1", LinkChange(rate_bps=7e6)))
    pass_seconds(net, host, 3)
    assert only_flow(net).rate_bps == pytest.approx(10e6)
    assert paths(only_flow(net)) == ["S1", "S2"]
    installed_is_desired(net)


def test_a_flow_that_had_to_take_a_longer_path_goes_back_to_the_optimum(net: ControlledNetwork) -> None:
    host = GrowingHost(net, **REQUEST | {"rate_bps": 14e6})
    before = only_flow(net)
    assert paths(before) == ["S1", "S2"]
    net.break_link("S0-S2")
    pass_seconds(net, host, 1)
    assert paths(only_flow(net)) == ["S1", "S3"]
    assert only_flow(net).rate_bps == pytest.approx(14e6)
    net.restore_link("S0-S2")
    pass_seconds(net, host, 2)
    assert paths(only_flow(net)) == ["S1", "S2"]
    assert [s.rate_bps for s in only_flow(net).streams] == pytest.approx([s.rate_bps for s in before.streams])
    moved = len(net.notifications)
    pass_seconds(net, host, 5)
    assert len(net.notifications) == moved, "there is nothing better"


def test_a_client_that_asks_for_more_gets_more_streams(net: ControlledNetwork, host: GrowingHost) -> None:
    net.change(host.flow_id, 20e6)
    pass_seconds(net, host, 3)
    assert only_flow(net).rate_bps == pytest.approx(20e6)
    assert len(only_flow(net).streams) == 3
    installed_is_desired(net)


def test_a_preview_shows_the_streams_that_a_failure_would_add(net: ControlledNetwork) -> None:
    GrowingHost(net, **REQUEST)
    view = preview(net.core._flows.copy(), PreviewRequest(fail=FailedElements(links=("S0-S1",))))
    (moved,) = view.flows
    assert moved.outcome == "moved"
    assert len(moved.paths_after) == 2
    assert moved.rate_after_bps == pytest.approx(10e6)
    assert len(only_flow(net).streams) == 1, "nothing happened"


def test_one_who_may_not_change_a_flow_reports_nothing(net: ControlledNetwork, host: GrowingHost) -> None:
    net.break_link("S0-S1")
    port = only_flow(net).streams[1].source_port
    stranger = Caller("stranger")
    net.handle(StreamsReported(1, host.flow_id, frozenset(), frozenset({port}), (), stranger))
    assert len(only_flow(net).streams) == 2


def restart(net: ControlledNetwork, host: GrowingHost, links_back: bool = True) -> None:
    """Kill the controller; another takes over, and the host renews its lease there."""
    net.restart()
    net.come_back()
    if not links_back:
        net.break_link("S0-S1")
    host.renew("another session")
    host.follow()


class StreamSoak(Soak):
    """Links that fail and hosts that are slow, or cannot open a port."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed), bring_up(DIAMOND))
        self.links = ["S0-S1", "S0-S2", "S0-S3"]
        self.sessions = 0

    def request(self) -> None:
        if len(self.hosts) == 4:
            return
        port = 5000 + self.draw.randrange(10_000)
        ports = self.draw.sample(range(1024, 40_000), 3)
        fields = {"rate_bps": self.draw.choice([3e6, 8e6, 14e6]), "destination_port": port}
        with contextlib.suppress(RequestError):
            host = GrowingHost(self.net, f"session {port}", **REQUEST | {"source_ports": ports} | fields)
            host.unusable = set(self.draw.sample(ports, self.draw.randrange(2))) - host.open_ports
            self.hosts.append(host)

    def change(self) -> None:
        for host in self.hosts[-1:]:
            with contextlib.suppress(RequestError):
                self.net.change(host.flow_id, self.draw.choice([3e6, 8e6, 14e6]))

    def release(self) -> None:
        if self.hosts:
            with contextlib.suppress(RequestError):
                self.net.release(self.hosts.pop(0).flow_id)

    def follow(self) -> None:
        for host in self.hosts:
            host.is_slow = self.draw.random() < 0.3
            if self.draw.random() < 0.7:
                host.follow()

    def silence(self) -> None:
        """A switch confirms nothing for a while."""
        self.net.silent = frozenset(self.draw.sample(DIAMOND.switches, 1))
        self.net.pass_time(self.draw.choice([1.0, 4.0]))
        self.net.silent = frozenset()

    def renew(self) -> None:
        for host in self.hosts:
            self.sessions += 1
            host.renew(f"session number {self.sessions}")


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 37, 52])
def test_a_soak_of_hosts_whose_streams_come_and_go(seed: int) -> None:
    soak = StreamSoak(seed)
    steps = [soak.request, soak.change, soak.release, soak.refuse, soak.silence, soak.restart]
    steps += [soak.link] * 6 + [soak.follow] * 5 + [soak.request] * 3
    for _ in range(80):
        soak.draw.choice(steps)()
        check(soak.net)
        soak.net.pass_time(soak.draw.choice([0.3, 1.0, 3.0]))
        check(soak.net)
        soak.renew()
    soak.calm_down()
    for host in soak.hosts:
        host.unusable = set()
    for _ in range(40):
        soak.net.pass_time(1.0)
        soak.renew()
        for host in soak.hosts:
            host.follow()
    installed_is_desired(soak.net)
    flows = {flow.flow_id: flow for flow in soak.net.snapshot().flows}
    for host in soak.hosts:
        if host.flow_id in flows:
            assert {stream.source_port for stream in flows[host.flow_id].streams} == host.open_ports
    assert sum(flow.rate_bps for flow in flows.values()) >= 0.98 * min(
        22.5e6, sum(flow.requested_bps for flow in flows.values())
    ), "the optimum again"
    kinds = {report.kind for report in soak.net.reports}
    assert {ClientEventKind.FLOW_STREAMS_ADDED, ClientEventKind.FLOW_STREAMS_REMOVED} <= kinds
    soak.end_all(60)
