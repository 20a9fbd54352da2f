"""asyncio's reader and writer for our connections.

They behave as asyncio's own and are instances of them. The reader keeps the pieces as the transport gives
them: `read` returns a piece as it is, where asyncio's copies it into one buffer and out again.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from mstcp.errors import ConnectionLost
from mstcp.transport import ConnectionTransport

DEFAULT_LIMIT = 1 << 16
PAUSE_BYTES = 1 << 19
"""So much may wait in a reader with a small limit: the transport, were it paused, would hold it as well."""


_NOTHING: deque[bytes | memoryview] = deque()
"""What readers have of which nothing waits: a queue of its own takes 0.7 KB even when it is empty."""


class StreamReader(asyncio.StreamReader):
    """Reads the peer's bytes in order; see `asyncio.StreamReader`."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        # What came after the bytes in asyncio's buffer.
        self._pieces = _NOTHING
        self._pieces_bytes = 0
        self._pause_bytes = max(2 * limit, PAUSE_BYTES)
        self._buffer: bytearray
        self._limit: int
        self._eof: bool
        self._exception: Exception | None
        self._transport: asyncio.ReadTransport | None
        self._paused: bool
        self._waiter: asyncio.Future[None] | None
        self._loop: asyncio.AbstractEventLoop

    def feed_data(self, data: bytes | memoryview) -> None:  # type: ignore[override]
        """Take what the transport has received."""
        if not data:
            return
        if self._pieces is _NOTHING:
            self._pieces = deque()
        self._pieces.append(data)
        self._pieces_bytes += len(data)
        if (waiter := self._waiter) is not None:
            self._waiter = None
            if not waiter.cancelled():
                waiter.set_result(None)
        waiting = len(self._buffer) + self._pieces_bytes
        if waiting > self._pause_bytes and not self._paused and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def at_eof(self) -> bool:
        """Return whether the peer has ended its direction and all of its bytes were read."""
        return self._eof and not self._buffer and not self._pieces

    async def read(self, n: int = -1) -> bytes:
        """Return up to `n` bytes as soon as there are some, b"" at the end; below 0: all up to the end."""
        if n < 0:
            pieces = []
            while piece := await self.read(self._limit):
                pieces.append(piece)
            return b"".join(pieces)
        if self._exception is not None:
            raise self._exception
        if n == 0:
            return b""
        if not self._buffer and not self._pieces and not self._eof:
            await self._wait_for_piece("read")
        return self._take_and_resume(n)

    def _take(self, n: int) -> bytes:
        if self._buffer:
            data = bytes(memoryview(self._buffer)[:n])
            del self._buffer[:n]
            return data
        if not self._pieces:
            return b""
        first = self._pieces[0]
        if len(first) <= n:
            self._pieces.popleft()
            if not self._pieces:
                self._pieces = _NOTHING
        else:
            view = memoryview(first)
            first, self._pieces[0] = view[:n], view[n:]
        self._pieces_bytes -= len(first)
        return first if isinstance(first, bytes) else bytes(first)

    async def readexactly(self, n: int) -> bytes:
        """Return exactly `n` bytes; asyncio.IncompleteReadError if the peer ends before."""
        if n > 0 and not self._buffer and self._exception is None:
            if not self._pieces and not self._eof:
                await self._wait_for_piece("readexactly")
            if self._pieces and len(self._pieces[0]) >= n:
                return self._take_and_resume(n)
        self._merge()
        return await super().readexactly(n)

    def _take_and_resume(self, n: int) -> bytes:
        data = self._take(n)
        if self._paused:
            self._maybe_resume_transport()
        return data

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        """Return the bytes up to and with the separator; see `asyncio.StreamReader.readuntil`."""
        self._merge()
        return await super().readuntil(separator)

    def take_all(self) -> bytes:
        """Take what is there, and read on from nothing."""
        self._merge()
        data = bytes(self._buffer)
        self._buffer.clear()
        self._paused = False
        return data

    # --- what asyncio's methods use ------------------------------------------------------------------------
    async def _wait_for_data(self, func_name: str) -> None:
        await self._wait_for_piece(func_name)
        self._merge()

    async def _wait_for_piece(self, func_name: str) -> None:
        if self._waiter is not None:
            raise RuntimeError(f"{func_name}() called while another coroutine is already waiting for data")
        if self._paused:
            # Nothing would come: what is asked for is more than the limit.
            self._paused = False
            assert self._transport is not None
            self._transport.resume_reading()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _merge(self) -> None:
        """Put all bytes into asyncio's buffer, where lines are looked for."""
        if self._pieces:
            self._buffer += b"".join(self._pieces)
            self._pieces = _NOTHING
            self._pieces_bytes = 0

    def _maybe_resume_transport(self) -> None:
        if self._paused and len(self._buffer) + self._pieces_bytes <= self._pause_bytes // 2:
            self._paused = False
            assert self._transport is not None
            self._transport.resume_reading()


class StreamWriter(asyncio.StreamWriter):
    """Writes to the peer; see `asyncio.StreamWriter`. An asynchronous context manager that closes it."""

    @property
    def transport(self) -> ConnectionTransport:
        """The connection. Beyond asyncio it has `stats`, `try_write`, `sendfile` and more."""
        return cast(ConnectionTransport, super().transport)

    async def start_tls(
        self,
        sslcontext: ssl.SSLContext,
        *,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
    ) -> None:
        """Put TLS into the connection, end to end; what the reader holds of it already belongs to TLS.

        Args:
            sslcontext: Certificates and what is trusted.
            server_hostname: Whom the server's certificate must name; for the side that connected.
            ssl_handshake_timeout: Seconds that the handshake may take; None: 60.
            ssl_shutdown_timeout: Seconds that TLS's end may take; None: 30. From Python 3.11 on.

        Raises:
            ssl.SSLError: The peer's certificate is not trusted, or TLS failed otherwise.
            ConnectionLost: The connection ended meanwhile.
        """
        protocol: StreamProtocol = self._protocol  # type: ignore[attr-defined]
        reader, before = protocol.reader, self.transport
        limits: dict[str, Any] = {"ssl_handshake_timeout": ssl_handshake_timeout}
        if sys.version_info >= (3, 11):
            limits["ssl_shutdown_timeout"] = ssl_shutdown_timeout
        await self.drain()
        before.pause_reading()
        before.unread(reader.take_all())
        try:
            transport = await self._loop.start_tls(  # type: ignore[attr-defined]
                before,
                protocol,
                sslcontext,
                server_side=protocol.is_server,
                server_hostname=server_hostname,
                **limits,
            )
            if transport is None:  # asyncio's way to say that the connection ended as TLS began
                raise before.lost or ConnectionLost("the connection ended as TLS began")
        except BaseException as error:
            before.abort()
            # asyncio's TLS tells nobody of the end of a connection on which it has not begun.
            protocol.connection_lost(error if isinstance(error, Exception) else None)
            raise
        self._transport = reader._transport = transport
        protocol.note_tls(transport)

    async def __aenter__(self) -> StreamWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await leave(self, kind)


async def leave(writer: asyncio.StreamWriter, kind: type[BaseException] | None) -> None:
    """Close a connection after a block: in order, or at once if the block raised."""
    if kind is None:
        writer.close()
    else:
        writer.transport.abort()
    try:
        await writer.wait_closed()
    except OSError:
        if kind is None:
            raise


class StreamProtocol(asyncio.StreamReaderProtocol):
    """Between a transport and its reader and writer.

    Args:
        loop: The event loop.
        limit: Buffer limit of the reader, in bytes.
        on_connected: Called with the reader and the writer, or None where the caller makes a writer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        on_connected: Callable[[StreamReader, StreamWriter], Any] | None = None,
    ) -> None:
        self.reader = StreamReader(limit, loop)
        self._on_connected = on_connected
        self._own_loop = loop
        connected: Any = None if on_connected is None else self._on_made
        super().__init__(self.reader, connected, loop=loop)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        super().connection_made(transport)
        # With asyncio's TLS the peer's end is the end of both directions. With ours each ends by itself.
        self._over_ssl = False

    @property
    def is_server(self) -> bool:
        """Whether the peer opened the connection."""
        return self._on_connected is not None

    def note_tls(self, transport: asyncio.Transport) -> None:
        """Note that the connection has TLS inside from now on."""
        self._transport, self._over_ssl = transport, True

    def writer(self, transport: ConnectionTransport) -> StreamWriter:
        """Return a writer of this protocol's connection."""
        return StreamWriter(transport, self, self.reader, self._own_loop)

    def _on_made(self, reader: StreamReader, writer: asyncio.StreamWriter) -> Any:
        """Give the application our writer."""
        assert self._on_connected is not None
        # Another one would not do: asyncio's closes the connection when it is collected.
        writer.__class__ = StreamWriter
        return self._on_connected(reader, cast(StreamWriter, writer))
