"""What a client asks for, as the core takes it; `controller.api.schema` checks and documents it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MAX_STREAMS", "FlowRequest", "RequestedPath", "Splitting"]

MAX_STREAMS = 64
"""Streams of one flow, at most; bounds the rules that one request may install."""

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
    packet_bytes: int = 1514
    segment_overhead_bytes: int = 54
    objective: str | None = None
    paths: tuple[RequestedPath, ...] = ()
    max_paths: int | None = None
    streams: int | None = None
    splitting: Splitting = "streams"
    ack_path: str | None = None
    lease_s: float | None = None
