"""The few socket options and system calls that MSTCP needs beyond `socket`. Only Linux has them all."""

from __future__ import annotations

import contextlib
import ctypes
import math
import socket
import struct
import sys
from pathlib import Path

from mstcp import _core
from mstcp.errors import LocalProtocolError

LINUX = sys.platform == "linux"

_ETHERNET_TCP_HEADERS = {socket.AF_INET: 14 + 20 + 20, socket.AF_INET6: 14 + 40 + 20}
_TIMESTAMP_OPTION_BYTES = 12
_IP_TRANSPARENT, _IPV6_TRANSPARENT = 19, 75
_ATTACH_REUSEPORT_PROGRAM = 51
_LOAD_WORD, _MULTIPLY, _SHIFT_RIGHT, _MODULO, _RETURN = 0x20, 0x24, 0x74, 0x94, 0x16
_FROM_IP_HEADER = 0xFFF0_0000
"""SO_ATTACH_REUSEPORT_CBPF, what its programs are made of (linux/bpf_common.h), and SKF_NET_OFF."""
_LISTEN = "0A"
"""TCP_LISTEN, as the kernel's table has it."""
_ORIGINAL_DESTINATION = 80
"""SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of the kernel's netfilter."""


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
        _bind(sock, address or "", port)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, address: str, port: int) -> None:
    try:
        sock.bind((address, port))
    except OSError as error:
        where = " ".join([f"address {address}"] * bool(address) + [f"port {port}"] * bool(port))
        raise type(error)(error.errno, f"cannot connect from {where}: {error.strerror}") from None


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


def segment_overhead_bytes(family: socket.AddressFamily) -> int:
    """Return Ethernet, IP and TCP header bytes of a data segment as this host sends them (no checksum)."""
    # Asked in Rust: a file that Python reads in an event loop is a mistake to tools that look for those.
    return _ETHERNET_TCP_HEADERS[family] + (_TIMESTAMP_OPTION_BYTES if _core.sends_timestamps() else 0)


def set_keepalive(sock: socket.socket, idle_s: float | None, probes: int) -> None:
    """Set TCP keepalive after `idle_s` (whole seconds) and the number of probes; None switches it off."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, idle_s is not None)
    if idle_s is not None and LINUX:
        seconds = max(1, math.ceil(idle_s))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes)


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


def steer_by_source(sock: socket.socket) -> None:
    """Have the streams from one address reach the same of the sockets that listen on a port (SO_REUSEPORT).

    The kernel would choose by the ports too. It asks the program that was set last, which counts the sockets
    that listen now; those of a process that ends are chosen for until another begins to listen.
    """
    if not LINUX:
        return
    is_ipv4 = sock.family == socket.AF_INET
    source = 12 if is_ipv4 else 20  # the last bytes of IPv6's
    steps = [
        (_LOAD_WORD, _FROM_IP_HEADER + source),
        (_MULTIPLY, 0x9E3779B1),  # neighbours differ in their last bits
        (_SHIFT_RIGHT, 16),
        (_MODULO, max(1, _listeners(sock))),
        (_RETURN, 0),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", step, 0, 0, k) for step, k in steps))
    given = struct.pack("@HP", len(steps), ctypes.addressof(program))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_REUSEPORT_PROGRAM, given)


def _listeners(sock: socket.socket) -> int:
    """Return how many sockets of this host listen where a socket does."""
    table = Path("/proc/net/tcp" if sock.family == socket.AF_INET else "/proc/net/tcp6")
    entries = [line.split()[1:4] for line in table.read_text().splitlines()[1:]]
    packed = socket.inet_pton(sock.family, sock.getsockname()[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    own = f"{''.join(f'{word:08X}' for word in words)}:{sock.getsockname()[1]:04X}"
    return sum(local == own and state == _LISTEN for local, _, state in entries)


def set_transparent(sock: socket.socket) -> None:
    """Let a socket accept connections to any address, as TPROXY of nftables leads them to it, if we may."""
    with contextlib.suppress(PermissionError):
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)


def original_destination(sock: socket.socket) -> tuple[str, int]:
    """Return the address and port that an accepted connection went to before nftables redirected it.

    Raises:
        OSError: The connection has ended.
    """
    is_ipv4 = sock.family == socket.AF_INET
    level, size = (socket.IPPROTO_IP, 16) if is_ipv4 else (socket.IPPROTO_IPV6, 28)
    try:
        raw = sock.getsockopt(level, _ORIGINAL_DESTINATION, size)
    except OSError:  # TPROXY leaves it as it was, and the kernel need not follow connections
        address, port = sock.getsockname()[:2]
        return address, port
    address = socket.inet_ntop(sock.family, raw[4:8] if is_ipv4 else raw[8:24])
    return address, int.from_bytes(raw[2:4], "big")
