"""Random networks and random clients: what must hold whatever happens."""

from typing import Any, Literal

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from controller.errors import RequestError
from controller.model.rules import (
    ETH_TYPE_IPV4,
    ToGroup,
    port_group_number,
    split_group_number,
)
from controller.model.settings import Settings
from controller.model.views import FlowView
from tests.fakes.openflow_table import ControlledNetwork, Packet, segments_of
from topologies.model import Network


@st.composite
def networks(draw: st.DrawFn, max_switches: int = 7) -> Network:
    """A connected network: a random tree of switches, some more links, and a few hosts."""
    size = draw(st.integers(1, max_switches))
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, size)}
    others = [(a, b) for a in range(size) for b in range(a + 1, size) if (a, b) not in pairs]
    if others:
        pairs |= set(draw(st.lists(st.sampled_from(others), unique=True, max_size=size)))
    homes = draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=4))
    links: list[dict[str, Any]] = [
        {
            "ends": (f"S{a}", f"S{b}"),
            "rate_bps": draw(st.integers(1, 20)) * 1e6,
            "delay_us": draw(st.integers(0, 4)) * 1000.0,
        }
        for a, b in sorted(pairs)
    ]
    links += [{"ends": (f"H{i}", f"S{s}"), "rate_bps": 50e6, "delay_us": 100.0} for i, s in enumerate(homes)]
    nodes = [{"name": f"S{i}", "kind": "switch"} for i in range(size)]
    nodes += [{"name": f"H{i}", "kind": "host"} for i in range(len(homes))]
    return Network.model_validate({"name": "random", "nodes": nodes, "links": links})


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
@given(network=networks())
def test_default_routes_reach_every_host_from_every_host(
    routing: Literal["shortest", "ecmp"], network: Network
) -> None:
    net = ControlledNetwork.brought_up(network, Settings(default_routing=routing))
    assert net.snapshot().health.ready
    graph = nx.Graph()
    for link in network.links:
        graph.add_edge(*link.ends, delay=link.delay_us)
    for source in network.hosts:
        for destination in network.hosts:
            if source == destination:
                continue
            packet = Packet(ETH_TYPE_IPV4, 1, network.host_ip(source), network.host_ip(destination))
            path = net.switches.path(packet, source)
            assert path[-1] == destination
            length = nx.path_weight(graph, path, "delay")
            assert length == pytest.approx(nx.shortest_path_length(graph, source, destination, "delay"))


WAYS = [
    {},
    {"splitting": "packets"},
    {"splitting": "packets", "ack_path": "reverse:1"},
    {"splitting": "group"},
    {"splitting": "group", "ack_path": "reverse:0"},
]


def rules_of(flow: FlowView) -> int:
    """How many rules a flow has in all switches: paths here are no longer than a label."""
    if flow.split is None:
        return 2 * len(flow.streams)
    return 2 + (len(flow.streams) if flow.splitting == "packets" else 0)


class Clients(RuleBasedStateMachine):
    """Clients come and go on the paper's kind of network while links fail and return."""

    flows = Bundle("flows")

    def __init__(self) -> None:
        super().__init__()
        self.net: ControlledNetwork | None = None
        self.down: set[str] = set()

    @property
    def network(self) -> ControlledNetwork:
        assert self.net is not None
        return self.net

    @rule(network=networks(max_switches=5), routing=st.sampled_from(["shortest", "ecmp"]))
    def start(self, network: Network, routing: Literal["shortest", "ecmp"]) -> None:
        if self.net is None:
            self.net = ControlledNetwork(network, Settings(lease_s=100.0, default_routing=routing))
            self.net.bring_up()

    @rule(
        target=flows,
        data=st.data(),
        rate_bps=st.floats(1e5, 5e7),
        objective=st.sampled_from(["max_throughput_min_delay", "even_split"]),
        packet_bytes=st.sampled_from([590, 1514]),
        max_paths=st.none() | st.integers(1, 3),
        way=st.sampled_from(WAYS),
    )
    def request(
        self,
        data: st.DataObject,
        rate_bps: float,
        objective: str,
        packet_bytes: int,
        max_paths: int | None,
        way: dict[str, str],
    ) -> Any:
        if self.net is None:
            return multiple()
        hosts = self.net.switches.network.hosts
        source, destination = data.draw(st.permutations(hosts))[:2]
        try:
            flow = self.net.request(
                source=source,
                destination=destination,
                destination_port=5001,
                rate_bps=rate_bps,
                objective=objective,
                packet_bytes=packet_bytes,
                max_paths=max_paths,
                **way,
            )
        except RequestError:
            return multiple()
        assert flow.rate_bps <= rate_bps * (1 + 1e-9)
        assert len(flow.streams) <= (max_paths or 64)
        return flow.flow_id

    @rule(flow_id=flows, rate_bps=st.floats(1e5, 5e7))
    def change(self, flow_id: str, rate_bps: float) -> None:
        try:
            self.network.change(flow_id, rate_bps)
        except RequestError:
            return

    @rule(flow_id=consumes(flows))
    def release(self, flow_id: str) -> None:
        self.network.release(flow_id)

    @rule(seconds=st.floats(0, 60))
    def wait(self, seconds: float) -> None:
        if self.net is not None:
            self.net.pass_time(seconds)

    @rule(data=st.data())
    def fail_or_mend_a_link(self, data: st.DataObject) -> None:
        if self.net is None:
            return
        network = self.net.switches.network
        arcs = [
            arc for arc in network.arcs() if arc.tail in network.switches and arc.head in network.switches
        ]
        if not arcs:
            return
        link = data.draw(st.sampled_from(arcs)).link
        if link in self.down:
            self.down.remove(link)
            self.net.restore_link(link, both_ends=True)
        else:
            self.down.add(link)
            self.net.break_link(link, both_ends=True)

    @invariant()
    def no_link_is_overloaded(self) -> None:
        if self.net is not None:
            for link in self.net.snapshot().links:
                assert link.allocated_bps <= link.capacity_bps * (1 + 1e-6) + 0.01, link

    @invariant()
    def every_packet_takes_its_path_both_ways(self) -> None:
        if self.net is None:
            return
        switches = self.net.switches
        for flow in self.net.snapshot().flows:
            own, its = (switches.network.host_mac(host) for host in (flow.source, flow.destination))
            for index, (path, segment) in enumerate(segments_of(flow)):
                unstamped, back = Packet.tcp(segment, own, its), path[::-1]
                if flow.split is None:
                    assert switches.path(unstamped, path[0]) == path
                else:
                    back = flow.split.ack_path
                if flow.splitting == "packets":
                    assert flow.split is not None
                    stamped = Packet.tcp(segment, flow.split.stamps[index], its)
                    assert switches.trace(stamped, path[0]) == (path, unstamped)
                    assert switches.trace(unstamped, path[0]) == (flow.streams[0].path, unstamped)
                if flow.splitting == "group":
                    taken, packet = switches.trace(unstamped, path[0])
                    assert flow.rate_bps == 0 or taken in [s.path for s in flow.streams if s.rate_bps > 0]
                    assert packet == unstamped
                assert switches.path(Packet.tcp(segment.reverse, its, own), path[-1]) == back

    @invariant()
    def there_are_no_other_pinned_rules(self) -> None:
        if self.net is None:
            return
        flows = self.net.snapshot().flows
        tables = self.net.switches.tables.values()
        assert len(self.net.switches.pinned()) == sum(map(rules_of, flows))
        actions = [rule.action for rule in self.net.switches.rules()]
        groups = {action.group for action in actions if isinstance(action, ToGroup)}
        for table in tables:
            led_to = {rule.action.group for rule in table.rules.values() if isinstance(rule.action, ToGroup)}
            others = led_to - {group.number for group in table.groups.values() if group.is_failover}
            assert others == table.select_groups().keys(), "no group without a rule"
        numbers = [int(flow.flow_id.split("-")[1]) for flow in flows if flow.splitting == "group"]
        splits = set(map(split_group_number, numbers))
        assert splits == {group for group in groups if split_group_number(0) <= group < port_group_number(0)}

    @invariant()
    def shares_are_those_of_the_rates(self) -> None:
        if self.net is None:
            return
        for flow in self.net.snapshot().flows:
            if flow.split is not None and flow.rate_bps > 0:
                rates = [stream.rate_bps / flow.rate_bps for stream in flow.streams]
                assert flow.split.shares == pytest.approx(rates)


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
