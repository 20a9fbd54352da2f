"""OpenFlow switches in memory: they take the controller's rules and answer "where would this packet go?"."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from controller.api.schema import parse
from controller.core import Core
from controller.errors import RequestError
from controller.model import lldp
from controller.model.counters import PinnedBy, PinnedCount, PortCounters, RuleCount
from controller.model.events import (
    BarrierReceived,
    CountersRead,
    Event,
    FlowChanged,
    FlowReleased,
    FlowRequested,
    FlowsRequested,
    InstalledRead,
    LinkDiscovered,
    PacketArrived,
    PortCameUp,
    PortWentDown,
    SwitchConnected,
    SwitchDisconnected,
    TimePassed,
    ViewRequested,
)
from controller.model.messages import (
    Abandoned,
    Acknowledge,
    CloseConnection,
    DatapathMessage,
    InstallRules,
    IntroduceSwitch,
    Notify,
    PacketOut,
    Postpone,
    ReadCounters,
    ReadInstalled,
    Reply,
    Report,
)
from controller.model.records import RecordChange, Records
from controller.model.requests import FlowQuery, ViewName
from controller.model.rules import (
    COOKIE_GROUPS,
    IP_PROTO_TCP,
    Action,
    Match,
    Output,
    Rule,
    RuleKey,
    TcpConnection,
    ToGroup,
    eth_type_of,
    is_counted,
    is_flow_cookie,
    port_of_group,
)
from controller.model.settings import Settings
from controller.model.views import FlowPage, FlowView, HealthView, HostView, LinkView, TopologyView
from controller.state.live_network import LiveNetwork, arc_name
from tests.fakes.rule_table import CONTROLLER, DROPPED, FakeTable
from topologies.model import Arc, Network


@dataclass(frozen=True)
class Snapshot:
    """Everything that clients may see at one moment."""

    flows: tuple[FlowView, ...]
    links: tuple[LinkView, ...]
    hosts: tuple[HostView, ...]
    topology: TopologyView
    health: HealthView


@dataclass(frozen=True)
class Packet(Match):
    """What the controller's rules may look at, of a packet."""

    untagged: int | None = 0

    @classmethod
    def tcp(
        cls,
        segment: TcpConnection,
        source_mac: str | None = None,
        destination_mac: str | None = None,
        tag: int | None = None,
    ) -> Packet:
        """A TCP segment with these addresses."""
        return cls(
            eth_type_of(segment.source_ip),
            IP_PROTO_TCP,
            segment.source_ip,
            segment.destination_ip,
            segment.source_port,
            segment.destination_port,
            source_mac,
            destination_mac=destination_mac,
            tag=tag,
        )


class FakeSwitches:
    """All switches of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.tables = {network.datapath_id(name): FakeTable() for name in network.switches}
        self.packets_out: list[PacketOut] = []  # but for probes
        self.probes: list[tuple[int, int]] = []
        self.silent_arcs: frozenset[str] = frozenset()  # where probes are lost
        self.installed: list[InstallRules] = []
        self.closed: list[CloseConnection] = []
        self.asks: Callable[[PacketArrived], object] = lambda _: None  # what switches hand to the controller
        self._live = LiveNetwork(network)
        self._sent: Counter[tuple[int, int]] = Counter()  # bytes by port
        self._received: Counter[tuple[int, int]] = Counter()
        self._pinned: Counter[tuple[int, Match]] = Counter()
        self._dropped: Counter[int] = Counter()  # packets to groups

    def carry_out(self, message: DatapathMessage, now: float = 0.0) -> Event | None:
        """Do what a message says; returns what comes back: a barrier, a probe that has arrived, counters."""
        if isinstance(message, ReadCounters):
            return self._counters(message, now)
        if isinstance(message, ReadInstalled):
            return self._installed(message.datapath_id)
        if isinstance(message, PacketOut):
            return self._put_out(message)
        if isinstance(message, CloseConnection | Acknowledge):
            self.closed += [message] if isinstance(message, CloseConnection) else []
            return None
        if isinstance(message, IntroduceSwitch):
            return self.announced(message.datapath_id)
        table = self.tables[message.datapath_id]
        if not isinstance(message, InstallRules):
            table.take_away(message)
            return None
        self.installed.append(message)
        if message.wipe:
            table.clear()
        for entry in message.entries:
            table.install(entry)
        return BarrierReceived(message.datapath_id, message.barrier)

    def _installed(self, datapath_id: int) -> InstalledRead:
        keys = map(RuleKey._make, self.tables[datapath_id].rules)
        counts = {key: RuleCount(0, self._pinned[datapath_id, key.match]) for key in keys}
        return InstalledRead(datapath_id, replace(self.tables[datapath_id].installed(), counts=counts))

    def carry(self, packet: Packet, source: str, size_bytes: int) -> tuple[str, ...]:
        """Let this many bytes of packets go out from a host; ports and pinned rules count them."""
        nodes, _ = self.trace(packet, source)
        for before, node, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
            datapath_id = self.network.datapath_id(node)
            self._received[datapath_id, self._live.ports[node, before]] += size_bytes
            if after not in (DROPPED, CONTROLLER):
                self._sent[datapath_id, self._live.ports[node, after]] += size_bytes
            packet = replace(packet, in_port=self._live.ports[node, before])
            steps = list(self.tables[datapath_id].steps(packet))
            for rule, _, _ in steps:
                if rule is not None and is_counted(rule.cookie):
                    self._pinned[datapath_id, rule.match] += size_bytes
                self._dropped[datapath_id] += rule is not None and rule.cookie == COOKIE_GROUPS
            packet = steps[-1][2]
        return nodes

    def _counters(self, message: ReadCounters, now: float) -> CountersRead:
        datapath_id, rules = message.datapath_id, self.tables[message.datapath_id].rules.values()
        ports = {
            port: PortCounters(
                0, 0, self._received[datapath_id, port], self._sent[datapath_id, port], 0, 0, 0, 0, now
            )
            for (node, _), port in self._live.ports.items()
            if node in self.network.switches and self.network.datapath_id(node) == datapath_id
        }
        pinned: dict[PinnedBy, PinnedCount] = {}
        for rule in rules if message.pinned else ():
            if is_counted(rule.cookie):
                pinned[_pinned_by(rule.match)] = PinnedCount(
                    _out_port(rule.action), self._pinned[datapath_id, rule.match]
                )
        dropped = self._dropped[datapath_id] if message.groups else None
        return CountersRead(datapath_id, now, ports, pinned, 6, len(rules), dropped)

    def rules(self) -> list[Rule]:
        """Return the rules of all switches."""
        return [rule for table in self.tables.values() for rule in table.rules.values()]

    def pinned(self) -> list[Rule]:
        """Return those of flows."""
        return [rule for rule in self.rules() if is_flow_cookie(rule.cookie)]

    def installed_in(self, datapath_id: int) -> list[InstallRules]:
        """Return the messages by which a switch was given rules."""
        return [
            message
            for message in self.installed
            if message.datapath_id == datapath_id and any(isinstance(each, Rule) for each in message.entries)
        ]

    def _put_out(self, message: PacketOut) -> LinkDiscovered | None:
        probe = lldp.parse(message.frame)
        if probe is None:
            self.packets_out.append(message)
            return None
        assert probe == (message.datapath_id, message.port)
        self.probes.append(probe)
        arc = self._live.arc_at(*probe)
        if arc is None or arc.head in self.network.hosts or arc_name(arc.tail, arc.head) in self.silent_arcs:
            return None
        return self._discovery(arc)

    def path(self, packet: Packet, source: str) -> tuple[str, ...]:
        """Return the nodes that a packet visits from a host on; the last may be CONTROLLER or DROPPED.

        AssertionError if it goes round in a circle.
        """
        return self.trace(packet, source)[0]

    def trace(self, packet: Packet, source: str) -> tuple[tuple[str, ...], Packet]:
        """Return the nodes that a packet visits, as `path`, and the packet as it arrives.

        The controller may make a route for it first.
        """
        nodes, arrived = self._trace(packet, source)
        if nodes[-1] != CONTROLLER or packet.destination_ip is None:
            return nodes, arrived
        ports = {(arc.tail, arc.head): arc.tail_port for arc in self.network.arcs()}
        datapath_id, port = self.network.datapath_id(nodes[-2]), ports[nodes[-2], nodes[-3]]
        self.asks(PacketArrived(datapath_id, port, ip_frame(packet.destination_ip)))
        return self._trace(packet, source)

    def _trace(self, packet: Packet, source: str) -> tuple[tuple[str, ...], Packet]:
        first = next(arc for arc in self.network.arcs() if arc.tail == source)
        nodes = [source, first.head]
        while nodes[-1] not in self.network.hosts:
            datapath_id = self.network.datapath_id(nodes[-1])
            packet = replace(packet, in_port=self._live.ports[nodes[-1], nodes[-2]])
            step, packet = self.tables[datapath_id].forward(packet)
            if isinstance(step, str):
                return (*nodes, step), packet
            arc = self._live.arc_at(datapath_id, step)
            assert arc is not None, f"{nodes[-1]} has no port {step}"
            assert arc.head not in nodes, f"a loop: {nodes} and {arc.head} again"
            nodes.append(arc.head)
        return tuple(nodes), replace(packet, in_port=None)

    def arrivals(self) -> list[Event]:
        """Return the events of the whole network's coming up."""
        return [*self.connections(), *self.discoveries()]

    def lose_probes(self) -> None:
        """Let no probe arrive any more."""
        self.silent_arcs = frozenset(self._live.arcs)

    def connections(self) -> list[SwitchConnected]:
        """Return the events of all switches' connecting with all ports up."""
        ports: dict[int, set[int]] = {datapath_id: set() for datapath_id in self.tables}
        for arc in self.network.arcs():
            if arc.tail in self.network.switches:
                ports[self.network.datapath_id(arc.tail)].add(arc.tail_port)
        return [SwitchConnected(datapath_id, frozenset(live)) for datapath_id, live in ports.items()]

    def announced(self, datapath_id: int) -> SwitchConnected | None:
        """Return the event of a switch's connecting and saying what it has; None where there is no such."""
        events = [event for event in self.connections() if event.datapath_id == datapath_id]
        return replace(events[0], installed=self.tables[datapath_id].installed()) if events else None

    def rewire(self, network: Network) -> None:
        """Be wired as another network says; switches that were there keep what they have."""
        self.network, self._live = network, LiveNetwork(network)
        ids = map(network.datapath_id, network.switches)
        self.tables = {each: self.tables.get(each, FakeTable()) for each in ids}

    def discoveries(self) -> list[LinkDiscovered]:
        """Return the events of all links' discovery, both directions."""
        return [
            self._discovery(arc)
            for arc in self.network.arcs()
            if arc.tail in self.network.switches and arc.head in self.network.switches
        ]

    def _discovery(self, arc: Arc) -> LinkDiscovered:
        tail, head = self.network.datapath_id(arc.tail), self.network.datapath_id(arc.head)
        return LinkDiscovered(tail, arc.tail_port, head, arc.head_port)


class ControlledNetwork:
    """A core and its switches without threads: events go in, switches obey at once, the rest is kept.

    Set `silent` to the names of switches that take rules but confirm none.
    """

    def __init__(self, network: Network, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.core = Core(network, self.settings)
        self.switches = FakeSwitches(network)
        self.switches.asks = self.handle
        self.silent: frozenset[str] = frozenset()
        self.now = 0.0
        self.notifications: list[Notify] = []
        self.reports: list[Report] = []
        self.postponed: list[Postpone] = []
        self.records: Records = {}

    @classmethod
    def brought_up(cls, network: Network, settings: Settings | None = None) -> ControlledNetwork:
        """Return a network whose switches are connected and whose links are discovered."""
        net = cls(network, settings)
        net.bring_up()
        return net

    def bring_up(self) -> None:
        """Let all switches connect and all links be discovered, and bypasses be found."""
        for event in self.switches.arrivals():
            self.handle(event)
        self.pass_time(0.5)

    def handle(self, event: Event) -> list[Reply]:
        """Hand an event to the core, and to it the barriers of the switches, until nothing is left to do."""
        answers = []
        events = [event]
        silent = {self.switches.network.datapath_id(name) for name in self.silent}
        while events or self._is_due():
            messages = self.core.handle(events.pop(0) if events else TimePassed(), self.now)
            self.core.sent(self.now)
            for message in messages:
                assert not isinstance(message, Abandoned), "there are no replicas"
                if isinstance(message, Reply):
                    answers.append(message)
                elif isinstance(message, Notify):
                    self.notifications.append(message)
                elif isinstance(message, RecordChange):
                    self.write(message)
                elif isinstance(message, Report):
                    self.reports.append(message)
                elif isinstance(message, Postpone):
                    self.postponed.append(message)
                    events += message.events
                else:
                    back = self.switches.carry_out(message, self.now)
                    if isinstance(back, BarrierReceived) and back.datapath_id in silent:
                        continue
                    if back is not None:
                        events.append(back)
        return answers

    def write(self, change: RecordChange) -> None:
        """Be the store."""
        records = self.records.setdefault(change.kind, {})
        if change.value is None:
            records.pop(change.key, None)
        else:
            records[change.key] = json.loads(json.dumps(change.value))

    def restart(self) -> None:
        """Let a new controller take over, as after a crash; the switches keep what they have."""
        self.core = Core(self.switches.network, self.settings)
        for message in self.core.restore(json.loads(json.dumps(self.records)), self.now):
            if isinstance(message, RecordChange):
                self.write(message)
            else:
                assert isinstance(message, Report | Notify), "no switch has connected yet"

    def reconnect(self, name: str) -> None:
        """Let a switch connect and say what it has."""
        event = self.switches.announced(self.switches.network.datapath_id(name))
        assert event is not None
        self.handle(event)

    def port_of(self, link: str) -> tuple[int, int]:
        """Return the port at the first end of a link (`S0-S4`)."""
        a, b = link.split("-")
        return self.switches.network.datapath_id(a), self.core._state.live.arcs[f"{a}->{b}"].tail_port

    def break_link(self, link: str, both_ends: bool = False) -> None:
        """Let a link's ports go down; that at its first end is enough."""
        for end in self._ends(link)[: 1 + both_ends]:
            self.handle(PortWentDown(*end))

    def restore_link(self, link: str, both_ends: bool = False) -> None:
        """Let those ports come up, and the link be discovered."""
        ends = self._ends(link)
        for end in ends[: 1 + both_ends]:
            self.handle(PortCameUp(*end))
        for tail, head in (ends, ends[::-1]):
            self.handle(LinkDiscovered(*tail, *head))

    def _ends(self, link: str) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.port_of(link), self.port_of("-".join(link.split("-")[::-1]))

    def connect_empty(self, name: str) -> None:
        """Let a switch lose its connection and all that it has, and come back with its links."""
        datapath_id = self.switches.network.datapath_id(name)
        self.handle(SwitchDisconnected(datapath_id))
        self.switches.tables[datapath_id].clear()
        ports = next(
            each for each in self.switches.connections() if each.datapath_id == datapath_id
        ).live_ports
        self.handle(SwitchConnected(datapath_id, ports))
        for event in self.switches.discoveries():
            self.handle(event)

    def come_back(self) -> None:
        """Let all switches connect and say what they have, and all links be discovered."""
        for name in self.switches.network.switches:
            self.reconnect(name)
        for event in self.switches.discoveries():
            self.handle(event)

    def _is_due(self) -> bool:
        deadline = self.core.next_deadline()
        return deadline is not None and deadline <= self.now

    def pass_time(self, seconds: float) -> list[Reply]:
        """Let time pass."""
        self.now += seconds
        return self.handle(TimePassed())

    def let_run(self, seconds: float, step_s: float = 0.1) -> list[InstallRules]:
        """Let time pass bit by bit, and return what is installed meanwhile."""
        sent = len(self.switches.installed)
        for _ in range(round(seconds / step_s)):
            self.pass_time(step_s)
        return self.switches.installed[sent:]

    def request(self, owner: str = "", **fields: Any) -> FlowView:
        """Request a flow and return it; raise the error if it is refused."""
        return self._flow(self.handle(FlowRequested(1, parse(fields), owner)))

    def change(self, flow_id: str, rate_bps: float) -> FlowView:
        """Change a flow's rate and return it; raise the error if it is refused."""
        return self._flow(self.handle(FlowChanged(1, flow_id, rate_bps)))

    def release(self, flow_id: str) -> None:
        """Release a flow; raise the error if it is refused."""
        (answer,) = self.handle(FlowReleased(1, flow_id))
        if isinstance(answer.result, RequestError):
            raise answer.result

    def snapshot(self) -> Snapshot:
        """Return how things are."""
        (page,) = self.handle(FlowsRequested(1, FlowQuery(limit=1 << 32)))
        names = ViewName.LINKS, ViewName.HOSTS, ViewName.TOPOLOGY, ViewName.HEALTH
        views: list[Any] = [self.handle(ViewRequested(1, name))[0].result for name in names]
        return Snapshot(cast(FlowPage, page.result).flows, *views)

    @staticmethod
    def _flow(answers: list[Reply]) -> FlowView:
        (answer,) = answers
        if isinstance(answer.result, RequestError):
            raise answer.result
        assert isinstance(answer.result, FlowView)
        return answer.result


def ip_frame(destination: str) -> bytes:
    """Return an Ethernet frame with a packet to an address and nothing in it."""
    address = ipaddress.ip_address(destination)
    head = bytes(12) + eth_type_of(destination).to_bytes(2, "big")
    return head + bytes(16 if address.version == 4 else 24) + address.packed


def _pinned_by(match: Match) -> PinnedBy:
    if match.destination_mac is not None:
        return f"{match.destination_mac} {match.destination_ip}"
    if match.source_mac is not None:
        return match.source_mac
    assert match.source_ip is not None and match.destination_ip is not None
    assert match.source_port is not None and match.destination_port is not None
    return TcpConnection(match.source_ip, match.destination_ip, match.source_port, match.destination_port)


def _out_port(action: Action) -> int | None:
    if isinstance(action, ToGroup):
        return port_of_group(action.group)
    assert isinstance(action, Output)
    return action.port


def segments_of(flow: FlowView) -> list[tuple[tuple[str, ...], TcpConnection]]:
    """Return each stream's path and addresses."""
    return [
        (
            stream.path,
            TcpConnection(flow.source_ip, flow.destination_ip, stream.source_port, flow.destination_port),
        )
        for stream in flow.streams
    ]
