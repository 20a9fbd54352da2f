"""The flows that the controller carries, and what they take of the links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from controller.core.journal import Journaled, JournaledDict
from controller.core.views import FlowView, IngressView, SplitView, StreamView
from controller.network.hosts import Host
from controller.network.live_network import arc_name
from controller.rules.model import Group, Stages, flow_cookie, merge_stages
from controller.rules.pinned import TcpConnection, pinned_path_stages
from controller.rules.split import TAGS, Split, SplitRules, shares_of, stamps
from controller.wire import Framing

__all__ = ["Flow", "FlowTable", "Stream", "add_loads", "arc_loads", "arcs_of"]


def arcs_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the arcs along a path of nodes."""
    return tuple(arc_name(a, b) for a, b in pairwise(path))


@dataclass
class Stream(Journaled):
    """A path and the source port of its TCP connection; the paths of a split flow share one connection.

    `rate_bps` is goodput and may change; the rest stays.
    """

    source_port: int
    path: tuple[str, ...]
    rate_bps: float
    delay_s: float


@dataclass
class Flow(Journaled):
    """A flow, from its request to its end.

    `objective` is None where its paths were given by hand, `split` where each stream is a connection.
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

    @property
    def cookie(self) -> int:
        """The cookie of all its rules."""
        return flow_cookie(self.number)

    @property
    def rate_bps(self) -> float:
        """Goodput granted."""
        return sum(stream.rate_bps for stream in self.streams)

    @property
    def connection_count(self) -> int:
        """How many TCP connections it has; several need identifiers, one is plain TCP."""
        return 1 if self.split is not None else len(self.streams)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The path of each stream."""
        return tuple(stream.path for stream in self.streams)

    @cached_property
    def arcs(self) -> tuple[tuple[str, ...], ...]:
        """The arcs of each path; the paths of a flow stay as they are."""
        return tuple(arcs_of(path) for path in self.paths)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each path in the flow's rate."""
        return shares_of([stream.rate_bps for stream in self.streams])

    def tcp_connections(self) -> tuple[TcpConnection, ...]:
        """Return the addresses of each connection, from the source to the destination."""
        source_ports = [stream.source_port for stream in self.streams[: self.connection_count]]
        return tuple(
            TcpConnection(self.source.ip, self.destination.ip, port, self.destination_port)
            for port in source_ports
        )

    def stages(self, ports: Mapping[tuple[str, str], int]) -> Stages:
        """Return its rules in the order of installation: each direction from its far end to its near end."""
        if self.split is not None:
            return merge_stages(self._split_rules(self.split, ports).stages(self.shares))
        directions = [
            pinned_path_stages(path, connection, ports, self.cookie)
            for stream, forward in zip(self.streams, self.tcp_connections(), strict=True)
            for path, connection in ((stream.path, forward), (stream.path[::-1], forward.reverse))
        ]
        return merge_stages(directions)

    def group(self, ports: Mapping[tuple[str, str], int]) -> Group | None:
        """Return the group that splits it, with the weights of its rates; None without."""
        if self.split is None or self.split.mode != "group":
            return None
        return self._split_rules(self.split, ports).group(self.shares)

    def _split_rules(self, split: Split, ports: Mapping[tuple[str, str], int]) -> SplitRules:
        (connection,) = self.tcp_connections()
        return SplitRules(split, connection, self.paths, self.source.mac, ports, self.cookie)

    def routes(self) -> tuple[tuple[str, ...], ...]:
        """Return all paths that its packets take, with that of acknowledgements which have their own."""
        return self.paths if self.split is None else (*self.paths, self.split.ack_path)

    def switches(self) -> tuple[str, ...]:
        """Return the switches of all paths, each once, in the order in which a packet meets them."""
        return tuple(dict.fromkeys(switch for path in self.routes() for switch in path[1:-1]))

    def view(self, now: float, lost_links: tuple[str, ...]) -> FlowView:
        """Return an immutable copy for clients."""
        return FlowView(
            flow_id=self.id,
            state=self.state,
            splitting="streams" if self.split is None else self.split.mode,
            source=self.source.name,
            destination=self.destination.name,
            source_ip=self.source.ip,
            destination_ip=self.destination.ip,
            destination_port=self.destination_port,
            requested_bps=self.requested_bps,
            rate_bps=self.rate_bps,
            objective=self.objective,
            packet_bytes=self.framing.packet_bytes,
            streams=tuple(
                StreamView(
                    source_port=stream.source_port,
                    rate_bps=stream.rate_bps,
                    delay_s=stream.delay_s,
                    path=stream.path,
                )
                for stream in self.streams
            ),
            lease_s=self.lease_s,
            expires_in_s=max(0.0, self.expires_at - now),
            lost_links=lost_links,
            split=None if self.split is None else self._split_view(self.split),
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


class FlowTable:
    """All flows by id, and the TCP addresses they hold."""

    def __init__(self) -> None:
        self._flows: JournaledDict[str, Flow] = JournaledDict()
        self._holders: JournaledDict[TcpConnection, str] = JournaledDict()

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
        return frozenset(
            connection.source_port for connection in self._holders if connection.source_ip == source_ip
        )

    def free_tag(self, preferred: int) -> int | None:
        """Return a tag that no split flow has, the preferred one or the next; None if there is none."""
        used = {flow.split.tag for flow in self if flow.split is not None}
        tags = ((preferred + offset) % TAGS for offset in range(TAGS))
        return next((tag for tag in tags if tag not in used), None)

    def add(self, flow: Flow) -> None:
        """Take a flow in."""
        self._flows[flow.id] = flow
        for connection in flow.tcp_connections():
            self._holders[connection] = flow.id

    def remove(self, flow: Flow) -> None:
        """Let a flow go."""
        del self._flows[flow.id]
        for connection in flow.tcp_connections():
            del self._holders[connection]


def arc_loads(flows: Iterable[Flow], ack_ratio: float) -> dict[str, float]:
    """Return the wire rate (bit/s) that flows take of each arc, with that of the acknowledgements."""
    loads: dict[str, float] = {}
    for flow in flows:
        ack_path = None if flow.split is None else flow.split.ack_path
        for stream in flow.streams:
            wire_bps = flow.framing.wire_bps(stream.rate_bps, flow.connection_count)
            add_loads(loads, stream.path, wire_bps, ack_ratio, ack_path)
    return loads


def add_loads(
    loads: dict[str, float],
    path: tuple[str, ...],
    wire_bps: float,
    ack_ratio: float,
    ack_path: tuple[str, ...] | None,
) -> None:
    """Add to arcs' loads a wire rate on a path, with its ACKs on `ack_path` or on the reverse (None)."""
    for arc in arcs_of(path):
        loads[arc] = loads.get(arc, 0.0) + wire_bps
    for arc in arcs_of(ack_path or path[::-1]):
        loads[arc] = loads.get(arc, 0.0) + wire_bps * ack_ratio
