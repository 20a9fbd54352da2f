"""A plain TCP server that leaves nothing open behind it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

PassOn = Callable[[int, bytes], Awaitable[bytes]]
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
async def relay(port: int, path: Callable[[], PassOn]) -> AsyncIterator[int]:
    """Lead TCP connections to a port; yield where.

    What comes on each of them goes through a function that `path` makes for it: it is given who sends (0: the
    client), and returns what goes on.
    """

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass_on = path()

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: int) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 16):
                    writer.write(await pass_on(direction, data))
                    await writer.drain()
            writer.close()

        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pump(reader, back, 0), pump(there, writer, 1))
        finally:
            back.transport.abort()
            with contextlib.suppress(OSError):
                await back.wait_closed()

    async with tcp_server(carry) as start:
        yield start


def wire(is_open: asyncio.Event, port: int) -> AbstractAsyncContextManager[int]:
    """Lead TCP connections to a port, and hold back all of theirs while `is_open` is not set."""

    async def hold_back(_: int, data: bytes) -> bytes:
        await is_open.wait()
        return data

    return relay(port, lambda: hold_back)


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
