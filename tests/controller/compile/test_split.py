"""Split flows from request to end, on fake switches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from controller.api.schema import parse
from controller.compile.split import Split, bucket_weights, shares_of, stamps
from controller.errors import Conflict, ControllerError, InfeasibleRequest, InvalidRequest
from controller.model.events import FlowRequested, PortWentDown
from controller.model.messages import AllocationChanged, InstallRules
from controller.model.rules import Group, TcpConnection
from controller.model.views import FlowView, SplitView
from controller.state.flow import Flow, Stream
from controller.state.flow_table import FlowTable
from controller.state.hosts import Host
from controller.wire import Framing
from tests.fakes.openflow_table import ControlledNetwork, Packet
from tests.fakes.requests import FIRST
from topologies.model import Network

UPPER = ("T0", "S0", "S4", "T2")
MIDDLE = ("T0", "S0", "S2", "S3", "S4", "T2")
ONE: dict[str, Any] = FIRST | {"splitting": "packets"}
WIRE = 590 / 536
S0 = 1


def by_hand(upper_bps: float, middle_bps: float) -> dict[str, Any]:
    paths = [{"nodes": UPPER, "rate_bps": upper_bps}, {"nodes": MIDDLE, "rate_bps": middle_bps}]
    return {"rate_bps": None, "paths": paths}


def split_of(flow: FlowView) -> SplitView:
    assert flow.split is not None
    return flow.split


def segment_of(flow: FlowView) -> TcpConnection:
    split = split_of(flow)
    return TcpConnection(split.source_ip, split.destination_ip, split.source_port, split.destination_port)


def leftovers(net: ControlledNetwork) -> list[object]:
    """Return the pinned rules and the groups of all switches."""
    tables = net.switches.tables.values()
    groups = [group for table in tables for group in table.select_groups().values()]
    return [*net.switches.pinned(), *groups]


def group_of(net: ControlledNetwork, switch: str = "S0") -> Group:
    (group,) = net.switches.tables[net.switches.network.datapath_id(switch)].select_groups().values()
    return group


def loads(net: ControlledNetwork) -> dict[str, float]:
    return {link.link: link.allocated_bps for link in net.snapshot().links if link.allocated_bps > 0}


# The answer


def test_one_connection_over_all_paths(net: ControlledNetwork) -> None:
    flow = net.request(**ONE, objective="even_split", source_ports=(40001,))
    assert flow.splitting == "packets"
    assert [(s.source_port, s.path, s.rate_bps) for s in flow.streams] == [
        (40001, UPPER, 4.25e6),
        (40001, MIDDLE, 4.25e6),
    ]
    split = split_of(flow)
    assert (split.ingress.switch, split.ingress.port) == ("S0", 1)
    assert segment_of(flow) == TcpConnection("10.0.0.1", "10.0.0.3", 40001, 5001)
    assert split.shares == (0.5, 0.5)
    assert split.stamps == ("0a:50:50:00:01:00", "0a:50:50:00:01:01")
    assert split.acks == "shortest"
    assert split.ack_path == UPPER[::-1]
    assert net.snapshot().flows == (flow,)


def test_the_port_is_picked_where_none_is_given(net: ControlledNetwork) -> None:
    first, second = (net.request(**{**ONE, "rate_bps": 2e6}) for _ in range(2))
    assert split_of(first).source_port != split_of(second).source_port
    assert not set(split_of(first).stamps) & set(split_of(second).stamps)


def test_a_port_in_use_is_a_conflict(net: ControlledNetwork) -> None:
    net.request(**{**ONE, "rate_bps": 1e6}, source_ports=(40001,))
    for splitting in ("streams", "packets", "group"):
        with pytest.raises(Conflict, match="port 40001"):
            net.request(**{**ONE, "splitting": splitting, "rate_bps": 1e6}, source_ports=(40001,))


# What it takes


def test_it_is_plain_tcp_and_pays_for_no_identifiers(net: ControlledNetwork) -> None:
    flow = net.request(**{**ONE, "rate_bps": 20e6})
    # Both bottlenecks of 5 Mbit/s are full of data: the acknowledgements go over S4->S0 alone.
    assert flow.rate_bps == pytest.approx(10e6 / WIRE, rel=1e-9)
    assert loads(net)["S0->S4"] == pytest.approx(5e6)


def test_acknowledgements_load_their_own_path_alone(net: ControlledNetwork) -> None:
    flow = net.request(**{**ONE, **by_hand(1e6, 3e6)})
    assert split_of(flow).shares == pytest.approx((0.25, 0.75))
    upper, middle, both = 1e6 * WIRE, 3e6 * WIRE, 4e6 * WIRE
    forward = {"T0->S0": both, "S0->S4": upper, "S0->S2": middle, "S2->S3": middle, "S3->S4": middle}
    back = {"T2->S4": 0.0458 * both, "S4->S0": 0.0458 * both, "S0->T0": 0.0458 * both}
    assert loads(net) == pytest.approx(forward | {"S4->T2": both} | back)


def test_acknowledgements_back_along_a_path(net: ControlledNetwork) -> None:
    flow = net.request(**{**ONE, **by_hand(1e6, 3e6)}, ack_path="reverse:1")
    assert split_of(flow).acks == "reverse:1"
    assert split_of(flow).ack_path == MIDDLE[::-1]
    assert loads(net)["S3->S2"] == pytest.approx(0.0458 * 4e6 * WIRE)
    assert "S4->S0" not in loads(net)


def test_computed_paths_with_acknowledgements_back_along_the_second(net: ControlledNetwork) -> None:
    flow = net.request(**ONE, ack_path="reverse:1")
    assert [stream.path for stream in flow.streams] == [UPPER, MIDDLE]
    assert split_of(flow).ack_path == MIDDLE[::-1]
    assert flow.rate_bps == pytest.approx(8.5e6)


def test_the_optimum_counts_the_acknowledgements_of_both_ways(net: ControlledNetwork) -> None:
    """Two full split flows, one each way: data and the other's acknowledgements share the shortest path."""
    there = net.request(**{**ONE, "rate_bps": 50e6})
    back = net.request(**{**ONE, "source": "T2", "destination": "T0", "rate_bps": 50e6})
    there = net.snapshot().flows[0]
    # By symmetry each gets x with data on both 5 Mbit/s links and all ACKs of the other on S0-S4.
    total_bps = (there.rate_bps + back.rate_bps) * WIRE
    assert total_bps == pytest.approx(20e6 / 1.0458, rel=1e-6)
    for link in net.snapshot().links:
        assert link.allocated_bps <= link.capacity_bps * (1 + 1e-9)


# Packets


@pytest.mark.parametrize("ack_path", ["shortest", "reverse:1"])
def test_stamped_packets_travel_their_path_and_arrive_with_the_hosts_own_addresses(
    net: ControlledNetwork, ack_path: str
) -> None:
    flow = net.request(**ONE, ack_path=ack_path)
    own, its = (net.switches.network.host_mac(host) for host in ("T0", "T2"))
    segment = segment_of(flow)
    for stream, stamp in zip(flow.streams, split_of(flow).stamps, strict=True):
        path, packet = net.switches.trace(Packet.tcp(segment, stamp, its), "T0")
        assert path == stream.path
        assert packet == Packet.tcp(segment, own, its)
    plain = Packet.tcp(segment, own, its)
    assert net.switches.trace(plain, "T0") == (UPPER, plain)
    ack = Packet.tcp(segment.reverse, its, own)
    assert net.switches.trace(ack, "T2") == (split_of(flow).ack_path, ack)


def test_a_group_sends_each_connection_over_one_path(net: ControlledNetwork) -> None:
    own, its = (net.switches.network.host_mac(host) for host in ("T0", "T2"))
    taken = set()
    for port in range(40001, 40031):
        flow = net.request(**{**ONE, **by_hand(5e4, 5e4), "splitting": "group"}, source_ports=(port,))
        segment = segment_of(flow)
        path, packet = net.switches.trace(Packet.tcp(segment, own, its), "T0")
        assert packet == Packet.tcp(segment, own, its), "the label is off again"
        assert path in (UPPER, MIDDLE)
        assert net.switches.path(Packet.tcp(segment.reverse), "T2") == UPPER[::-1]
        taken.add(path)
        net.release(flow.flow_id)
    assert taken == {UPPER, MIDDLE}


def test_the_weights_of_a_group_are_the_shares(net: ControlledNetwork) -> None:
    net.request(**{**ONE, **by_hand(1e6, 3e6), "splitting": "group"})
    assert [bucket.weight for bucket in group_of(net).buckets] == [1, 3]
    labels = [bucket.output.destination_mac for bucket in group_of(net).buckets]
    assert len(set(labels)) == 2


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_a_destination_at_the_same_switch(splitting: str) -> None:
    network = topologies.load("parallel2")
    net = ControlledNetwork.brought_up(network)
    flow = net.request(**{**ONE, "source": "A1", "destination": "A2", "splitting": splitting})
    segment, own = segment_of(flow), network.host_mac("A1")
    expected = ("A1", "L", "A2"), Packet.tcp(segment, own)
    assert net.switches.trace(Packet.tcp(segment, own), "A1") == expected
    if splitting == "packets":
        assert net.switches.trace(Packet.tcp(segment, split_of(flow).stamps[0]), "A1") == expected
    net.release(flow.flow_id)
    assert leftovers(net) == []


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_packets_arrive_at_every_moment_of_the_installation(net: ControlledNetwork, splitting: str) -> None:
    """Whatever is installed so far, a packet of the flow arrives, with the hosts' own addresses."""
    own, its = (net.switches.network.host_mac(host) for host in ("T0", "T2"))
    event = FlowRequested(1, parse({**ONE, "splitting": splitting, "source_ports": (4000,)}))
    segment = TcpConnection("10.0.0.1", "10.0.0.3", 4000, 5001)
    queue: list[Any] = [event]
    messages_sent = 0
    while queue:
        for message in net.core.handle(queue.pop(0), 0.0):
            if isinstance(message, InstallRules):
                queue.append(net.switches.carry_out(message))
                messages_sent += 1
                path, packet = net.switches.trace(Packet.tcp(segment, own, its), "T0")
                assert (path[-1], packet) == ("T2", Packet.tcp(segment, own, its))
                assert net.switches.path(Packet.tcp(segment.reverse), "T2")[-1] == "T0"
    assert messages_sent == 2, "one for each end"


# Changes


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_a_change_of_rate_changes_shares_and_keeps_stamps(net: ControlledNetwork, splitting: str) -> None:
    before = net.request(**{**ONE, "rate_bps": 2e6, "splitting": splitting}, streams=2)
    assert split_of(before).shares == pytest.approx((1.0, 0.0))
    after = net.change(before.flow_id, 20e6)
    assert split_of(after).shares == pytest.approx((0.5, 0.5))
    assert split_of(after).stamps == split_of(before).stamps
    if splitting == "group":
        assert [bucket.weight for bucket in group_of(net).buckets] == [1, 1]


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_the_owner_hears_of_new_shares(net: ControlledNetwork, splitting: str) -> None:
    """Another flow fills the shorter path: the global optimum moves the split flow to the other."""
    two = net.request(owner="two", **{**ONE, "rate_bps": 4e6, "splitting": splitting}, streams=2)
    assert split_of(two).shares == pytest.approx((1.0, 0.0))
    paths = [{"nodes": UPPER, "rate_bps": 4e6}]
    net.release(two.flow_id)
    by_hand_flow = net.request(
        source="T0", destination="T2", destination_port=80, packet_bytes=590, paths=paths
    )
    two = net.request(owner="two", **{**ONE, "rate_bps": 4e6, "splitting": splitting}, streams=2)
    assert split_of(two).shares[1] > 0.5
    net.release(by_hand_flow.flow_id)
    net.pass_time(0.5)
    change = net.notifications[-1].change
    assert net.notifications[-1].owner == "two"
    assert isinstance(change, AllocationChanged)
    assert split_of(change.flow).shares == pytest.approx((1.0, 0.0))
    assert split_of(change.flow).stamps == split_of(two).stamps
    if splitting == "group":
        assert [bucket.weight for bucket in group_of(net).buckets] == [1, 0]


def test_rates_that_change_during_the_installation_reach_the_group(net: ControlledNetwork) -> None:
    paths = [{"nodes": UPPER, "rate_bps": 4e6}]
    other = net.request(source="T0", destination="T2", destination_port=80, packet_bytes=590, paths=paths)
    fields = {**ONE, "splitting": "group", "rate_bps": 4e6, "streams": 2}
    queue: list[Any] = [FlowRequested(7, parse(fields))]
    while not any(table.select_groups() for table in net.switches.tables.values()):
        messages = net.core.handle(queue.pop(0), 0.0)
        queue += [net.switches.carry_out(sent) for sent in messages if isinstance(sent, InstallRules)]
    stale = [bucket.weight for bucket in group_of(net).buckets]
    net.release(other.flow_id)
    assert [bucket.weight for bucket in group_of(net).buckets] == stale, "it is not confirmed yet"
    for barrier in queue:
        net.handle(barrier)
    assert net.snapshot().flows[0].state == "active"
    assert [bucket.weight for bucket in group_of(net).buckets] == [1, 0] != stale


# Ends


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_nothing_remains_after_release(net: ControlledNetwork, splitting: str) -> None:
    flow = net.request(**{**ONE, "splitting": splitting}, ack_path="reverse:1")
    assert leftovers(net)
    net.release(flow.flow_id)
    assert leftovers(net) == []
    assert loads(net) == {}


@pytest.mark.parametrize("splitting", ["packets", "group"])
@pytest.mark.parametrize("silent", ["S0", "S4"])
def test_nothing_remains_of_a_flow_that_a_switch_does_not_confirm(
    net: ControlledNetwork, splitting: str, silent: str
) -> None:
    net.silent = frozenset({silent})
    assert net.handle(FlowRequested(7, parse({**ONE, "splitting": splitting}))) == []
    net.pass_time(3.0)
    assert leftovers(net) == []
    assert net.snapshot().flows == ()


@pytest.mark.parametrize("splitting", ["packets", "group"])
def test_a_switch_that_returns_gets_its_part_back(net: ControlledNetwork, splitting: str) -> None:
    flow = net.request(**{**ONE, "splitting": splitting, "rate_bps": 2e6}, streams=2)
    net.connect_empty("S0")
    own, its = (net.switches.network.host_mac(host) for host in ("T0", "T2"))
    packet = Packet.tcp(segment_of(flow), own, its)
    assert net.switches.trace(packet, "T0") == (UPPER, packet)
    net.release(flow.flow_id)
    assert leftovers(net) == []


def test_a_lost_ack_path_is_reported(net: ControlledNetwork) -> None:
    paths = [{"nodes": MIDDLE, "rate_bps": 1e6}]
    flow = net.request(**{**ONE, "rate_bps": None, "paths": paths})
    net.handle(PortWentDown(S0, 2))
    health = net.snapshot().health
    assert [(lost.flow_id, lost.links) for lost in health.flows_on_lost_links] == [(flow.flow_id, ("S0-S4",))]


# Refusals


@pytest.mark.parametrize(
    ("fields", "error", "field", "reason"),
    [
        ({"splitting": "bytes"}, InvalidRequest, "splitting", "'streams', 'packets' or 'group'"),
        ({"source_ports": (5, 6)}, InvalidRequest, "source_ports", "one TCP connection and needs one port"),
        ({"max_paths": 17}, InvalidRequest, "max_paths", "at most 16 paths, not 17"),
        ({"streams": 17}, InvalidRequest, "streams", "at most 16 paths, not 17"),
        ({"streams": 4}, InfeasibleRequest, "streams", "only 3 lead from T0 to T2"),
        ({"ack_path": "longest"}, InvalidRequest, "ack_path", "pattern"),
        ({"ack_path": "reverse:-1"}, InvalidRequest, "ack_path", "pattern"),
        ({"ack_path": "reverse:2"}, InvalidRequest, "ack_path", "it has reverse:0 to reverse:1"),
        (
            {**by_hand(1e6, 1e6), "ack_path": "reverse:2"},
            InvalidRequest,
            "ack_path",
            "it has reverse:0 to reverse:1",
        ),
        ({"splitting": "streams", "ack_path": "shortest"}, InvalidRequest, "ack_path", "is for split flows"),
        (
            {"packet_bytes": 64, "segment_overhead_bytes": 64},
            InvalidRequest,
            "packet_bytes",
            "beside 64 bytes of headers",
        ),
    ],
)
def test_refusals(
    net: ControlledNetwork, fields: dict[str, Any], error: type[ControllerError], field: str, reason: str
) -> None:
    with pytest.raises(error) as raised:
        net.request(**{**ONE, **fields})
    assert isinstance(raised.value, InvalidRequest | InfeasibleRequest)
    assert raised.value.field == field
    assert reason in raised.value.reason
    assert leftovers(net) == []


def wide_network(paths: int) -> Network:
    """Two hosts with this many equal paths between them."""
    middles = [f"M{i}" for i in range(paths)]
    ends = [("A", "L"), ("R", "B"), *((end, middle) for middle in middles for end in ("L", "R"))]
    return Network.model_validate(
        {
            "name": "wide",
            "nodes": [{"name": name, "kind": "host"} for name in "AB"]
            + [{"name": name, "kind": "switch"} for name in ("L", "R", *middles)],
            "links": [{"ends": pair, "rate_bps": 1e9, "delay_us": 1000} for pair in ends[:2]]
            + [{"ends": pair, "rate_bps": 1e6, "delay_us": 1000} for pair in ends[2:]],
        }
    )


def test_no_more_than_16_paths() -> None:
    net = ControlledNetwork.brought_up(wide_network(18))
    request = {**ONE, "source": "A", "destination": "B", "rate_bps": 100e6}
    flow = net.request(**request)
    assert len(flow.streams) == 16
    net.release(flow.flow_id)
    paths = [{"nodes": ("A", "L", f"M{i}", "R", "B"), "rate_bps": 1e5} for i in range(17)]
    with pytest.raises(InvalidRequest, match="at most 16 paths, not 17"):
        net.request(**{**request, "rate_bps": None, "paths": paths})


def test_a_source_with_two_links_cannot_be_split() -> None:
    network = Network.model_validate(
        {
            "name": "dual",
            "nodes": [{"name": name, "kind": "host"} for name in "AB"]
            + [{"name": name, "kind": "switch"} for name in "LR"],
            "links": [
                {"ends": ends, "rate_bps": 1e6, "delay_us": 1000}
                for ends in (("A", "L"), ("A", "R"), ("L", "R"), ("R", "B"))
            ],
        }
    )
    net = ControlledNetwork.brought_up(network)
    with pytest.raises(InvalidRequest, match="A has 2 links"):
        net.request(**{**ONE, "source": "A", "destination": "B", "rate_bps": 1e5})


def test_a_tag_is_taken_once() -> None:
    table = FlowTable()
    a, b = (Host(name, f"10.0.0.{i}", f"02:00:0a:00:00:0{i}", "S", i) for i, name in ((1, "A"), (2, "B")))
    path = ("A", "S", "B")
    flow = Flow(
        number=65537,
        id="f-65537",
        source=a,
        destination=b,
        destination_port=5001,
        requested_bps=1e6,
        framing=Framing(),
        objective=None,
        streams=[Stream(40001, path, 1e6, 0.0)],
        lease_s=30.0,
        expires_at=30.0,
        owner="",
        split=Split("packets", 65535, "shortest", path[::-1]),
    )
    table.add(flow)
    assert table.free_tag(65535) == 0, "the next one, and round"
    assert table.free_tag(65536 + 7) == 7
    table.remove(flow)
    assert table.free_tag(65535) == 65535


# Numbers


def test_stamps_are_locally_administered_addresses_of_nobody() -> None:
    assert stamps(0xABCD, 2) == ("0a:50:50:ab:cd:00", "0a:50:50:ab:cd:01")
    first = int(stamps(0, 1)[0][:2], 16)
    assert first & 2, "locally administered"
    assert not first & 1, "not a group address"


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=16))
def test_shares_add_up_and_weights_follow_them(rates: list[float]) -> None:
    shares = shares_of(rates)
    assert sum(shares) == pytest.approx(1)
    weights = bucket_weights(shares)
    total = sum(weights)
    assert 0 < total <= 1000 + len(rates)
    for share, weight in zip(shares, weights, strict=True):
        assert (weight == 0) == (share == 0)
        assert weight / total == pytest.approx(share, abs=0.02)


def test_a_flow_without_any_rate_has_its_first_path() -> None:
    assert shares_of([0.0, 0.0]) == (1.0, 0.0)
    assert bucket_weights((1.0, 0.0)) == (1, 0)
