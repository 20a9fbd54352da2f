"""A transport of two streams over real sockets, and its peer as a core that the test drives by hand."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from mstcp import ConnectionTransport, StreamSpec, _core
from mstcp.open_stream import OpenStream
from mstcp.transport import Setup
from tests.fakes.tcp_pair import connected

PAYLOAD_BYTES = 1440


class Raw:
    """A transport over loopback sockets whose peer is a bare core that the test moves by hand."""

    def __init__(self, protocol: asyncio.BaseProtocol, **options: Any) -> None:
        ours, theirs = zip(*(self._pair() for _ in range(2)), strict=True)
        self.theirs = theirs
        self.peer = self._core()
        self.numbers = [self.peer.attach(at, sock.fileno(), None) for at, sock in enumerate(theirs)]
        self.told: list[_core.Action] = []
        streams = [OpenStream(sock, StreamSpec()) for sock in ours]
        loop = asyncio.get_running_loop()
        self.core = self._core()
        self.transport = ConnectionTransport(Setup(loop, protocol, self.core, streams, **options))

    @staticmethod
    def _core() -> _core.Connection:
        return _core.Connection(
            [1.0, 1.0],
            PAYLOAD_BYTES,
            scheduler="weighted",
            seed=1,
            send_queue_bytes=1 << 20,
            reorder_buffer_bytes=1 << 20,
        )

    @staticmethod
    def _pair() -> tuple[socket.socket, socket.socket]:
        first, second = connected()
        for sock in (first, second):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return first, second

    def send(self, data: bytes) -> list[int]:
        """Send from the peer; return the streams of the frames in order."""
        self.peer.write(data)
        used = []
        while (offer := self.peer.poll(0)) is not None:
            stream, size = offer
            assert self.theirs[stream].send(self.peer.offered(stream)) == size
            self.peer.sent(stream, size)
            if size >= PAYLOAD_BYTES:
                used.append(stream)
        return used

    def is_told(self) -> bool:
        """Read what came to the peer; return whether the connection was given up."""
        for number in self.numbers:
            self.peer.readable(0, number, False)
        self.told += self.peer.actions()
        return "ended" in [action.kind for action in self.told]

    def close(self) -> None:
        self.transport.abort()
        for sock in self.theirs:
            sock.close()
