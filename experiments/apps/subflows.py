"""What each subflow of an MPTCP connection has sent, as the kernel counts it.

Constants and layouts: <linux/mptcp.h>, <linux/tcp.h>.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct

_SOL_MPTCP, _TCPINFO, _SUBFLOW_ADDRS = 284, 2, 3
_HEADER = struct.Struct("=IIII")  # its own size, subflows; of an entry the kernel's size and the one wanted
_MOST_SUBFLOWS = 16
_INFO_BYTES = 216
"""struct tcp_info up to the counters of Linux 4.19; a kernel with a longer one cuts it."""
_SENT = struct.Struct("=QQ")
_SENT_OFFSET = 200
"""tcpi_bytes_sent, which counts what is sent again as well, and tcpi_bytes_retrans."""
_ADDRESSES_BYTES = 256
_PORT_OFFSET = 2
"""In struct mptcp_subflow_addrs, which begins with the local address (a struct sockaddr_storage)."""

_libc = ctypes.CDLL(None, use_errno=True)


def bytes_by_port(sock: socket.socket) -> dict[int, int]:
    """Return the payload bytes that each subflow has sent, each byte once, by the port it sends from.

    Empty while subflows come or go between the two questions to the kernel.

    Raises:
        OSError: the socket is no MPTCP socket, or the kernel is older than Linux 5.16.
    """
    ports = [
        struct.unpack_from("!H", entry, _PORT_OFFSET)[0]
        for entry in _entries(sock, _SUBFLOW_ADDRS, _ADDRESSES_BYTES)
    ]
    counts = [_SENT.unpack_from(entry, _SENT_OFFSET) for entry in _entries(sock, _TCPINFO, _INFO_BYTES)]
    if len(ports) != len(counts):
        return {}
    return {port: sent - again for port, (sent, again) in zip(ports, counts, strict=True)}


def _entries(sock: socket.socket, option: int, size: int) -> list[bytes]:
    # Not by socket.getsockopt: the kernel reads the header before it writes.
    buffer = ctypes.create_string_buffer(
        _HEADER.pack(_HEADER.size, 0, 0, size), _HEADER.size + size * _MOST_SUBFLOWS
    )
    length = ctypes.c_uint(len(buffer))
    if _libc.getsockopt(sock.fileno(), _SOL_MPTCP, option, buffer, ctypes.byref(length)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    _, subflows, _, _ = _HEADER.unpack_from(buffer)
    return [
        buffer.raw[_HEADER.size + size * number : _HEADER.size + size * (number + 1)]
        for number in range(min(subflows, _MOST_SUBFLOWS))
    ]
