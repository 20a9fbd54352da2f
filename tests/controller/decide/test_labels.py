"""Labels on random networks: where would each packet go, what is in the core, and what a host cannot do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from controller.model.events import PortWentDown
from controller.model.labels import FLOW, LABEL_BITS, STOP, LabelFormat, mac_value
from controller.model.messages import InstallRules
from controller.model.rules import (
    TABLE_LABEL,
    Rule,
    TcpConnection,
    is_flow_cookie,
)
from tests.controller.decide.failing_links import bring_up
from tests.controller.decide.test_properties import networks
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from topologies.model import IpVersion, Network


@given(st.integers(0, 100).flatmap(lambda d: st.tuples(st.just(d), st.lists(st.integers(1, max(1, d))))))
def test_a_label_says_one_field_after_the_other_and_then_stops(case: tuple[int, list[int]]) -> None:
    degree, fields = case
    form = LabelFormat.of_degree(max(degree, 1))
    assert form.end_of_bypass > degree, "no neighbour has the number that ends a bypass"
    fields = fields[: form.most_fields]
    value = mac_value(form.label(fields, FLOW))
    for field in (*fields, STOP):
        assert value >> LABEL_BITS == FLOW
        assert value >> (LABEL_BITS - form.bits) & form.end_of_bypass == field
        value = FLOW << LABEL_BITS | value << form.bits & (1 << LABEL_BITS) - 1


def ask(net: ControlledNetwork, source: str, destination: str, version: IpVersion = 4) -> tuple[str, ...]:
    """Return the way of a packet of no flow."""
    network = net.switches.network
    segment = TcpConnection(network.host_ip(source, version), network.host_ip(destination, version), 1, 2)
    return net.switches.path(Packet.tcp(segment, destination_mac=network.host_mac(destination)), source)


def rules_of_core(net: ControlledNetwork) -> dict[str, set[Rule]]:
    """Return the rules of each switch that no host and no default route is the reason of."""
    network = net.switches.network
    tables = {name: net.switches.tables[network.datapath_id(name)] for name in network.switches}
    addresses = {ip for host in network.hosts for ip in network.host_ips(host).values()}
    return {
        name: {rule for rule in table.rules.values() if addresses.isdisjoint(rule.match.fields().values())}
        for name, table in tables.items()
    }


def flow_mods(net: ControlledNetwork, since: int) -> list[tuple[int, Rule]]:
    return [
        (message.datapath_id, entry)
        for message in net.switches.installed[since:]
        if isinstance(message, InstallRules)
        for entry in message.entries
        if isinstance(entry, Rule) and is_flow_cookie(entry.cookie)
    ]


@settings(max_examples=60, deadline=None)
@given(networks(max_switches=7), st.data())
def test_flows_follow_their_paths_and_the_core_does_not_know_of_them(network: Network, data: Any) -> None:
    """Any number of flows leaves the core as it is; each is a rule at each end, and moves by one each."""
    net = bring_up(network)
    core = rules_of_core(net)
    for number in range(data.draw(st.integers(1, 4))):
        source, destination = data.draw(st.permutations(network.hosts))[:2]
        sent = len(net.switches.installed)
        flow = net.request(
            source=source,
            destination=destination,
            destination_port=5001 + number,
            rate_bps=data.draw(st.floats(1e3, 1e5)),
        )
        assert len(flow_mods(net, sent)) == 2 * len(flow.streams)
        for path, segment in segments_of(flow):
            its, own = network.host_mac(destination), network.host_mac(source)
            there = Packet.tcp(segment, own, its)
            back = Packet.tcp(segment.reverse, its, own)
            assert net.switches.trace(there, source) == (path, there)
            assert net.switches.trace(back, destination) == (path[::-1], back)
    for name, rules in rules_of_core(net).items():
        assert not core[name] - rules
        assert all(is_flow_cookie(rule.cookie) for rule in rules - core[name])
        if not any(name == path[k] for f in net.snapshot().flows for path in f_paths(f) for k in (1, -2)):
            assert rules == core[name]


def f_paths(flow: Any) -> list[tuple[str, ...]]:
    return [stream.path for stream in flow.streams]


@settings(max_examples=60, deadline=None)
@given(networks(max_switches=6), st.integers(0, (1 << 40) - 1), st.sampled_from([0x1A, 0x1E, 0x12, 0x16]))
def test_a_label_that_a_host_writes_changes_no_way(network: Network, fields: int, kind: int) -> None:
    """It may be the address of another host, which nobody gave to it."""
    net = bring_up(network)
    forged = (kind << LABEL_BITS | fields).to_bytes(6, "big").hex(":")
    source, destination = network.hosts[:2]
    net.request(source=source, destination=destination, destination_port=2, source_ports=(1,), rate_bps=1e4)
    for address, port in (
        (network.host_ip(destination), 1),
        (network.host_ip(destination), 9),
        ("10.0.9.9", 1),
    ):
        connection = TcpConnection(network.host_ip(source), address, port, 2)
        plain = Packet.tcp(connection, network.host_mac(source), network.host_mac(destination))
        written = Packet.tcp(connection, network.host_mac(source), forged)
        assert net.switches.path(written, source) == net.switches.path(plain, source)


def test_the_core_has_rules_for_links_alone() -> None:
    """Four rules a link, whatever hosts, flows and default routes there are, and a few more."""
    net = bring_up(topologies.load("fat-tree:4:rate_bps=10e6"))
    hosts = net.switches.network.hosts
    for number, (source, destination) in enumerate(pairwise(hosts)):
        net.request(source=source, destination=destination, destination_port=6000 + number, rate_bps=1e5)
        ask(net, source, hosts[-1])
    for name, rules in rules_of_core(net).items():
        links = sum(arc.tail == name and arc.head not in hosts for arc in net.switches.network.arcs())
        core = [rule for rule in rules if not is_flow_cookie(rule.cookie)]
        assert len([rule for rule in core if rule.table == TABLE_LABEL]) == 3 * links + 2
        assert len(core) == 4 * links + 17
        if name.startswith("c"):
            assert len(rules) == len(core)


@pytest.mark.parametrize("splitting", ["streams", "packets", "group"])
def test_a_path_longer_than_a_label_takes_others_on_the_way(splitting: str) -> None:
    """A ladder of 70 switches a side: a label of it holds 13 fields."""
    net = bring_up(ladder(70), confirm_timeout_s=3.0)
    form = net.core._state.live.ports.format
    assert form.most_fields < 20
    sent = len(net.switches.installed)
    lower = ("A", "L0", *(f"R{k}" for k in range(70)), "L69", "B")
    upper = ("A", *(f"L{k}" for k in range(70)), "B")
    paths = [{"nodes": path, "rate_bps": 1e5} for path in (upper, lower)]
    flow = net.request(
        source="A", destination="B", destination_port=5001, packet_bytes=590, paths=paths, splitting=splitting
    )
    assert len(flow_mods(net, sent)) <= 4 * (70 // (form.most_continued + 1) + 2)
    network = net.switches.network
    own, its = network.host_mac("A"), network.host_mac("B")
    taken = set()
    for index, (path, segment) in enumerate(segments_of(flow)):
        stamp = flow.split.stamps[index] if flow.split is not None and splitting == "packets" else own
        nodes, packet = net.switches.trace(Packet.tcp(segment, stamp, its), "A")
        assert packet == Packet.tcp(segment, own, its)
        taken.add(nodes)
        assert splitting == "group" or nodes == path
        back, _ = net.switches.trace(Packet.tcp(segment.reverse, its, own), "B")
        assert back == (path[::-1] if flow.split is None else flow.split.ack_path)
    assert taken <= {upper, lower}
    net.release(flow.flow_id)
    assert not net.switches.pinned()


def ladder(rungs: int) -> Network:
    sides = [[f"{side}{k}" for k in range(rungs)] for side in "LR"]
    links = [pair for side in sides for pair in pairwise(side)]
    links += [*zip(*sides, strict=True), ("A", "L0"), (f"L{rungs - 1}", "B")]
    return Network.model_validate(
        {
            "name": "ladder",
            "nodes": [{"name": name, "kind": "host"} for name in "AB"]
            + [{"name": name, "kind": "switch"} for side in sides for name in side],
            "links": [{"ends": pair, "rate_bps": 10e6, "delay_us": 100} for pair in links],
        }
    )


def test_a_running_stream_moves_by_one_rule_at_each_end() -> None:
    net = bring_up(topologies.load("butterfly"))
    flow = net.request(source="T0", destination="T2", destination_port=5001, rate_bps=1e6)
    (before,) = f_paths(flow)
    sent = len(net.switches.installed)
    tail, head = before[1], before[2]
    for arc in net.switches.network.arcs():
        if {arc.tail, arc.head} == {tail, head}:
            net.handle(PortWentDown(net.switches.network.datapath_id(arc.tail), arc.tail_port))
    (path,) = f_paths(net.snapshot().flows[0])
    assert path != before
    changed = flow_mods(net, sent)
    assert [datapath_id for datapath_id, _ in changed] == [
        net.switches.network.datapath_id(name) for name in (path[1], path[-2])
    ]
    ((_, segment),) = segments_of(net.snapshot().flows[0])
    assert net.switches.path(Packet.tcp(segment), "T0") == path
    assert net.switches.path(Packet.tcp(segment.reverse), "T2") == path[::-1]
