"""The flows that the controller carries, and what they take of the links."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from controller.core.journal import Journaled, JournaledDict
from controller.core.views import FlowView, IngressView, SplitView, StreamView
from controller.network.hosts import Host
from controller.network.live_network import arcs_of
from controller.rules.counters import PinnedBy
from controller.rules.model import Group, Rule, Stage, Stages, flow_cookie, merge_stages
from controller.rules.pinned import TcpConnection, new_path_stages, pinned_path_stages, pinned_rules
from controller.rules.split import TAGS, Split, SplitRules, shares_of, stamps, tag_of
from controller.rules.ways import Ways
from controller.wire import Framing

__all__ = [
    "CLOSE_WITHIN_S",
    "OPEN_WITHIN_S",
    "Flow",
    "FlowTable",
    "Slot",
    "Stream",
    "StreamState",
    "add_loads",
    "arc_loads",
    "slot_loads",
]


_ROUNDING = 1e-6
"""A flow that lacks no more than this share of what it asked for has all of it."""

_MOST_FAILED_STREAMS = 3
"""A flow whose host could not open so many streams one after the other is given no more."""

OPEN_WITHIN_S = 15.0
"""A stream that was added to a running flow is taken off if its host has not said by then that it is open."""

CLOSE_WITHIN_S = 10.0
"""The rules of a stream that was taken off go after so long if its host does not say that it is closed."""


StreamState = Literal["open", "opening", "leaving"]


class Slot(NamedTuple):
    """What one stream is to have: a path, goodput (bit/s) and propagation delay."""

    path: tuple[str, ...]
    rate_bps: float
    delay_s: float


@dataclass
class Stream(Journaled):
    """A path and the source port of its TCP connection; the paths of a split flow share one connection.

    `rate_bps` is goodput. Rate and path may change; `generation` is the flow's when the path last did.
    Of a running flow, a stream that was added is `opening` until its host says that it is open, and one that
    was taken off is `leaving` until it is closed; both only `until` a time.
    """

    source_port: int
    path: tuple[str, ...]
    rate_bps: float
    delay_s: float
    generation: int = 0
    state: StreamState = "open"
    until: float = math.inf

    def slot(self) -> Slot:
        """Return what it has."""
        return Slot(self.path, self.rate_bps, self.delay_s)


@dataclass
class Flow(Journaled):
    """A flow, from its request to its end.

    `objective` is None where its paths were given by hand, `split` where each stream is a connection. `owner`
    is the session that hears of its changes, `belongs_to` the client that may change it; `revision` counts
    what clients can see of it. Where its host opens and closes streams as it is told, `max_streams` is how
    many it may have (else 0), `spare_ports` are bound for more, and `leaving` are those taken off whose rules
    stay until they are closed.
    """

    number: int
    id: str
    source: Host
    destination: Host
    destination_port: int
    requested_bps: float
    framing: Framing
    objective: str | None
    streams: list[Stream]
    lease_s: float
    expires_at: float
    owner: str
    split: Split | None = None
    state: Literal["installing", "active"] = "installing"
    generation: int = 0  # how often its paths have changed
    given_bps: tuple[float, ...] | None = None  # rates given by hand
    reserved: tuple[Slot, ...] = ()  # what it will have once it has been moved
    belongs_to: str = ""
    revision: int = 0
    max_streams: int = 0
    spare_ports: tuple[int, ...] = ()
    leaving: tuple[Stream, ...] = ()
    failed_streams: int = 0  # that its host could not open, since it last opened one

    @property
    def cookies(self) -> tuple[int, ...]:
        """The cookies of its rules."""
        if self.split is not None:
            return (flow_cookie(self.number, self.generation),)
        generations = dict.fromkeys(stream.generation for stream in (*self.streams, *self.leaving))
        return tuple(flow_cookie(self.number, generation) for generation in generations)

    @property
    def rate_bps(self) -> float:
        """Goodput granted."""
        streams = self.streams
        return streams[0].rate_bps if len(streams) == 1 else sum([stream.rate_bps for stream in streams])

    @property
    def connection_count(self) -> int:
        """How many TCP connections it has."""
        return 1 if self.split is not None else len(self.streams)

    @property
    def framed_streams(self) -> int:
        """For how many TCP connections its bytes are framed: several need identifiers, one is plain TCP.

        Where another may join at any time, the first has identifiers too.
        """
        return max(2, self.connection_count) if self.max_streams else self.connection_count

    @property
    def most_paths(self) -> int:
        """Over how many paths it may be planned again."""
        have = len(self.streams)
        if self.failed_streams >= _MOST_FAILED_STREAMS:
            return have
        return max(have, min(self.max_streams, have + len(self.spare_ports)))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The path of each stream."""
        return tuple([stream.path for stream in self.streams])

    @property
    def arcs(self) -> tuple[tuple[str, ...], ...]:
        """The arcs of each path."""
        return tuple(arcs_of(path) for path in self.paths)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each path in the flow's rate."""
        return shares_of([stream.rate_bps for stream in self.streams])

    def tcp_connections(self) -> tuple[TcpConnection, ...]:
        """Return the addresses of each connection, from the source to the destination."""
        return tuple(self.connection_from(s.source_port) for s in self.streams[: self.connection_count])

    def held_connections(self) -> tuple[TcpConnection, ...]:
        """Return those that no other flow may have: also of streams that are leaving or may come."""
        if not self.max_streams:
            return self.tcp_connections()
        ports = [stream.source_port for stream in (*self.streams, *self.leaving)]
        return tuple(self.connection_from(port) for port in dict.fromkeys((*ports, *self.spare_ports)))

    def connection_from(self, source_port: int) -> TcpConnection:
        """Return the addresses of a connection of it from a source port."""
        return TcpConnection(self.source.ip, self.destination.ip, source_port, self.destination_port)

    def stages(self, ports: Ways) -> Stages:
        """Return its rules in the order of installation: the stages of all `directions`, side by side."""
        return merge_stages(self.directions(ports))

    def directions(
        self,
        ports: Ways,
        streams: Collection[int] | None = None,
        before: Flow | None = None,
    ) -> list[list[Stage]]:
        """Return the rules of each direction of each path in the order of installation: the ingress last.

        Args:
            ports: The port of each node towards each neighbour, by (node, neighbour).
            streams: Of these alone, by their index; a split flow has only rules of all. None: also of those
                that are leaving.
            before: The flow as its packets travel now.
        """
        if self.split is not None:
            reached = () if before is None else {node for path in before.routes() for node in path}
            return self._split_rules(self.split, ports).stages(self.shares, reached)
        directions: list[list[Stage]] = []
        for index, (stream, forward) in enumerate(zip(self.streams, self.tcp_connections(), strict=True)):
            if streams is None or index in streams:
                cookie = flow_cookie(self.number, stream.generation)
                if before is None or index >= len(before.streams):
                    directions.append(new_path_stages(stream.path, forward, ports, cookie))
                    continue
                former = before.streams[index].path
                for path, old, connection in (
                    (stream.path, former, forward),
                    (stream.path[::-1], former[::-1], forward.reverse),
                ):
                    turned = _turned(old, path)
                    directions.append(pinned_path_stages(path, connection, ports, cookie, turned))
        for stream in self.leaving if streams is None else ():
            forward, cookie = (
                self.connection_from(stream.source_port),
                flow_cookie(self.number, stream.generation),
            )
            directions.append(new_path_stages(stream.path, forward, ports, cookie))
        return directions

    def rules_at(self, switches: Collection[str], stream: Stream, ports: Ways) -> list[tuple[str, Rule]]:
        """Return the rules of a stream of it at some of the switches on its path."""
        forward, path = self.connection_from(stream.source_port), stream.path
        cookie = flow_cookie(self.number, stream.generation)
        return [
            *pinned_rules(path, forward, ports, cookie, switches),
            *pinned_rules(path[::-1], forward.reverse, ports, cookie, switches),
        ]

    def moved(self, slots: Sequence[Slot], ack_path: tuple[str, ...] | None) -> Flow:
        """Return the flow as it will be with other paths and rates; this one stays as it is.

        Slots beyond its streams are streams to be added, from its spare ports. `ack_path` is that of a split
        flow's acknowledgements.
        """
        generation, have = self.generation + 1, len(self.streams)
        streams = [
            Stream(
                stream.source_port,
                slot.path,
                slot.rate_bps,
                slot.delay_s,
                stream.generation if stream.path == slot.path else generation,
                stream.state,
                stream.until,
            )
            for stream, slot in zip(self.streams, slots, strict=False)
        ]
        added = self.spare_ports[: len(slots) - have]
        streams += [
            Stream(port, slot.path, slot.rate_bps, slot.delay_s, generation, "opening")
            for port, slot in zip(added, slots[have:], strict=True)
        ]
        split = self.split
        if split is not None and ack_path is not None:
            split = replace(split, ack_path=ack_path)
        spare_ports = self.spare_ports[len(added) :]
        return self.copied(
            streams=streams, split=split, generation=generation, reserved=(), spare_ports=spare_ports
        )

    def idle_streams(self) -> list[Stream]:
        """Return the streams that carry nothing while others do."""
        least_bps = _ROUNDING * self.requested_bps
        idle = [stream for stream in self.streams if stream.rate_bps <= least_bps]
        return idle if len(idle) < len(self.streams) else []

    def changed_streams(self, slots: Sequence[Slot]) -> list[int]:
        """Return the streams, by their index, whose paths would change, and those that would be added."""
        pairs = zip(self.streams, slots, strict=False)
        changed = [index for index, (stream, slot) in enumerate(pairs) if stream.path != slot.path]
        return [*changed, *range(len(self.streams), len(slots))]

    def group(self, ports: Ways) -> Group | None:
        """Return the group that splits it, with the weights of its rates; None without."""
        if self.split is None or self.split.mode != "group":
            return None
        return self._split_rules(self.split, ports).group(self.shares)

    def _split_rules(self, split: Split, ports: Ways) -> SplitRules:
        (connection,) = self.tcp_connections()
        return SplitRules(
            split, connection, self.paths, self.source.mac, ports, flow_cookie(self.number, self.generation)
        )

    def routes(self) -> tuple[tuple[str, ...], ...]:
        """Return all paths that its packets take, with that of acknowledgements which have their own."""
        return self.paths if self.split is None else (*self.paths, self.split.ack_path)

    def switches(self) -> tuple[str, ...]:
        """Return the switches of all paths, each once, in the order in which a packet meets them.

        Those of streams that are leaving have rules of it too.
        """
        routes = self.routes()
        if self.leaving:
            routes += tuple(stream.path for stream in self.leaving)
        return tuple(dict.fromkeys(switch for path in routes for switch in path[1:-1]))

    def counted_by(self) -> tuple[tuple[str, PinnedBy] | None, ...]:
        """Return for each stream the switch whose rule counts all of it, and what that rule looks at."""
        if self.split is None:
            return tuple(zip((path[1] for path in self.paths), self.tcp_connections(), strict=True))
        # Where a group of the ingress chooses, the next switch is the first that knows the path.
        place = 1 if self.split.mode == "packets" else 2
        marks = stamps(self.split.tag, len(self.streams))
        return tuple(
            (path[place], mark) if len(path) > place + 1 else None
            for path, mark in zip(self.paths, marks, strict=True)
        )

    def view(
        self, now: float, lost_links: tuple[str, ...], measured: Sequence[float | None] | None = None
    ) -> FlowView:
        """Return an immutable copy for clients; `measured` are wire rates (bit/s), by stream."""
        measured = measured or [None] * len(self.streams)
        counted = [bps for bps in measured if bps is not None]
        return FlowView(
            flow_id=self.id,
            owner=self.belongs_to or None,
            revision=self.revision,
            state=self.state,
            splitting="streams" if self.split is None else self.split.mode,
            source=self.source.name,
            destination=self.destination.name,
            source_ip=self.source.ip,
            destination_ip=self.destination.ip,
            destination_port=self.destination_port,
            requested_bps=self.requested_bps,
            rate_bps=self.rate_bps,
            measured_bps=sum(counted) if len(counted) == len(self.streams) else None,
            objective=self.objective,
            packet_bytes=self.framing.packet_bytes,
            streams=self.stream_views(measured),
            lease_s=self.lease_s,
            expires_in_s=max(0.0, self.expires_at - now),
            lost_links=lost_links,
            split=None if self.split is None else self._split_view(self.split),
            may_grow=self.max_streams > 0,
        )

    def stream_views(self, measured: Sequence[float | None]) -> tuple[StreamView, ...]:
        """Return immutable copies of its streams for clients; `measured` are wire rates (bit/s)."""
        return tuple(
            StreamView(
                source_port=stream.source_port,
                rate_bps=stream.rate_bps,
                wire_bps=self.framing.wire_bps(stream.rate_bps, self.framed_streams),
                measured_bps=bps,
                delay_s=stream.delay_s,
                path=stream.path,
                is_opening=stream.state == "opening",
            )
            for stream, bps in zip(self.streams, measured, strict=True)
        )

    def _split_view(self, split: Split) -> SplitView:
        (connection,) = self.tcp_connections()
        return SplitView(
            ingress=IngressView(switch=self.source.switch, port=self.source.port),
            source_ip=connection.source_ip,
            destination_ip=connection.destination_ip,
            source_port=connection.source_port,
            destination_port=connection.destination_port,
            shares=self.shares,
            stamps=stamps(split.tag, len(self.streams)),
            acks=split.acks,
            ack_path=split.ack_path,
        )


def _turned(before: tuple[str, ...], after: tuple[str, ...]) -> set[str]:
    """Return the nodes of a path from which packets will go on to another node than they do now."""
    return {node for node, _ in set(pairwise(before)) - set(pairwise(after))} if before else set()


class FlowTable(Journaled):
    """All flows by id, by switch, with the TCP addresses they hold and what they take of arcs.

    Args:
        ack_ratio: Load of the acknowledgements on the reverse path, per bit of data.
    """

    def __init__(self, ack_ratio: float = 0.0) -> None:
        self._ack_ratio = ack_ratio
        self._loads: JournaledDict[str, float] = JournaledDict()
        self._loads_of: JournaledDict[str, dict[str, float]] = JournaledDict()
        self._by_switch: JournaledDict[str, JournaledDict[str, None]] = JournaledDict()
        self._flows: JournaledDict[str, Flow] = JournaledDict()
        self._holders: JournaledDict[TcpConnection, str] = JournaledDict()
        self._ports: JournaledDict[str, JournaledDict[int, int]] = JournaledDict()  # host -> port -> holders
        self._short: JournaledDict[str, None] = JournaledDict()
        self._manual: JournaledDict[str, None] = JournaledDict()
        self._growing: JournaledDict[str, None] = JournaledDict()
        self._idle: JournaledDict[str, None] = JournaledDict()
        self._by_tag: JournaledDict[int, str] = JournaledDict()  # split flows

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

    def __len__(self) -> int:
        return len(self._flows)

    def get(self, flow_id: str) -> Flow | None:
        """Return a flow; None if there is no such flow."""
        return self._flows.get(flow_id)

    def holder(self, connection: TcpConnection) -> str | None:
        """Return the id of the flow that holds these addresses in either direction."""
        return self._holders.get(connection) or self._holders.get(connection.reverse)

    def ports_of(self, source_ip: str) -> frozenset[int]:
        """Return the source ports that flows from a host use."""
        return frozenset(self._ports.get(source_ip, ()))

    def short(self) -> list[Flow]:
        """Return the flows that have less than they asked for."""
        return [self._flows[flow_id] for flow_id in self._short]

    def manual(self) -> list[Flow]:
        """Return the flows whose paths were given by hand."""
        return [self._flows[flow_id] for flow_id in self._manual]

    def growing(self) -> list[Flow]:
        """Return the flows whose hosts open and close streams as they are told."""
        return [self._flows[flow_id] for flow_id in self._growing]

    def with_idle_streams(self) -> list[Flow]:
        """Return those of them that have streams which carry nothing while others do."""
        return [self._flows[flow_id] for flow_id in self._idle]

    def free_tag(self, preferred: int) -> int | None:
        """Return a tag that no split flow has, the preferred one or the next; None if there is none."""
        tags = ((preferred + offset) % TAGS for offset in range(TAGS))
        return next((tag for tag in tags if tag not in self._by_tag), None)

    def with_stamp(self, stamp: str) -> Flow | None:
        """Return the split flow whose packets carry a stamp."""
        flow_id = self._by_tag.get(tag_of(stamp))
        return None if flow_id is None else self._flows[flow_id]

    def add(self, flow: Flow) -> None:
        """Take a flow in."""
        self._flows[flow.id] = flow
        for connection in flow.held_connections():
            self._hold(connection, flow)
        if flow.max_streams:
            self._growing[flow.id] = None
        if flow.given_bps is not None:
            self._manual[flow.id] = None
        if flow.split is not None:
            self._by_tag[flow.split.tag] = flow.id
        self.index(flow)
        self.account(flow)

    def remove(self, flow: Flow) -> None:
        """Let a flow go."""
        del self._flows[flow.id]
        for connection in flow.held_connections():
            self._let_go(connection)
        self.unindex(flow)
        for listed in (self._manual, self._growing, self._idle):
            listed.pop(flow.id, None)
        if flow.split is not None:
            self._by_tag.pop(flow.split.tag, None)
        self._short.pop(flow.id, None)
        self._account(flow.id, {})
        del self._loads_of[flow.id]

    def _hold(self, connection: TcpConnection, flow: Flow) -> None:
        self._holders[connection] = flow.id
        ports = self._ports.setdefault(connection.source_ip, JournaledDict())
        ports[connection.source_port] = ports.get(connection.source_port, 0) + 1

    def _let_go(self, connection: TcpConnection) -> None:
        del self._holders[connection]
        ports = self._ports[connection.source_ip]
        ports[connection.source_port] -= 1
        if not ports[connection.source_port]:
            del ports[connection.source_port]

    def change_streams(
        self,
        flow: Flow,
        streams: list[Stream],
        spare_ports: tuple[int, ...],
        leaving: tuple[Stream, ...] | None = None,
    ) -> None:
        """Give a flow other streams and ports for more; a spare port that another flow has is left out."""
        before = set(flow.held_connections())
        self.unindex(flow)
        flow.streams, flow.leaving = streams, flow.leaving if leaving is None else leaving
        used = {stream.source_port for stream in (*flow.streams, *flow.leaving)}
        flow.spare_ports = tuple(
            port
            for port in dict.fromkeys(spare_ports)
            if port not in used and self.holder(flow.connection_from(port)) in (None, flow.id)
        )
        self.index(flow)
        after = set(flow.held_connections())
        for connection in before - after:
            self._let_go(connection)
        for connection in after - before:
            self._hold(connection, flow)
        self.account(flow)

    def set_ack_ratio(self, ack_ratio: float) -> None:
        """Account for acknowledgements by another ratio from now on."""
        if ack_ratio != self._ack_ratio:
            self._ack_ratio = ack_ratio
            for flow in self:
                self.account(flow)

    def load_bps(self, arc: str) -> float:
        """Return the wire rate that all flows take of an arc, as `arc_loads`, to about 1e-9 of it."""
        return self._loads.get(arc, 0.0)

    def account(self, flow: Flow) -> None:
        """Take in that a flow has other rates, paths or reservations."""
        if flow.rate_bps < (1 - _ROUNDING) * flow.requested_bps:
            self._short[flow.id] = None
        else:
            self._short.pop(flow.id, None)
        if flow.max_streams:
            if flow.idle_streams():
                self._idle[flow.id] = None
            else:
                self._idle.pop(flow.id, None)
        self._account(flow.id, arc_loads((flow,), self._ack_ratio))

    def _account(self, flow_id: str, loads: dict[str, float]) -> None:
        before = self._loads_of.get(flow_id)
        changes = loads
        if before == loads:
            return
        if before:
            changes = {
                arc: loads.get(arc, 0.0) - before.get(arc, 0.0) for arc in before.keys() | loads.keys()
            }
        total = self._loads.get
        self._loads.set_all({arc: total(arc, 0.0) + bps for arc, bps in changes.items() if bps})
        self._loads_of[flow_id] = loads

    def index(self, flow: Flow) -> None:
        """List a flow under the switches of its paths."""
        for switch in flow.switches():
            self._by_switch.setdefault(switch, JournaledDict())[flow.id] = None

    def unindex(self, flow: Flow) -> None:
        """Take a flow off the lists of its switches; before its paths change."""
        for switch in flow.switches():
            del self._by_switch[switch][flow.id]

    def is_used(self, switch: str) -> bool:
        """Return whether a flow's paths lead through a switch."""
        return bool(self._by_switch.get(switch))

    def through(self, switch: str) -> list[Flow]:
        """Return the flows whose paths lead through a switch."""
        return [self._flows[flow_id] for flow_id in self._by_switch.get(switch, ())]


def arc_loads(flows: Iterable[Flow], ack_ratio: float) -> dict[str, float]:
    """Return the wire rate (bit/s) that flows take of each arc, with that of the acknowledgements.

    A flow that is being moved takes, of each arc, the larger of what it has and what it will have.
    """
    loads: dict[str, float] = {}
    for flow in flows:
        if not flow.reserved:
            slot_loads(loads, flow, flow.streams, ack_ratio)
            continue
        now: dict[str, float] = {}
        then: dict[str, float] = {}
        slot_loads(now, flow, flow.streams, ack_ratio)
        slot_loads(then, flow, flow.reserved, ack_ratio)
        for arc in now.keys() | then.keys():
            loads[arc] = loads.get(arc, 0.0) + max(now.get(arc, 0.0), then.get(arc, 0.0))
    return loads


def slot_loads(loads: dict[str, float], flow: Flow, slots: Iterable[Slot | Stream], ack_ratio: float) -> None:
    """Add to arcs' loads what a flow takes of them with these paths and rates."""
    ack_path = None if flow.split is None else flow.split.ack_path
    for slot in slots:
        if not slot.rate_bps:
            continue
        wire_bps = flow.framing.wire_bps(slot.rate_bps, flow.framed_streams)
        add_loads(loads, slot.path, wire_bps, ack_ratio, ack_path)


def add_loads(
    loads: dict[str, float],
    path: tuple[str, ...],
    wire_bps: float,
    ack_ratio: float,
    ack_path: tuple[str, ...] | None,
) -> None:
    """Add to arcs' loads a wire rate on a path, with its ACKs on `ack_path` or on the reverse (None)."""
    get = loads.get
    for arc in arcs_of(path):
        loads[arc] = get(arc, 0.0) + wire_bps
    ack_bps = wire_bps * ack_ratio
    for arc in arcs_of(ack_path or path[::-1]):
        loads[arc] = get(arc, 0.0) + ack_bps
