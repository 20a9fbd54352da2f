"""Opening streams of a connection: connect, say hello, wait for the answer; and again when one is lost."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mstcp import sockets
from mstcp.errors import MstcpError, RemoteProtocolError
from mstcp.hello import KEY_BYTES, Hello, NoHello, proof_key, read_answer
from mstcp.open_stream import OpenStream
from mstcp.streams import StreamSpec
from mstcp.tls import TlsSettings, TlsStream
from mstcp.transport import ConnectionTransport

LOGGER = logging.getLogger("mstcp")

_RETRY_S = (0.1, 2.0)


class Opener:
    """What a client needs to open the streams of one connection.

    Args:
        loop: The event loop.
        destination: Socket address of the peer.
        bind: Makes a socket bound to a source port.
        stream_count: How many streams the connection is meant to have.
        secret: What both sides know beforehand, if anything.
        tls: What TLS on each stream needs, if it is wanted.
        connect_s: How long connecting a stream may take.
        handshake_s: How long TLS, and the answer to the hello, may take.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        destination: Any,
        bind: Callable[[int], socket.socket],
        stream_count: int,
        secret: bytes | None,
        tls: TlsSettings | None = None,
        *,
        connect_s: float = 10.0,
        handshake_s: float = 10.0,
    ) -> None:
        self._connect_s = connect_s
        self._handshake_s = handshake_s
        self._tls = tls
        self.connection_id = secrets.token_bytes(16)
        self.frame_payload_bytes = 0
        self._loop = loop
        self._destination = destination
        self._bind = bind
        self._stream_count = stream_count
        self._key = secrets.token_bytes(KEY_BYTES)
        self._prover = proof_key(self._key, secret)
        self._ids = itertools.count()
        self._transport: ConnectionTransport | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def connect(self, sock: socket.socket) -> TlsStream | None:
        """Connect a bound socket, unless it is; return the stream's TLS, if it is to have any."""
        if not sockets.is_connected(sock):
            await asyncio.wait_for(self._loop.sock_connect(sock, self._destination), self._connect_s)
        if self._tls is None:
            return None
        tls = self._tls.stream()
        await tls.handshake(self._loop, sock, self._handshake_s)
        return tls

    async def greet(self, stream: OpenStream) -> int:
        """Say hello on a connected stream and wait for the answer; return the stream's id.

        Raises:
            RemoteProtocolError: The peer refuses the stream, or is no MSTCP peer.
            ConnectionLost: The stream broke.
        """
        stream_id = next(self._ids)
        key = b"" if stream_id else self._key
        hello = Hello(self.connection_id, stream_id, self._stream_count, self.frame_payload_bytes, key)
        opening = hello.sealed(self._prover).encode()
        if stream.tls is not None:
            opening = stream.tls.encrypt(opening)
        await self._loop.sock_sendall(stream.sock, opening)
        try:
            answer = await read_answer(self._loop, stream.sock, self._handshake_s, stream.tls)
        except NoHello:
            host, port = self._destination[:2]
            raise RemoteProtocolError(
                f"{host}:{port} is not an MSTCP server: it answered the hello with something else"
            ) from None
        answer.check_proof(self._prover, answer=True)
        return stream_id

    def follow(self, transport: ConnectionTransport) -> None:
        """Open streams for this connection from now on."""
        self._transport = transport

    def reopen(self, spec: StreamSpec) -> None:
        """Open a stream (again), from its source port, as soon as that works.

        From another where the port is taken meanwhile and neither the application nor a controller named it.
        """
        task = self._tasks.get(spec.source_port)
        if self._transport is None or (task is not None and not task.done()):
            return
        self._tasks[spec.source_port] = self._loop.create_task(self._reopen(spec))

    async def _reopen(self, spec: StreamSpec) -> None:
        delay, longest = _RETRY_S
        while (transport := self._transport) is not None and not transport.is_closing():
            sock: socket.socket | None = None
            try:
                sock = self._bind(spec.source_port)
                stream = named(sock, spec, await self.connect(sock))
                stream_id = await self.greet(stream)
                transport.add_stream(stream, stream_id)
                return
            except (MstcpError, OSError, asyncio.TimeoutError) as error:
                LOGGER.debug("stream from port %d is not back yet: %s", spec.source_port, error)
            except BaseException:
                if sock is not None:
                    sock.close()
                raise
            if sock is not None:
                sockets.reset(sock)
            await asyncio.sleep(delay)
            delay = min(2 * delay, longest)

    def stop(self) -> None:
        """Open no more streams."""
        self._transport = None
        for task in self._tasks.values():
            task.cancel()


def named(sock: socket.socket, spec: StreamSpec, tls: TlsStream | None) -> OpenStream:
    """Return a connected socket as a stream that knows its source port."""
    return OpenStream(sock, replace(spec, source_port=sock.getsockname()[1]), tls)
