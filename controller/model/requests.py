"""What a client asks for, as the core takes it; `controller.api.schema` checks and documents it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

from topologies.model import IpVersion

MAX_STREAMS = 64
"""Streams of one flow, at most; bounds the rules that one request may install."""

Protocol = Literal["tcp", "udp"]
"""What a flow's packets are of, above IP."""

Splitting = Literal["streams", "packets", "group"]
"""How a flow uses several paths: a TCP connection for each, or one connection that a switch spreads."""


@dataclass(frozen=True)
class RequestedPath:
    """A path given by hand: host, switches, host, and the goodput (bit/s) on it."""

    nodes: tuple[str, ...]
    rate_bps: float


@dataclass(frozen=True, kw_only=True)
class FlowRequest:
    """A goodput (bit/s) from one host to another; the fields are documented in `controller.api.schema`."""

    source: str
    destination: str
    destination_port: int
    rate_bps: float | None = None
    source_ports: tuple[int, ...] | None = None
    protocol: Protocol = "tcp"
    packet_bytes: int = 1514
    segment_overhead_bytes: int | None = None  # those of the protocol, without options
    ip_version: IpVersion | None = None  # of the addresses that are given, or 4 rather than 6
    objective: str | None = None
    paths: tuple[RequestedPath, ...] = ()
    max_paths: int | None = None
    streams: int | None = None
    splitting: Splitting = "streams"
    ack_path: str | None = None
    lease_s: float | None = None
    repeated_as: tuple[str, str] | None = None  # key and digest: the same request again gets the same flow
    may_grow: bool = False  # its host opens and closes streams as it is told (`StreamsReported`)


class ViewName(Enum):
    """Parts of all that a client may look at."""

    FLOW = auto()
    HEALTH = auto()
    HOSTS = auto()
    LINKS = auto()
    LIVE = auto()
    RULES = auto()  # of one switch
    SIZES = auto()
    SWITCHES = auto()
    TOPOLOGY = auto()


@dataclass(frozen=True, kw_only=True)
class FlowQuery:
    """Which flows, in the order of their requests: those after a number that pass all filters given."""

    limit: int
    after: int = 0
    source: str | None = None
    destination: str | None = None
    owner: str | None = None
    state: str | None = None
    through: str | None = None  # a switch, or a link in either direction


@dataclass(frozen=True)
class LinkChange:
    """What is different about a link from now on; None leaves as it is."""

    rate_bps: float | None = None
    delay_s: float | None = None
    enabled: bool | None = None


@dataclass(frozen=True)
class Failure:
    """Links and switches that fail, by their names."""

    links: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scaling:
    """Demands that are multiplied: that of one flow, or of all (None)."""

    flow_id: str | None
    factor: float


@dataclass(frozen=True, kw_only=True)
class PreviewRequest:
    """What would happen if these links and switches failed, demands were other ones, and flows were added."""

    fail: Failure = Failure()
    scale: tuple[Scaling, ...] = ()
    add: tuple[FlowRequest, ...] = ()
