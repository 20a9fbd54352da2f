"""A plain TCP server that leaves nothing open behind it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def keep_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Read to the end and answer nothing."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


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


@contextlib.asynccontextmanager
async def wire(is_open: asyncio.Event, port: int) -> AsyncIterator[int]:
    """Lead TCP connections to a port, and hold back all of theirs while `is_open` is not set; yield where."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                await is_open.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer))
        finally:
            back.transport.abort()
            with contextlib.suppress(OSError):
                await back.wait_closed()

    async with tcp_server(carry) as start:
        yield start


@contextlib.asynccontextmanager
async def tcp_client(
    port: int, host: str = "127.0.0.1", **options: Any
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and close the connection, which the other side may have broken."""
    reader, writer = await asyncio.open_connection(host, port, **options)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
