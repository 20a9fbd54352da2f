"""What a client asks for: REST and gRPC check it by these fields and document it with their texts.

What only the network can tell (unknown host, port in use, nothing free) is checked by
`controller.decide.admission`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from controller.model.api_field import api_field
from topologies.model import IpVersion

MAX_STREAMS = 64
"""Streams of one flow, at most; bounds the rules that one request may install."""

Protocol = Literal["tcp", "udp"]
"""What a flow's packets are of, above IP."""

Splitting = Literal["streams", "packets", "group"]
"""How a flow uses several paths: a TCP connection for each, or one connection that a switch spreads."""


def _shortest(name: str) -> str:
    """Write an IPv6 address in its shortest form, by which hosts are known."""
    if ":" not in name:
        return name
    try:
        return str(ipaddress.IPv6Address(name))
    except ValueError:
        return name


def _distinct(ports: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(ports)) < len(ports):
        raise ValueError("the same port is given twice; each stream needs one of its own")
    return ports


# Strict: a rate of "5" or a port of true is a mistake to point out, not to guess about.
_Rate = Annotated[float, Field(gt=0, le=1e13, allow_inf_nan=False, strict=True)]
_Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
_Ports = Annotated[
    tuple[_Port, ...],
    Field(min_length=1, max_length=MAX_STREAMS, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]
_StreamCount = Annotated[int, Field(ge=1, le=MAX_STREAMS, strict=True)]
_HostName = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_shortest)]
_NodeName = Annotated[str, Field(min_length=1, max_length=64)]
_LinkName = Annotated[str, Field(min_length=3, max_length=80, pattern=r"^[^\s/]+-[^\s/]+$")]


class _Request:
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class RequestedPath(_Request):
    """A path given by hand."""

    nodes: tuple[_NodeName, ...] = api_field(
        "Host, switches, host.", min_length=3, max_length=256, examples=[["T0", "S0", "S4", "T2"]]
    )
    rate_bps: _Rate = api_field("Goodput on this path, bit/s.", examples=[4.25e6])


@dataclass(frozen=True, kw_only=True)
class FlowRequest(_Request):
    """Ask for a goodput from one host to another."""

    source: _HostName = api_field("Name or IP address of the sending host.", examples=["T0", "fd00::1"])
    destination: _HostName = api_field("Name or IP address of the receiving host.", examples=["T2"])
    ip_version: IpVersion | None = api_field(
        "Version of IP of the flow's packets. Left out: that of an address given as source or destination; "
        "where both are names, 4 if they have such addresses.",
        None,
    )
    destination_port: _Port = api_field("Port on which the destination listens.", examples=[5001])
    protocol: Protocol = api_field("What the packets are of; a flow of UDP is for QUIC and its like.", "tcp")
    rate_bps: _Rate | None = api_field(
        "Goodput asked for, bit/s (application bytes). Optional where paths are given by hand.",
        None,
        examples=[8.5e6],
    )
    source_ports: _Ports | None = api_field(
        "Ports that the source has bound, one for each stream at least; the flow uses the first ones. Left "
        "out: the controller picks unused ones from 61000 on.",
        None,
    )
    packet_bytes: int = api_field(
        "Ethernet frame of a full segment, without checksum.",
        1514,
        ge=64,
        le=9018,
        strict=True,
        examples=[590],
    )
    segment_overhead_bytes: int | None = api_field(
        "Ethernet, IP and TCP or UDP headers and options in that frame (66 with TCP timestamps). Left out: "
        "54 of TCP, 42 of UDP, and 20 more over IPv6.",
        None,
        ge=42,
        le=154,
        strict=True,
    )
    objective: str | None = api_field(
        "How the rates are chosen; left out: the controller's default.",
        None,
        max_length=64,
        examples=["max_throughput_min_delay"],
    )
    paths: tuple[RequestedPath, ...] = api_field(
        "Paths and rates given by hand instead of computed.", (), max_length=MAX_STREAMS
    )
    max_paths: _StreamCount | None = api_field("Use no more paths than this.", None, examples=[2])
    streams: _StreamCount | None = api_field(
        "Use exactly this number of paths, one stream each, even where fewer carry the rate.", None
    )
    splitting: Splitting = api_field(
        "streams: one TCP connection for each path. packets: one connection whose packets a splitter in "
        "front of the ingress switch spreads over the paths. group: one connection that a select group of "
        "the ingress switch splits.",
        "streams",
    )
    ack_path: str | None = api_field(
        "Where the acknowledgements of a split flow go: `shortest` (the default), or `reverse:<index>`, back "
        "along one of its paths.",
        None,
        pattern=r"^(shortest|reverse:(0|[1-9][0-9]?))$",
        examples=["shortest", "reverse:0"],
    )
    lease_s: float | None = api_field(
        "Seconds after which the flow ends unless renewed; left out: the controller's lease.",
        None,
        gt=0,
        le=86400,
        strict=True,
    )
    may_grow: bool = api_field(
        "In a session (gRPC) alone: the host opens and closes streams as it is told.", False, strict=True
    )


@dataclass(frozen=True, kw_only=True)
class RateChange(_Request):
    """Ask for another rate of a running flow."""

    rate_bps: _Rate = api_field("Goodput asked for, bit/s.", examples=[4.0e6])


@dataclass(frozen=True)
class LinkChange(_Request):
    """Change a link; fields that are left out stay as they are."""

    rate_bps: float | None = api_field(
        "Wire rate of each direction, bit/s.",
        None,
        gt=0,
        le=1e15,
        allow_inf_nan=False,
        strict=True,
        examples=[5e6],
    )
    delay_s: float | None = api_field(
        "Propagation delay of each direction.",
        None,
        ge=0,
        le=10,
        allow_inf_nan=False,
        strict=True,
        examples=[0.001],
    )
    enabled: bool | None = api_field("False: it may not be used; its flows are moved.", None, strict=True)


@dataclass(frozen=True, kw_only=True)
class FailedElements(_Request):
    """Links and switches that fail."""

    links: tuple[_LinkName, ...] = api_field(
        "Named in either direction.", (), max_length=1024, examples=[["S2-S3"]]
    )
    switches: tuple[_NodeName, ...] = api_field("", (), max_length=1024, examples=[["S2"]])


@dataclass(frozen=True, kw_only=True)
class ScaledDemands(_Request):
    """Demands that are multiplied; flows keep their paths."""

    flow_id: str | None = api_field(
        "Left out: all flows whose rates were not given by hand.", None, min_length=1, max_length=64
    )
    factor: float = api_field("", gt=0, le=1e6, allow_inf_nan=False, strict=True, examples=[2.0])


@dataclass(frozen=True, kw_only=True)
class PreviewRequest(_Request):
    """What would happen if: these links and switches failed, then demands grew, then flows were requested."""

    fail: FailedElements = FailedElements()
    scale: tuple[ScaledDemands, ...] = api_field("", (), max_length=1024)
    add: tuple[FlowRequest, ...] = api_field("Each finds those before it granted.", (), max_length=64)


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
