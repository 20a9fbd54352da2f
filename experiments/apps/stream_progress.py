"""What TCP connections, or subflows of an MPTCP connection, have carried, and their windows, by the kernel.

An application's writes say what a send buffer took: faster than a path carries it, while the buffer fills.

Constants and layouts: <linux/mptcp.h>, <linux/tcp.h>.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

_SOL_MPTCP, _TCPINFO, _SUBFLOW_ADDRS = 284, 2, 3
_HEADER = struct.Struct("=IIII")  # its own size, subflows; of an entry the kernel's size and the one wanted
_MAX_SUBFLOWS = 16
_INFO_BYTES = 216
"""struct tcp_info up to the counters of Linux 4.19; a kernel with a longer one cuts it."""
_SEGMENT = struct.Struct("=16xI8xI36xI8xI36xQ")
"""tcpi_snd_mss, tcpi_sacked (without SACK the duplicate ACKs stand for it), tcpi_rtt, tcpi_snd_cwnd and
tcpi_bytes_acked."""
_ADDRESSES_BYTES = 256
_PORT_OFFSET = 2
"""In struct mptcp_subflow_addrs, which begins with the local address (a struct sockaddr_storage)."""

_libc = ctypes.CDLL(None, use_errno=True)


class StreamProgress(NamedTuple):
    """One connection or subflow; what is not known is 0.

    `arrived_bytes` is the payload that it has brought to its peer, each byte once; what arrived behind a loss
    counts in whole segments. `rtt_us` is the smoothed round-trip time.
    """

    arrived_bytes: int
    cwnd_bytes: int = 0
    rtt_us: int = 0


def by_stream(sockets: Iterable[socket.socket]) -> list[StreamProgress]:
    """Return what each TCP connection has carried; OSError where a socket is closed."""
    options = (sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES) for sock in sockets)
    return [_carried(info) for info in options]


def by_port(sock: socket.socket) -> dict[int, StreamProgress]:
    """Return the same of each subflow of an MPTCP connection, by the port it sends from.

    Empty while subflows come or go between the two questions to the kernel.

    Raises:
        OSError: the socket is no MPTCP socket, or the kernel is older than Linux 5.16.
    """
    ports = [
        struct.unpack_from("!H", entry, _PORT_OFFSET)[0]
        for entry in _entries(sock, _SUBFLOW_ADDRS, _ADDRESSES_BYTES)
    ]
    arrived = [_carried(entry) for entry in _entries(sock, _TCPINFO, _INFO_BYTES)]
    if len(ports) != len(arrived):
        return {}
    return dict(zip(ports, arrived, strict=True))


def _carried(info: bytes) -> StreamProgress:
    segment_bytes, sacked, rtt_us, cwnd_segments, acknowledged = _SEGMENT.unpack_from(info)
    # The kernel counts the SYN as a byte.
    arrived_bytes = max(0, acknowledged - 1) + sacked * segment_bytes
    return StreamProgress(arrived_bytes, cwnd_segments * segment_bytes, rtt_us)


def _entries(sock: socket.socket, option: int, size: int) -> list[bytes]:
    # Not by socket.getsockopt: the kernel reads the header before it writes.
    buffer = ctypes.create_string_buffer(
        _HEADER.pack(_HEADER.size, 0, 0, size), _HEADER.size + size * _MAX_SUBFLOWS
    )
    length = ctypes.c_uint(len(buffer))
    if _libc.getsockopt(sock.fileno(), _SOL_MPTCP, option, buffer, ctypes.byref(length)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    _, subflows, _, _ = _HEADER.unpack_from(buffer)
    return [
        buffer.raw[_HEADER.size + size * number : _HEADER.size + size * (number + 1)]
        for number in range(min(subflows, _MAX_SUBFLOWS))
    ]
