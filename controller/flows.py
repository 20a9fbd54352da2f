"""The flows that the controller carries, and what they take of the links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from controller.hosts import Host
from controller.live_network import arc_name
from controller.rules import FiveTuple, Rule, flow_cookie, merge_stages, pinned_path_stages
from controller.views import FlowView, StreamView
from controller.wire import Framing

__all__ = ["Flow", "FlowTable", "Stream", "arc_loads", "edges_of"]


def edges_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the arcs along a path of nodes."""
    return tuple(arc_name(a, b) for a, b in pairwise(path))


@dataclass
class Stream:
    """A TCP connection over one path. `rate_bps` is goodput and may change; the rest stays."""

    source_port: int
    path: tuple[str, ...]
    rate_bps: float
    delay_s: float


@dataclass
class Flow:
    """A flow, from its request to its end. `objective` is None where its paths were given by hand."""

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
    state: Literal["installing", "active"] = "installing"

    @property
    def cookie(self) -> int:
        """The cookie of all its rules."""
        return flow_cookie(self.number)

    @property
    def rate_bps(self) -> float:
        """Goodput granted."""
        return sum(stream.rate_bps for stream in self.streams)

    def segments(self) -> Iterator[FiveTuple]:
        """Yield the addresses of each stream, from the source to the destination."""
        for stream in self.streams:
            yield FiveTuple(self.source.ip, self.destination.ip, stream.source_port, self.destination_port)

    def stages(self, ports: Mapping[tuple[str, str], int]) -> list[dict[str, tuple[Rule, ...]]]:
        """Return the rules of all streams in the order of installation (`pinned_path_stages`)."""
        return merge_stages(
            pinned_path_stages(stream.path, segment, ports, self.cookie)
            for stream, segment in zip(self.streams, self.segments(), strict=True)
        )

    def switches(self) -> tuple[str, ...]:
        """Return the switches of all paths, each once, in the order in which a packet meets them."""
        return tuple(dict.fromkeys(switch for stream in self.streams for switch in stream.path[1:-1]))

    def view(self, now: float, lost_links: tuple[str, ...]) -> FlowView:
        """Return an immutable copy for clients."""
        return FlowView(
            flow_id=self.id,
            state=self.state,
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
        )


class FlowTable:
    """All flows by id, and the TCP addresses they hold."""

    def __init__(self) -> None:
        self._flows: dict[str, Flow] = {}
        self._segments: dict[FiveTuple, str] = {}

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

    def __len__(self) -> int:
        return len(self._flows)

    def get(self, flow_id: str) -> Flow | None:
        """Return a flow; None if there is no such flow."""
        return self._flows.get(flow_id)

    def holder(self, segment: FiveTuple) -> str | None:
        """Return the id of the flow that holds these addresses in either direction."""
        return self._segments.get(segment) or self._segments.get(segment.reverse)

    def ports_of(self, source_ip: str) -> frozenset[int]:
        """Return the source ports that flows from a host use."""
        return frozenset(segment.source_port for segment in self._segments if segment.source_ip == source_ip)

    def add(self, flow: Flow) -> None:
        """Take a flow in."""
        self._flows[flow.id] = flow
        for segment in flow.segments():
            self._segments[segment] = flow.id

    def remove(self, flow: Flow) -> None:
        """Let a flow go."""
        del self._flows[flow.id]
        for segment in flow.segments():
            del self._segments[segment]


def arc_loads(flows: Iterable[Flow], ack_ratio: float) -> dict[str, float]:
    """Return the wire rate (bit/s) that flows take of each arc, with the ACKs on the reverse paths."""
    loads: dict[str, float] = {}
    for flow in flows:
        for stream in flow.streams:
            wire_bps = flow.framing.wire_bps(stream.rate_bps, len(flow.streams))
            for a, b in pairwise(stream.path):
                loads[arc_name(a, b)] = loads.get(arc_name(a, b), 0.0) + wire_bps
                loads[arc_name(b, a)] = loads.get(arc_name(b, a), 0.0) + wire_bps * ack_ratio
    return loads
