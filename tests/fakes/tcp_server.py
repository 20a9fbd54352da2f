"""A plain TCP server that leaves nothing open behind it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def keep_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Read to the end and answer nothing."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


@contextlib.asynccontextmanager
async def tcp_server(handler: Handler = keep_silent, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve on loopback; yield the port. What still runs at the end is cancelled, and all connections closed.

    A connection that the loop's end finds open is closed by the garbage collector, in the midst of another
    test.
    """
    handling: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        try:
            await handler(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
