"""The flows that the controller carries: their streams, and the rules of those."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from controller.compile.pinned import legs, pinned_path
from controller.compile.split import Split, SplitRules, shares_of, stamps
from controller.model.counters import PinnedBy
from controller.model.fast_init import fast_init
from controller.model.journal import Journaled
from controller.model.next_hops import NextHops
from controller.model.requests import Protocol
from controller.model.rules import (
    IP_PROTOCOLS,
    TABLE_DELIVER,
    Group,
    Rule,
    TcpConnection,
    flow_cookie,
)
from controller.model.views import FlowSummaryView, FlowView, IngressView, SplitView, StreamView
from controller.state.hosts import Host
from controller.state.live_network import arcs_of
from controller.wire import Framing

ROUNDING = 1e-6
"""A flow that lacks no more than this share of what it asked for has all of it."""

_MAX_FAILED_STREAMS = 3
"""A flow whose host could not open this many streams one after the other is given no more."""

OPEN_TIMEOUT_S = 15.0
"""A stream that was added to a running flow is taken off if its host has not said by then that it is open."""

CLOSE_TIMEOUT_S = 10.0
"""Time for a host to report a stream closed; then the stream's rules are removed."""


class StreamState(enum.Enum):
    """Where a stream stands between the controller and its host; records have the values."""

    OPEN = "open"
    OPENING = "opening"
    """It was added to a running flow, and its host has not said that it is open."""
    LEAVING = "leaving"
    """It was taken off a running flow, and its host has not said that it is closed."""


class FlowState(enum.Enum):
    """Whether a flow's rules are in force."""

    INSTALLING = "installing"
    ACTIVE = "active"


class Slot(NamedTuple):
    """What one stream is to have: a path, goodput (bit/s) and propagation delay."""

    path: tuple[str, ...]
    rate_bps: float
    delay_s: float


@fast_init
@dataclass
class Stream(Journaled):
    """A path and the source port of its TCP connection; the paths of a split flow share one connection.

    `rate_bps` is goodput. Rate and path may change; `generation` is the flow's when the path last did.
    A stream is opening or leaving only `until` a time.
    """

    source_port: int
    path: tuple[str, ...]
    rate_bps: float
    delay_s: float
    generation: int = 0
    state: StreamState = StreamState.OPEN
    until: float = math.inf

    @property
    def is_open(self) -> bool:
        """Whether its host has it open, as far as is known."""
        return self.state is StreamState.OPEN

    @property
    def is_opening(self) -> bool:
        """Whether its host is to open it."""
        return self.state is StreamState.OPENING


@fast_init
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
    state: FlowState = FlowState.INSTALLING
    generation: int = 0  # how often its paths have changed
    given_bps: tuple[float, ...] | None = None  # rates given by hand
    reserved: tuple[Slot, ...] = ()  # what it will have once it has been moved
    belongs_to: str = ""
    revision: int = 0
    protocol: Protocol = "tcp"
    max_streams: int = 0
    spare_ports: tuple[int, ...] = ()
    repeated_as: tuple[str, str] | None = None  # of its request: key and digest
    leaving: tuple[Stream, ...] = ()
    failed_streams: int = 0  # that its host could not open, since it last opened one

    @property
    def is_active(self) -> bool:
        """Whether its rules are in force, or were and are being changed."""
        return self.state is FlowState.ACTIVE

    @property
    def told_state(self) -> Literal["installing", "active"]:
        """Its state as clients are told."""
        return "active" if self.is_active else "installing"

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
        if self.failed_streams >= _MAX_FAILED_STREAMS:
            return have
        return max(have, min(self.max_streams, have + len(self.spare_ports)))

    def slots(self) -> tuple[Slot, ...]:
        """Return what each stream has."""
        return tuple([Slot(stream.path, stream.rate_bps, stream.delay_s) for stream in self.streams])

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
        return tuple([self.connection_from(s.source_port) for s in self.streams[: self.connection_count]])

    def held_connections(self) -> tuple[TcpConnection, ...]:
        """Return those that no other flow may have: also of streams that are leaving or may come."""
        if not self.max_streams:
            return self.tcp_connections()
        ports = [stream.source_port for stream in (*self.streams, *self.leaving)]
        return tuple(self.connection_from(port) for port in dict.fromkeys((*ports, *self.spare_ports)))

    def connection_from(self, source_port: int) -> TcpConnection:
        """Return the addresses of a connection of it from a source port."""
        ends = self.source.ip, self.destination.ip, source_port, self.destination_port
        return TcpConnection(*ends, IP_PROTOCOLS[self.protocol])

    def entries(
        self, next_hops: NextHops, streams: Collection[int] | None = None
    ) -> list[tuple[str, Rule | Group]]:
        """Return its rules and groups, by switch; those of ingresses are last.

        With `streams` of these alone, by their index (a split flow has only rules of all); else also of those
        that are leaving.
        """
        if self.split is not None:
            return self._split_rules(self.split, next_hops).entries(self.shares)
        behind: list[tuple[str, Rule | Group]] = []
        ingress: list[tuple[str, Rule | Group]] = []
        wanted = [stream for index, stream in enumerate(self.streams) if streams is None or index in streams]
        for stream in (*wanted, *(self.leaving if streams is None else ())):
            for switch, rule in self.stream_rules(stream, next_hops):
                (behind if rule.table == TABLE_DELIVER else ingress).append((switch, rule))
        return [*behind, *ingress]

    def stream_rules(self, stream: Stream, next_hops: NextHops) -> list[tuple[str, Rule]]:
        """Return the rules of a stream in both directions, by switch."""
        connection = self.connection_from(stream.source_port)
        cookie = flow_cookie(self.number, stream.generation)
        return [
            *pinned_path(stream.path, connection, next_hops, cookie),
            *pinned_path(stream.path[::-1], connection.reverse, next_hops, cookie),
        ]

    def rule_count(self, switch: str, next_hops: NextHops) -> int:
        """Return how many rules a switch has of it."""
        streams = (*self.streams, *self.leaving)
        if self.split is None and self.has_ends_alone(next_hops):
            return sum((each.path[1] == switch) + (each.path[-2] == switch) for each in streams)
        return sum(at == switch and isinstance(entry, Rule) for at, entry in self.entries(next_hops))

    def has_ends_alone(self, next_hops: NextHops) -> bool:
        """Return whether no label ends on the way: it has rules at the ends of its paths alone."""
        longest = next_hops.format.most_fields + 4
        return all(len(stream.path) <= longest for stream in (*self.streams, *self.leaving))

    def rule_switches(self, next_hops: NextHops) -> tuple[str, ...]:
        """Return the switches that have rules of it: the ends of its paths, and where labels end before."""
        routes = [*self.routes(), *(stream.path for stream in self.leaving)]
        if self.split is None:
            routes += [path[::-1] for path in routes]
        found = dict.fromkeys(path[1] for path in routes)
        for path in routes:
            if len(path) - 4 > next_hops.format.most_fields:
                found.update(dict.fromkeys(switch for switch, _, _ in legs(path, next_hops)))
        return tuple(found)

    def moved(self, slots: Sequence[Slot], ack_path: tuple[str, ...] | None) -> Flow:
        """Return the flow as it will be with other paths and rates; this one stays as it is.

        Slots beyond its streams are streams to be added, from its spare ports. `ack_path` is that of a split
        flow's acknowledgements.
        """
        generation, have = self.generation + 1, len(self.streams)
        streams = [
            stream.copied(
                path=slot.path,
                rate_bps=slot.rate_bps,
                delay_s=slot.delay_s,
                generation=stream.generation if stream.path == slot.path else generation,
            )
            for stream, slot in zip(self.streams, slots, strict=False)
        ]
        added = self.spare_ports[: len(slots) - have]
        streams += [
            Stream(port, slot.path, slot.rate_bps, slot.delay_s, generation, StreamState.OPENING)
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
        least_bps = ROUNDING * self.requested_bps
        idle = [stream for stream in self.streams if stream.rate_bps <= least_bps]
        return idle if len(idle) < len(self.streams) else []

    def changed_streams(self, slots: Sequence[Slot]) -> list[int]:
        """Return the streams, by their index, whose paths would change, and those that would be added."""
        pairs = zip(self.streams, slots, strict=False)
        changed = [index for index, (stream, slot) in enumerate(pairs) if stream.path != slot.path]
        return [*changed, *range(len(self.streams), len(slots))]

    def group(self, ports: NextHops) -> Group | None:
        """Return the group that splits it, with the weights of its rates; None without."""
        if self.split is None or self.split.mode != "group":
            return None
        return self._split_rules(self.split, ports).group(self.shares)

    def _split_rules(self, split: Split, ports: NextHops) -> SplitRules:
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
        routes = (*self.routes(), *(stream.path for stream in self.leaving))
        if len(routes) == 1:
            return routes[0][1:-1]
        return tuple(dict.fromkeys(switch for path in routes for switch in path[1:-1]))

    def counted_by(self) -> tuple[tuple[str, PinnedBy] | None, ...]:
        """Return for each stream the switch whose rule counts all of it, and what that rule looks at.

        None where a group chooses the path.
        """
        if self.split is None:
            return tuple(zip((path[1] for path in self.paths), self.tcp_connections(), strict=True))
        if self.split.mode == "group":
            return tuple(None for _ in self.streams)
        marks = stamps(self.split.tag, len(self.streams))
        return tuple((path[1], mark) for path, mark in zip(self.paths, marks, strict=True))

    def summary(
        self, now: float, lost_links: tuple[str, ...], measured: Sequence[float | None]
    ) -> FlowSummaryView:
        """Return an immutable copy of what most clients look at; `measured` are wire rates (bit/s)."""
        return FlowSummaryView(**self._summary(now, lost_links, measured))

    def _summary(
        self, now: float, lost_links: tuple[str, ...], measured: Sequence[float | None]
    ) -> dict[str, Any]:
        return {
            "flow_id": self.id,
            "owner": self.belongs_to or None,
            "revision": self.revision,
            "state": self.told_state,
            "source": self.source.name,
            "destination": self.destination.name,
            "destination_port": self.destination_port,
            "objective": self.objective,
            "requested_bps": self.requested_bps,
            "rate_bps": self.rate_bps,
            "lease_s": self.lease_s,
            "expires_in_s": max(0.0, self.expires_at - now),
            "lost_links": lost_links,
            "streams": self.stream_views(measured),
        }

    def view(
        self,
        now: float,
        lost_links: tuple[str, ...],
        measured: Sequence[float | None] | None = None,
        total_bps: float | None = None,
    ) -> FlowView:
        """Return an immutable copy for clients.

        `measured` are wire rates (bit/s), by stream; `total_bps` is their sum where they are not known.
        """
        measured = measured or [None] * len(self.streams)
        counted = [bps for bps in measured if bps is not None]
        return FlowView(
            **self._summary(now, lost_links, measured),
            splitting="streams" if self.split is None else self.split.mode,
            source_ip=self.source.ip,
            destination_ip=self.destination.ip,
            protocol=self.protocol,
            measured_bps=sum(counted) if len(counted) == len(self.streams) else total_bps,
            packet_bytes=self.framing.packet_bytes,
            split=None if self.split is None else self._split_view(self.split),
            may_grow=self.max_streams > 0,
        )

    def stream_views(self, measured: Sequence[float | None]) -> tuple[StreamView, ...]:
        """Return immutable copies of its streams for clients; `measured` are wire rates (bit/s)."""
        wire = self.framing.wire_per_goodput(self.framed_streams)
        return tuple(
            StreamView(
                source_port=stream.source_port,
                rate_bps=stream.rate_bps,
                wire_bps=stream.rate_bps * wire,
                measured_bps=bps,
                delay_s=stream.delay_s,
                path=stream.path,
                is_opening=stream.is_opening,
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
