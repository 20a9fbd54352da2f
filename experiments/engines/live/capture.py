"""Captures of links in pcapng: every packet at a switch's port, in both directions, with its time.

PCAP Next Generation (draft-ietf-opsawg-pcapng): a section, an interface, and a block for each packet.
"""

from __future__ import annotations

import heapq
import socket
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from topologies.interface_names import InterfaceNames
from topologies.model import Network

_ALL_PROTOCOLS = 3
_SO_TIMESTAMPNS = 35
_OUTGOING = 4
_ETHERNET = 1
_BUFFER_BYTES = 16 << 20
_MAX_BYTES = 65_536
_WAIT_S = 0.1
_REORDER_WAIT_NS = round(_WAIT_S * 1e9)
"""A packet waits this long for earlier ones, since processors hand packets over in an order of their own."""
_TIMESPEC = struct.Struct("=qq")
_INBOUND, _OUTBOUND = 1, 2


class Captures:
    """Captures some links of a running network until it is left; LINK.pcapng is in the run's folder."""

    def __init__(self, network: Network, links: Sequence[str], folder: Path) -> None:
        names = InterfaceNames(network)
        self._ended = threading.Event()
        self._threads = []
        for name in links:
            link = network.link(name)
            arc = next(
                arc for arc in network.arcs() if arc.link == link.name and arc.tail not in network.hosts
            )
            sock = _listen(names.port(arc.tail, arc.tail_port))
            file = (folder / f"{link.name}.pcapng").open("wb")
            file.write(section() + interface(f"{arc.tail} to {arc.head}"))
            self._threads.append(threading.Thread(target=self._follow, args=(sock, file), daemon=True))

    def __enter__(self) -> Captures:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, sock: socket.socket, file: BinaryIO) -> None:
        held: list[tuple[int, bytes]] = []
        with sock, file:
            while not self._ended.is_set():
                try:
                    data, extra, _, address = sock.recvmsg(_MAX_BYTES, 64)
                except TimeoutError:
                    continue
                seconds, nanoseconds = _TIMESPEC.unpack_from(extra[0][2])
                time_ns = seconds * 1_000_000_000 + nanoseconds
                heapq.heappush(held, (time_ns, packet(data, time_ns, is_outgoing=address[2] == _OUTGOING)))
                while held[0][0] < time_ns - _REORDER_WAIT_NS:
                    file.write(heapq.heappop(held)[1])
            file.writelines(block for _, block in sorted(held))


def _listen(interface_name: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    sock.bind((interface_name, _ALL_PROTOCOLS))
    sock.settimeout(_WAIT_S)
    return sock


def section() -> bytes:
    """Return the block that a file begins with."""
    return _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(name: str) -> bytes:
    """Return the block of an Ethernet interface whose times are nanoseconds."""
    options = _option(2, name.encode()) + _option(9, bytes([9])) + _option(0, b"")
    return _block(1, struct.pack("<HHI", _ETHERNET, 0, 0) + options)


def packet(data: bytes, time_ns: int, *, is_outgoing: bool) -> bytes:
    """Return the block of a packet of the first interface."""
    head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data))
    flags = struct.pack("<I", _OUTBOUND if is_outgoing else _INBOUND)
    return _block(6, head + _padded(data) + _option(2, flags) + _option(0, b""))


def _block(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
