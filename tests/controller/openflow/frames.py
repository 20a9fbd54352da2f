"""Raw Ethernet frames: made, sent and seen by AF_PACKET sockets, without any library. Needs root."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_ETH_TYPE_IPV4 = 0x0800
_SO_RCVBUFFORCE = 33
_ETH_P_ALL = 3
_PACKET_OUTGOING = 4
_TCP = 6


class Sighting(NamedTuple):
    """A TCP segment that came in by an interface."""

    interface: str
    source_mac: str
    source_port: int
    destination_port: int


def tcp_frame(
    source_mac: str, destination_mac: str, addresses: tuple[str, str], ports: tuple[int, int]
) -> bytes:
    """Return a frame with an empty TCP segment (ACK). Its TCP checksum is wrong, so that no host answers."""
    segment = struct.pack("!HHIIBBHHH", *ports, 1, 1, 5 << 4, 0x10, 1000, 0, 0)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, _TCP, 0)
    header += b"".join(map(socket.inet_aton, addresses))
    words = sum(struct.unpack("!10H", header))
    words = (words & 0xFFFF) + (words >> 16)
    header = header[:10] + struct.pack("!H", ~words & 0xFFFF) + header[12:]
    macs = bytes.fromhex((destination_mac + source_mac).replace(":", ""))
    return macs + struct.pack("!H", _ETH_TYPE_IPV4) + header + segment


class Watch:
    """Counts the TCP segments that come in by some interfaces."""

    def __init__(self) -> None:
        self.seen: Counter[Sighting] = Counter()

    def take_in(self, interface: str, frame: bytes) -> None:
        if frame[12:14] == b"\x08\x00" and frame[23] == _TCP:
            ports = struct.unpack("!HH", frame[34:38])
            self.seen[Sighting(interface, frame[6:12].hex(":"), *ports)] += 1


@contextmanager
def watching(interfaces: Iterable[str]) -> Iterator[Watch]:
    """Watch interfaces of this network namespace."""
    watch, stop = Watch(), threading.Event()
    selector = selectors.DefaultSelector()
    for name in interfaces:
        # One that is opened with a protocol hears all interfaces until it is bound.
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        # A reader that the machine holds up must not miss frames.
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 23)
        opened.bind((name, _ETH_P_ALL))
        opened.setblocking(False)
        selector.register(opened, selectors.EVENT_READ, name)

    def read() -> None:
        while not stop.is_set():
            for key, _ in selector.select(0.05):
                assert isinstance(key.fileobj, socket.socket)
                frame, address = key.fileobj.recvfrom(2048)
                if address[2] != _PACKET_OUTGOING:
                    watch.take_in(key.data, frame)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield watch
    finally:
        stop.set()
        thread.join()
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        selector.close()
