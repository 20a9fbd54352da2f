"""What streams are: as asked for, as they are, and what they carried."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from mstcp import _core
from mstcp.checks import MAX_BPS, MAX_PORT, MAX_S, check_list, check_number, check_whole
from mstcp.errors import LocalProtocolError


@dataclass(frozen=True)
class StreamSpec:
    """One stream to open, by hand or as the controller allocated it.

    Attributes:
        source_port: TCP port on our side; 0 lets the system choose.
        rate_bps: Goodput in bit/s: the stream's weight in the draw and its pacing. None on all streams: equal
            weights, no pacing.
        delay_s: One-way propagation delay of the path in seconds, if known.
        path: Names of the nodes that the stream passes, if known.
        priority: 0 to 255: the streams of the lowest value that work carry everything, in both directions;
            others are their backup.
        local: Our address; None: that of the connection.
        remote: Address and port of the peer; None: those of the connection.
    """

    source_port: int = 0
    rate_bps: float | None = None
    delay_s: float | None = None
    path: tuple[str, ...] | None = None
    priority: int = 0
    local: str | None = None
    remote: tuple[str, int] | None = None


@dataclass(frozen=True)
class StreamInfo:
    """One stream of an open connection (`get_extra_info("streams")`).

    Attributes:
        index: Its place in the connection, from 0.
        source_port: TCP port of the side that connected.
        rate_bps: Goodput allocated to it in bit/s; None if it is not limited.
        delay_s: One-way propagation delay of its path in seconds; None if unknown.
        path: Names of the nodes it passes; None if unknown.
        congestion_control: Read back from the kernel; None where it doesn't say.
    """

    index: int
    source_port: int
    rate_bps: float | None
    delay_s: float | None
    path: tuple[str, ...] | None
    congestion_control: str | None


@dataclass(frozen=True)
class StreamCounters:
    """What one stream has carried. Bytes are the application's; frames are None on a plain TCP connection.

    `resent_bytes` are those of `bytes_sent` that another stream had carried before; `stalls` is how often the
    stream was found to bring nothing through for a second.
    """

    frames_sent: int | None
    bytes_sent: int
    frames_received: int | None
    bytes_received: int
    out_of_order_frames: int | None
    resent_bytes: int
    stalls: int = 0


@dataclass(frozen=True)
class ConnectionCounters:
    """What a connection has carried so far.

    Attributes:
        streams: Each stream's part.
        out_of_order_frames: Frames received before an earlier one; None on plain TCP, where it can't be seen.
        reorder_bytes: Application bytes in the reorder buffer now; None on plain TCP.
        reorder_max_bytes: The most that ever were there; None on plain TCP.
        queued_bytes: Application bytes written that no socket has taken yet.
        unacknowledged_bytes: Application bytes sent that the peer has not acknowledged; None on plain TCP.
        duplicate_bytes: Application bytes that came more than once; None on plain TCP.
    """

    streams: tuple[StreamCounters, ...]
    out_of_order_frames: int | None
    reorder_bytes: int | None
    reorder_max_bytes: int | None
    queued_bytes: int
    unacknowledged_bytes: int | None = None
    duplicate_bytes: int | None = None

    @property
    def bytes_sent(self) -> int:
        """Application bytes sent over all streams, those sent again included."""
        return sum(stream.bytes_sent for stream in self.streams)

    @property
    def resent_bytes(self) -> int:
        """Those of them that another stream had carried before."""
        return sum(stream.resent_bytes for stream in self.streams)

    @property
    def bytes_received(self) -> int:
        """Application bytes received over all streams, those that wait in the reorder buffer included."""
        return sum(stream.bytes_received for stream in self.streams)

    @property
    def frames_received(self) -> int | None:
        """Frames received over all streams; None on plain TCP."""
        frames = [stream.frames_received for stream in self.streams]
        return None if None in frames else sum(frame or 0 for frame in frames)


def check_specs(specs: Sequence[StreamSpec]) -> None:
    """Check streams given by hand.

    Raises:
        LocalProtocolError: Too few or too many, a port twice or out of range, a rate that is none, or rates
            on some.
    """
    if not 1 <= len(specs) <= _core.MAX_STREAMS:
        raise LocalProtocolError(f"a connection has 1 to {_core.MAX_STREAMS} streams, not {len(specs)}")
    for spec in specs:
        _check_spec(spec)
    ports = [(spec.local, spec.source_port) for spec in specs if spec.source_port]
    if len(set(ports)) < len(ports):
        raise LocalProtocolError(
            f"source ports of streams must differ, or be 0: {[port for _, port in ports]}"
        )
    rates = [spec.rate_bps for spec in specs]
    if all(rate is None for rate in rates):
        return
    if any(rate is None for rate in rates) or not any(rates):
        raise LocalProtocolError(f"rate_bps must be given for all streams or none, and not all 0: {rates}")


def _check_spec(spec: StreamSpec) -> None:
    if not isinstance(spec, StreamSpec):
        raise LocalProtocolError(f"streams are StreamSpecs, not {spec!r}")
    check_whole("source_port", spec.source_port, 0, MAX_PORT)
    check_whole("priority", spec.priority, 0, _core.MAX_PRIORITY)
    check_number("rate_bps", spec.rate_bps, MAX_BPS, "in bit/s", optional=True)
    check_number("delay_s", spec.delay_s, MAX_S, "in seconds", optional=True)
    if spec.path is not None:
        check_list("path", spec.path, str)
    for name, address in (("local", spec.local), ("remote", spec.remote and spec.remote[0])):
        if address is not None and not _is_address(address):
            raise LocalProtocolError(f"{name} of a stream is an IP address, not {address!r}")
    if spec.remote is not None:
        check_whole("port of remote", spec.remote[1], 1, MAX_PORT)


def _is_address(text: object) -> bool:
    try:
        ipaddress.ip_address(str(text).partition("%")[0])
    except ValueError:
        return False
    return isinstance(text, str)
