"""The few socket options and system calls that MSTCP needs beyond `socket`. Only Linux has them all."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import sys
from pathlib import Path

from mstcp.errors import LocalProtocolError

if sys.platform == "linux":
    import fcntl

LINUX = sys.platform == "linux"

# Not in Python's socket module (asm-generic/socket.h, linux/tcp.h, linux/sockios.h).
_SO_MAX_PACING_RATE = 47
_TCP_NOTSENT_LOWAT = 25
_SIOCOUTQ = 0x5411
_SIOCOUTQNSD = 0x894B

_NO_PACING = 0xFFFF_FFFF_FFFF_FFFF

PACING_SLACK = 1.01
"""Streams are paced 1 % above their allocation, so that a host that was held up can catch up.

Where the allocations fill a link to the last bit, what exceeds them waits in the link's queue and not in the
host; the application's own rate keeps it small.
"""

_NOTSENT_SECONDS = 0.010
_NOTSENT_MAX_BYTES = 1 << 18
_ETHERNET_TCP_HEADERS = {socket.AF_INET: 14 + 20 + 20, socket.AF_INET6: 14 + 40 + 20}
_TIMESTAMP_OPTION_BYTES = 12


def bind_stream(
    family: socket.AddressFamily,
    address: str | None,
    port: int,
    *,
    congestion_control: str | None = None,
    receive_buffer_bytes: int | None = None,
) -> socket.socket:
    """Return a non-blocking TCP socket bound to `address` and `port` (0: the system chooses), options set.

    Raises:
        LocalProtocolError: The kernel does not allow `congestion_control`.
        OSError: The address is not this host's, or the port is taken.
    """
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        if port:
            # A port named by the caller may still be in TIME-WAIT from the run before.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        set_options(sock, congestion_control, receive_buffer_bytes)
        sock.bind((address or "", port))
    except BaseException:
        sock.close()
        raise
    return sock


def set_options(
    sock: socket.socket, congestion_control: str | None, receive_buffer_bytes: int | None
) -> None:
    """Set what must be set before the handshake; an accepted socket has it from its listener."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    if congestion_control is not None:
        if not LINUX:
            raise LocalProtocolError("congestion control can be chosen on Linux only")
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        except OSError as error:
            raise LocalProtocolError(
                f"the kernel does not allow congestion control {congestion_control!r} ({error.strerror}); "
                "see net.ipv4.tcp_allowed_congestion_control"
            ) from error


def congestion_control(sock: socket.socket) -> str | None:
    """Return the congestion control that the kernel uses for the socket; None where it doesn't say."""
    if not LINUX:
        return None
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()


def maximum_segment_bytes(sock: socket.socket) -> int:
    """Return the payload of a full TCP segment of a connected socket, options taken off."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def segment_overhead_bytes(family: socket.AddressFamily) -> int:
    """Return Ethernet, IP and TCP header bytes of a data segment as this host sends them (no checksum)."""
    timestamps = True
    with contextlib.suppress(OSError):
        timestamps = Path("/proc/sys/net/ipv4/tcp_timestamps").read_text().strip() != "0"
    return _ETHERNET_TCP_HEADERS[family] + (_TIMESTAMP_OPTION_BYTES if timestamps else 0)


def set_pacing(
    sock: socket.socket, rate_bps: float | None, frame_payload_bytes: int, header_bytes: int
) -> int | None:
    """Pace a stream at its goodput `rate_bps`; None lifts the limit. Does nothing elsewhere than on Linux.

    The kernel counts TCP payload, so the frame header is added to the goodput, and `PACING_SLACK` to the sum.
    TCP_NOTSENT_LOWAT is set to about 10 ms of the rate (at least four frames), so that scheduling stays late:
    the kernel calls the socket writable when less than half of that is unsent.

    Without a rate, SO_MAX_PACING_RATE is set only to lift an earlier one: kernel MPTCP refuses the option.

    Returns:
        The most bytes that should wait unsent in the kernel; None: no limit.
    """
    if not LINUX:
        return None
    pacing, unsent = _NO_PACING, None
    if rate_bps is not None:
        wire = rate_bps / 8 * (frame_payload_bytes + header_bytes) / frame_payload_bytes
        pacing = max(1, int(wire * PACING_SLACK))
        least = 4 * (frame_payload_bytes + header_bytes)
        unsent = min(max(int(wire * _NOTSENT_SECONDS), least), _NOTSENT_MAX_BYTES)
    if struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, 8)) != (pacing,):
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=Q", pacing))
    try:
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, unsent or _NOTSENT_MAX_BYTES)
    except OSError:
        # Kernel MPTCP has it from Linux 6.9 on; without a rate nothing depends on it.
        if unsent is not None:
            raise
    return unsent


def set_user_timeout(sock: socket.socket, seconds: float) -> None:
    """Let TCP give up when nothing it sent is acknowledged for so long (TCP_USER_TIMEOUT, RFC 5482)."""
    if LINUX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(seconds * 1e3))


def set_keepalive(sock: socket.socket, idle_s: float | None, probes: int) -> None:
    """Have the kernel ask an idle peer for a sign of life (whole seconds); None: no more."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, idle_s is not None)
    if idle_s is not None and LINUX:
        seconds = max(1, math.ceil(idle_s))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes)


def unsent_bytes(sock: socket.socket) -> int:
    """Return how many bytes of the socket TCP has not sent yet; 0 where the system doesn't say."""
    return _socket_count(sock, _SIOCOUTQNSD)


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Return how many bytes of the socket are not acknowledged yet; 0 where the system doesn't say."""
    return _socket_count(sock, _SIOCOUTQ)


def _socket_count(sock: socket.socket, request: int) -> int:
    if sys.platform != "linux":
        return 0
    return int(struct.unpack("=i", fcntl.ioctl(sock.fileno(), request, b"\0\0\0\0"))[0])


def reset(sock: socket.socket) -> None:
    """Close a socket so that the peer sees an error instead of an end."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def local_address(family: socket.AddressFamily, destination: tuple[object, ...]) -> str:
    """Return the address that the system uses towards a destination. Sends nothing."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(destination)
        return str(probe.getsockname()[0])
