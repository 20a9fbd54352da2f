"""What links and flows carry by the switches' counters, and traffic that nobody asked for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import topologies
from controller.errors import RequestError
from controller.model.client_events import ClientEventKind
from controller.model.events import ConfigurationChanged, CountersRefused, SwitchDisconnected
from controller.model.messages import Reply
from controller.model.rules import TcpConnection
from controller.model.settings import Counters, Settings
from controller.model.views import FlowView, LinkView
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from tests.fakes.requests import WITH_PORTS as REQUEST

BUTTERFLY = topologies.load("butterfly")
STEP_S = 0.1


class LoadedNetwork(ControlledNetwork):
    """The butterfly with traffic: packets by the host that sends them, and their wire rate."""

    def __init__(self, **counters: Any) -> None:
        super().__init__(BUTTERFLY, Settings(counters=Counters(**counters)))
        self.bring_up()
        self.traffic: dict[tuple[str, Packet], float] = {}

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            for (source, packet), rate_bps in self.traffic.items():
                self.switches.carry(packet, source, round(rate_bps * STEP_S / 8))
            self.pass_time(STEP_S)

    def send_as_granted(self, flow: FlowView) -> None:
        for (_, connection), stream in zip(segments_of(flow), flow.streams, strict=True):
            self.traffic[flow.source, Packet.tcp(connection)] = stream.wire_bps

    def send_by_default(self, source: str, destination: str, rate_bps: float) -> None:
        ends = (BUTTERFLY.host_ip(source), BUTTERFLY.host_ip(destination))
        self.traffic[source, Packet.tcp(TcpConnection(*ends, 1, 2))] = rate_bps

    def links(self) -> dict[str, LinkView]:
        return {view.link: view for view in self.snapshot().links}

    def told(self) -> list[tuple[str, bool]]:
        return [
            (str(report.data["link"]), bool(report.data["unrequested_bps"]))
            for report in self.reports
            if report.kind is ClientEventKind.UNREQUESTED_TRAFFIC
        ]


def test_nothing_is_measured_before_switches_were_asked_twice() -> None:
    net = LoadedNetwork(interval_s=0.0)
    net.run(3)
    flow = net.request(**REQUEST)
    assert flow.measured_bps is None
    assert {stream.measured_bps for stream in flow.streams} == {None}
    assert {(link.measured_bps, link.unrequested_bps) for link in net.links().values()} == {(None, None)}


def test_links_and_streams_carry_what_is_sent() -> None:
    """Both kinds of counters agree with what hosts send, and nothing of it is unrequested."""
    net = LoadedNetwork()
    net.send_as_granted(net.request(**REQUEST))
    net.run(10)
    (flow,) = net.snapshot().flows
    for stream in flow.streams:
        assert stream.measured_bps == pytest.approx(stream.wire_bps, rel=0.01)
    assert flow.measured_bps == pytest.approx(sum(stream.wire_bps for stream in flow.streams), rel=0.01)
    for name, link in net.links().items():
        carried = sum(s.wire_bps for s in flow.streams if name in {f"{a}->{b}" for a, b in pairwise(s.path)})
        assert link.measured_bps == pytest.approx(carried, rel=0.01), name
        assert link.measured_utilisation == pytest.approx(carried / link.capacity_bps, rel=0.01)
        assert link.unrequested_bps == 0
    assert net.told() == []


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_paths_of_split_flows_are_measured_by_their_stamps(splitting: str) -> None:
    net = LoadedNetwork()
    request = REQUEST | {"source_ports": [40001], "splitting": splitting}
    flow = net.request(**request)
    assert flow.split is not None
    (_, connection) = segments_of(flow)[0]
    for stamp, stream in zip(flow.split.stamps, flow.streams, strict=True):
        packet = Packet.tcp(connection, stamp if splitting == "packets" else None)
        if splitting == "packets":
            net.traffic["T0", packet] = stream.wire_bps
        else:  # one connection takes one path
            net.traffic["T0", packet] = 1e6
    net.run(10)
    (flow,) = net.snapshot().flows
    measured = [stream.measured_bps for stream in flow.streams]
    if splitting == "packets":
        assert measured == pytest.approx([stream.wire_bps for stream in flow.streams], rel=0.01)
    else:
        assert measured == [None, None], "a group counts no path by itself"
        assert flow.measured_bps == pytest.approx(1e6, rel=0.01)
    assert {link.unrequested_bps for link in net.links().values()} <= {0.0, None}


def test_traffic_that_nobody_asked_for_is_taken_off_what_new_flows_get() -> None:
    undisturbed = LoadedNetwork().request(**REQUEST)
    net = LoadedNetwork()
    net.send_by_default("T0", "T2", 2e6)
    net.run(10)
    busy = {name for name, link in net.links().items() if link.unrequested_bps}
    path = net.switches.path(next(packet for _, packet in net.traffic), "T0")
    assert busy == {f"{a}->{b}" for a, b in pairwise(path)}
    assert sorted(net.told()) == sorted((name, True) for name in busy)
    flow = net.request(**REQUEST)
    assert flow.rate_bps < undisturbed.rate_bps - 0.5e6
    for link in net.links().values():
        assert link.allocated_bps + (link.unrequested_bps or 0) <= link.capacity_bps * (1 + 1e-6)


def test_flows_get_the_rest_when_that_traffic_ends() -> None:
    wanted = LoadedNetwork().request(**REQUEST)
    net = LoadedNetwork()
    net.send_by_default("T0", "T2", 2e6)
    net.run(10)
    flow = net.request(**REQUEST)
    assert flow.rate_bps < wanted.rate_bps
    net.traffic.clear()
    net.run(10)
    (flow,) = net.snapshot().flows
    assert flow.rate_bps == pytest.approx(wanted.rate_bps, rel=1e-4)
    assert not any(link.unrequested_bps for link in net.links().values())
    ended = {link for link, began in net.told() if not began}
    assert ended == {link for link, began in net.told() if began}


def test_running_flows_keep_what_they_have() -> None:
    """Elastic traffic would take it all, bit by bit."""
    net = LoadedNetwork()
    before = net.request(**REQUEST)
    net.send_by_default("T0", "T2", 9e6)
    net.run(12)
    assert any(link.unrequested_bps for link in net.links().values())
    net.request(**REQUEST | {"source": "T1", "destination": "T3", "rate_bps": 1e6, "source_ports": [1]})
    net.run(3)
    after = next(flow for flow in net.snapshot().flows if flow.flow_id == before.flow_id)
    assert after.rate_bps == pytest.approx(before.rate_bps)


def test_no_more_than_the_configured_share_is_left_to_it() -> None:
    """Traffic that fills a link keeps no new flow out."""
    net = LoadedNetwork(yielded_share=0.25)
    net.send_by_default("T0", "T2", 10e6)
    net.run(10)
    flow = net.request(**REQUEST)
    plain = LoadedNetwork().request(**REQUEST)
    assert 0.6 * plain.rate_bps < flow.rate_bps < plain.rate_bps


def test_it_is_seen_and_nothing_is_left_to_it_where_so_configured() -> None:
    net = LoadedNetwork(yielded_share=0.0)
    net.send_by_default("T0", "T2", 5e6)
    net.run(10)
    assert any(link.unrequested_bps for link in net.links().values())
    assert net.request(**REQUEST).rate_bps == pytest.approx(LoadedNetwork().request(**REQUEST).rate_bps)


def test_bursts_are_not_believed() -> None:
    net = LoadedNetwork()
    for _ in range(3):
        net.send_by_default("T0", "T2", 9e6)
        net.run(1)
        net.traffic.clear()
        net.run(9)
    assert net.told() == []


def test_a_switch_that_is_away_is_not_measured() -> None:
    net = LoadedNetwork()
    net.send_by_default("T0", "T2", 5e6)
    net.run(10)
    net.handle(SwitchDisconnected(BUTTERFLY.datapath_id("S0")))
    links = net.links()
    assert links["S0->S4"].measured_bps is None
    assert links["T0->S0"].unrequested_bps is None
    assert links["S4->T2"].measured_bps is not None


def test_a_switch_that_counts_nothing_is_asked_no_more() -> None:
    net = LoadedNetwork()
    net.run(2)
    net.handle(CountersRefused(BUTTERFLY.datapath_id("S0"), "bad request"))
    net.handle(SwitchDisconnected(BUTTERFLY.datapath_id("S0")))
    net.reconnect("S0")
    net.run(3)
    assert sum("is not measured" in report.text for report in net.reports) == 1


def test_counters_are_read_no_more_once_it_is_so_configured() -> None:
    net = LoadedNetwork()
    net.send_by_default("T0", "T2", 5e6)
    net.run(10)
    (answer,) = net.handle(ConfigurationChanged(1, Settings(counters=Counters(interval_s=0.0)), {}))
    assert isinstance(answer, Reply) and not isinstance(answer.result, RequestError)
    net.run(3)
    assert {link.measured_bps for link in net.links().values()} == {None}


def test_packets_to_multicast_and_broadcast_addresses_are_dropped_counted_and_told() -> None:
    """Once an hour for each switch at most, and again from the start where its rule was made again."""
    net = LoadedNetwork()

    def told() -> list[object]:
        kind = ClientEventKind.GROUP_PACKETS_DROPPED
        return [(each.data["switch"], each.data["packets"]) for each in net.reports if each.kind is kind]

    for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:fb"):
        packet = Packet(0x0800, 17, BUTTERFLY.host_ip("T0"), "224.0.0.251", 5353, 5353, destination_mac=mac)
        net.traffic["T0", packet] = 1000.0
    net.run(1)
    net.traffic.clear()
    net.run(40)
    assert told() == [("S0", 20)]
    assert net.core._state.dropped_group_packets["S0"] == 20
    for packets, at in ((25, 60.0), (30, 4000.0), (7, 8000.0), (7, 16000.0)):
        net.core._measuring._groups.counted("S0", packets, net.now + at)
    net.run(1)
    assert told() == [("S0", 20), ("S0", 10), ("S0", 7)]
