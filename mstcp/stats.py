"""What a connection and its streams do right now: TCP's figures beside ours, rates between two looks."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mstcp.streams import ConnectionCounters, StreamCounters, StreamInfo

# Places in struct tcp_info (linux/tcp.h); fields are only ever added at its end.
_U32 = {"rtt_us": 68, "rttvar_us": 72, "cwnd": 80, "retransmits": 100, "min_rtt_us": 148}
_DELIVERY_RATE = 160
_TCP_INFO_BYTES = 168


@dataclass(frozen=True)
class TcpInfo:
    """The kernel's figures of a stream (TCP_INFO); None where it has none.

    Attributes:
        rtt_us: Smoothed round-trip time in microseconds.
        rttvar_us: Its mean deviation.
        min_rtt_us: The least that was seen.
        cwnd: Congestion window in segments.
        retransmits: Segments sent again, since the beginning.
        delivery_rate_bps: What the path recently carried, in bit/s.
    """

    rtt_us: int | None = None
    rttvar_us: int | None = None
    min_rtt_us: int | None = None
    cwnd: int | None = None
    retransmits: int | None = None
    delivery_rate_bps: int | None = None


def parse_tcp_info(data: bytes) -> TcpInfo:
    """Return what a `struct tcp_info` says; older kernels' are shorter."""
    values: dict[str, int | None] = {}
    for name, place in _U32.items():
        values[name] = struct.unpack_from("=I", data, place)[0] if len(data) >= place + 4 else None
    if values["min_rtt_us"] == 0xFFFF_FFFF:  # none was seen yet
        values["min_rtt_us"] = None
    if len(data) >= _DELIVERY_RATE + 8:
        values["delivery_rate_bps"] = 8 * struct.unpack_from("=Q", data, _DELIVERY_RATE)[0]
    return TcpInfo(**values)


def tcp_info(sock: socket.socket) -> TcpInfo:
    """Return what the kernel knows of a socket; nothing of a closed one, and elsewhere than on Linux."""
    if sys.platform != "linux":
        return TcpInfo()
    try:
        return parse_tcp_info(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES))
    except OSError:
        return TcpInfo()


@dataclass(frozen=True)
class StreamStats:
    """One stream as it is now.

    Attributes:
        info: Port, path, allocated rate.
        is_alive: Whether it carries bytes.
        is_stalled: Whether it brings nothing through: others carry its frames.
        carried: What it has carried since the connection began.
        tcp: The kernel's figures.
        sent_bps: Rate of application bytes sent on it since the last call, in bit/s; None at the first.
        received_bps: Those received.
    """

    info: StreamInfo
    is_alive: bool
    is_stalled: bool
    carried: StreamCounters
    tcp: TcpInfo
    sent_bps: float | None
    received_bps: float | None


@dataclass(frozen=True)
class ConnectionStats:
    """A connection as it is now (`ConnectionTransport.stats`).

    Attributes:
        at_s: When, on the event loop's clock.
        streams: Each stream, in the order of their indices.
        total: Reorder depth, bytes queued, unacknowledged and sent again, over all streams.
        sent_bps: Rate of application bytes sent since the last call, in bit/s, resent ones included; None at
            the first.
        received_bps: Those received.
    """

    at_s: float
    streams: tuple[StreamStats, ...]
    total: ConnectionCounters
    sent_bps: float | None
    received_bps: float | None


class Meter:
    """Makes `ConnectionStats` of one look after the other."""

    def __init__(self) -> None:
        self._at_s = 0.0
        self._before: ConnectionCounters | None = None

    def look(
        self,
        now_s: float,
        total: ConnectionCounters,
        infos: Sequence[StreamInfo],
        tcp: Sequence[TcpInfo],
        alive: int,
        stalled: int,
    ) -> ConnectionStats:
        """Return the state at `now_s`; `alive` and `stalled` have a bit for each stream."""
        elapsed_s = now_s - self._at_s if self._before is not None else 0.0
        before = {} if self._before is None else dict(enumerate(self._before.streams))
        self._at_s, self._before = now_s, total

        def rate(now: int, then: int) -> float | None:
            return (now - then) * 8 / elapsed_s if elapsed_s > 0 else None

        streams = []
        for index, (info, carried) in enumerate(zip(infos, total.streams, strict=True)):
            then = before.get(index)
            streams.append(
                StreamStats(
                    info,
                    bool(alive >> index & 1),
                    bool(stalled >> index & 1),
                    carried,
                    tcp[index],
                    rate(carried.bytes_sent, then.bytes_sent if then else 0),
                    rate(carried.bytes_received, then.bytes_received if then else 0),
                )
            )
        sent = [stream.sent_bps for stream in streams]
        received = [stream.received_bps for stream in streams]
        return ConnectionStats(
            now_s,
            tuple(streams),
            total,
            None if None in sent else sum(value or 0.0 for value in sent),
            None if None in received else sum(value or 0.0 for value in received),
        )
