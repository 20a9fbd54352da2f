"""A server's transport, and its client as sockets that the test writes frames to by hand."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import mstcp
from mstcp import ConnectionTransport
from tests.fakes.raw_client import RawClient, read_answer, refusal_of

PAYLOAD_BYTES = 1440


class Raw:
    """A transport over loopback sockets whose peer is moved by hand.

    Attributes:
        theirs: The peer's sockets, by stream.
    """

    def __init__(self, stack: AsyncExitStack) -> None:
        self.theirs: list[socket.socket] = []
        self.transport: ConnectionTransport
        self._stack = stack
        self._client = RawClient(payload=PAYLOAD_BYTES)
        self._server: mstcp.Server
        self._offset = 0

    async def open(self, protocol: asyncio.Protocol, count: int = 2) -> None:
        """Open a connection of some streams to a protocol."""
        self._server = await self._stack.enter_async_context(
            await mstcp.create_server(lambda: protocol, "127.0.0.1", plain=False)
        )
        for _ in range(count):
            await self.join()
        (self.transport,) = self._server._reception.connections
        self._stack.callback(self.transport.abort)
        while self.transport.alive_streams < count:
            await asyncio.sleep(0.001)

    async def join(self) -> None:
        """Open another stream."""
        sock = self._stack.enter_context(socket.create_connection(self._server.sockets[0].getsockname()))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = len(self.theirs)
        self.theirs.append(sock)
        sock.sendall(self._client.hello(number))
        sock.setblocking(False)
        answer = await read_answer(_Exactly(sock))  # type: ignore[arg-type]
        assert refusal_of(answer) is None
        sock.sendall(self._client.confirm(answer, number))

    def send(self, stream: int, data: bytes) -> None:
        """Send a frame's bytes on a stream."""
        assert len(data) == PAYLOAD_BYTES
        self.theirs[stream].sendall(self._offset.to_bytes(8, "big") + data)
        self._offset += len(data)


class _Exactly:
    """Reads a socket as a StreamReader does."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def readexactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += await asyncio.get_running_loop().sock_recv(self._sock, count - len(data))
        return data
