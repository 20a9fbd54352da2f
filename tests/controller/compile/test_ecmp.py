"""Equal-cost multipath as the default routing, on fake switches."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings

import topologies
from controller.compile.default_routes import equal_paths
from controller.model.messages import InstallRules
from controller.model.next_hops import NextHops
from controller.model.rules import Group, GroupChange, TcpConnection, ToGroup, port_of_group
from controller.model.settings import Settings
from controller.state.live_network import LiveNetwork
from tests.controller.decide.test_properties import networks
from tests.fakes.openflow_table import ControlledNetwork, Packet
from topologies.model import Network

L, R, M1, M2 = 1, 2, 3, 4
TO_R = 0x0100_0000 | R
TO_L = 0x0100_0000 | L


def controlled(name: str) -> ControlledNetwork:
    return ControlledNetwork.brought_up(topologies.load(name), Settings(default_routing="ecmp"))


def use_all(net: ControlledNetwork) -> None:
    """Let all hosts send to all others."""
    network = net.switches.network
    for source, destination in permutations(network.hosts, 2):
        segment = TcpConnection(network.host_ip(source), network.host_ip(destination), 1, 2)
        assert net.switches.path(Packet.tcp(segment), source)[-1] == destination


@pytest.fixture
def net() -> ControlledNetwork:
    return controlled("parallel2")


def connections(net: ControlledNetwork, ports: range) -> list[tuple[str, str, TcpConnection]]:
    network = net.switches.network
    senders = [host for host in network.hosts if host.startswith("A")]
    receivers = [host for host in network.hosts if host.startswith("B")]
    return [
        (a, b, TcpConnection(network.host_ip(a), network.host_ip(b), port, 5001))
        for (a, b), port in product(zip(senders, receivers, strict=True), ports)
    ]


@pytest.mark.parametrize(("name", "paths"), [("parallel2", 2), ("parallel4", 4)])
def test_many_connections_use_all_equal_paths_evenly(name: str, paths: int) -> None:
    net = controlled(name)
    taken: dict[str, Counter[tuple[str, ...]]] = {"there": Counter(), "back": Counter()}
    for a, b, segment in connections(net, range(40000, 40100)):
        there = net.switches.path(Packet.tcp(segment), a)
        assert (there[-1], len(there)) == (b, 5)
        taken["there"][there[1:-1]] += 1
        back = net.switches.path(Packet.tcp(segment.reverse), b)
        assert back[-1] == a
        taken["back"][back[1:-1]] += 1
    for counts in taken.values():
        assert len(counts) == paths
        # 400 connections: more than 5 standard deviations from the mean have a chance below 1e-6.
        assert all(count == pytest.approx(400 / paths, abs=50) for count in counts.values())


def test_few_connections_collide_on_some_seeds() -> None:
    """Four flows over four paths: hashing leaves a path idle in about 91 of 100 draws."""
    net = controlled("parallel4")
    collisions = 0
    for seed in range(100):
        flows = connections(net, range(40000 + seed, 40001 + seed))
        collisions += len({net.switches.path(Packet.tcp(s), a)[2] for a, _, s in flows}) < len(flows)
    assert 75 <= collisions <= 100


def test_hashes_that_are_the_same_in_all_switches_do_not_meet() -> None:
    """Between the pods of a fat tree are four paths, of two choices of two."""
    net = controlled("fat-tree:4")
    network = net.switches.network
    source, destination = network.hosts[0], network.hosts[-1]
    cores: Counter[str] = Counter()
    for port in range(40000, 40400):
        segment = TcpConnection(network.host_ip(source), network.host_ip(destination), port, 5001)
        path = net.switches.path(Packet.tcp(segment), source)
        assert path[-1] == destination
        cores[path[3]] += 1
    assert len(cores) == 4
    assert all(count > 50 for count in cores.values())


def paths_of(group: Group) -> dict[tuple[int | None, str | None], int]:
    """Return the weights of a group's buckets, by port and label."""
    outputs = [(each.weight, each.output) for each in group.buckets]
    return {
        (port_of_group(to.group) if isinstance(to, ToGroup) else to.port, to.destination_mac): weight
        for weight, to in outputs
    }


def test_groups_are_at_the_ingress_and_the_same_each_time(net: ControlledNetwork) -> None:
    use_all(net)
    ((number, group),) = net.switches.tables[L].select_groups().items()
    ways = {(5, "16:80:00:00:00:00"): 1, (6, "16:80:00:00:00:00"): 1}
    assert (number, paths_of(group)) == (TO_R, ways), "R is the second neighbour of both, in two bits"
    again = controlled("parallel2")
    use_all(again)
    assert again.switches.tables[L].select_groups() == {number: group}
    assert net.switches.tables[R].select_groups().keys() == {TO_L}
    assert net.switches.tables[M1].select_groups() == {}


@settings(max_examples=60, deadline=None)
@given(networks(max_switches=9))
def test_paths_are_equal_and_chosen_as_if_by_each_switch(network: Network) -> None:
    """Against a walk that takes each of the nearer neighbours with the same probability."""
    live = LiveNetwork(network)
    live.assume_all()
    for end in network.switches[:3]:
        nearer = live.least_delay.nearer(end)
        for start in nearer:
            paths = equal_paths(start, end, nearer, live.ports)
            total = sum(paths.values())
            for path, weight in paths.items():
                assert (path[0], path[-1]) == (start, end)
                share = math.prod(1 / len(nearer[node]) for node in path[:-1])
                assert weight / total == pytest.approx(share, rel=0.5)
            assert len(paths) == sum(1 for _ in walks(start, end, nearer)) or len(paths) >= 32


def walks(start: str, end: str, nearer: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    if start == end:
        yield (end,)
    else:
        for node in nearer[start]:
            for rest in walks(node, end, nearer):
                yield (start, *rest)


def test_a_group_has_a_bounded_number_of_paths_that_spread() -> None:
    """Ten layers of three switches have 19,683 paths."""
    layers = [["a"], *([f"{k}{side}" for side in "xyz"] for k in range(9)), ["b"]]
    nearer = {node: tuple(after) for before, after in pairwise(layers) for node in before}
    next_hops = NextHops()
    next_hops.number_links((node, to) for node, after in nearer.items() for to in after)
    paths = equal_paths("a", "b", nearer, next_hops)
    assert 32 <= len(paths) <= 64
    for layer in layers[1:-1]:
        assert {node for path in paths for node in path} >= set(layer)


def test_a_network_without_equal_paths_has_no_groups() -> None:
    ecmp, shortest = controlled("line:4"), ControlledNetwork(topologies.load("line:4"))
    shortest.bring_up()
    use_all(ecmp)
    use_all(shortest)
    for datapath_id, table in ecmp.switches.tables.items():
        assert table.select_groups() == {}
        assert table.rules == shortest.switches.tables[datapath_id].rules


def test_the_butterflys_flows_have_one_shortest_path_each() -> None:
    net = controlled("butterfly")
    for port in range(40000, 40020):
        one = TcpConnection("10.0.0.1", "10.0.0.3", port, 5001)
        two = TcpConnection("10.0.0.2", "10.0.0.4", port, 5001)
        assert net.switches.path(Packet.tcp(one), "T0") == ("T0", "S0", "S4", "T2")
        assert net.switches.path(Packet.tcp(two), "T1") == ("T1", "S1", "S2", "S3", "S5", "T3")


def test_a_group_of_one_is_no_group_and_comes_back(net: ControlledNetwork) -> None:
    use_all(net)
    before = net.switches.tables[L].select_groups().copy(), net.switches.tables[L].rules.copy()
    net.break_link("L-M1", both_ends=True)
    assert net.switches.tables[L].select_groups() == {}, "removed, since nothing uses it"
    for a, b, segment in connections(net, range(40000, 40020)):
        assert net.switches.path(Packet.tcp(segment), a) == (a, "L", "M2", "R", b)
        assert net.switches.path(Packet.tcp(segment.reverse), b) == (b, "R", "M2", "L", a)
    net.restore_link("L-M1", both_ends=True)
    assert (net.switches.tables[L].select_groups(), net.switches.tables[L].rules) == before
    assert net.snapshot().health.ready


def test_a_smaller_group_is_changed_in_place() -> None:
    net = controlled("parallel4")
    use_all(net)
    net.switches.installed.clear()
    net.break_link("L-M1", both_ends=True)
    changes = [
        entry
        for message in net.switches.installed
        if isinstance(message, InstallRules) and message.datapath_id == L
        for entry in message.entries
    ]
    (change,) = [entry for entry in changes if isinstance(entry, GroupChange)]
    assert (change.group.number, {port for port, _ in paths_of(change.group)}) == (TO_R, {6, 7, 8})
    for a, b, segment in connections(net, range(40000, 40020)):
        path = net.switches.path(Packet.tcp(segment), a)
        assert path[-1] == b
        assert path[2] != "M1"


def test_the_failure_of_a_far_link_changes_the_near_group(net: ControlledNetwork) -> None:
    use_all(net)
    net.break_link("M1-R", both_ends=True)
    assert net.switches.tables[L].select_groups() == {}
    for a, b, segment in connections(net, range(40000, 40010)):
        assert net.switches.path(Packet.tcp(segment), a) == (a, "L", "M2", "R", b)


def test_a_switch_that_returns_gets_its_groups(net: ControlledNetwork) -> None:
    use_all(net)
    before = net.switches.tables[L].rules.copy()
    net.connect_empty("L")
    assert net.switches.tables[L].rules == before
    assert net.switches.tables[L].select_groups().keys() == {TO_R}
