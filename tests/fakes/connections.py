"""MSTCP servers and connections over loopback that leave nothing open behind them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import mstcp
from mstcp import StreamReader, StreamSpec, StreamWriter
from tests.fakes.waiting import TIMEOUT_S

HOST = "127.0.0.1"
Pair = tuple[StreamReader, StreamWriter]
Handler = Callable[[StreamReader, StreamWriter], Awaitable[None]]


async def echo(reader: StreamReader, writer: StreamWriter) -> None:
    """Send back what comes, and end where the client does."""
    with contextlib.suppress(mstcp.MstcpError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def serving(
    handler: Handler = echo, host: str = HOST, **options: Any
) -> AsyncIterator[tuple[str, int]]:
    """Yield the address of a server; connections that are open at the end are broken off."""
    async with await mstcp.start_server(handler, host, **options) as server:
        yield server.sockets[0].getsockname()[:2]
        server.abort_clients()


def specs_of(streams: int | Sequence[StreamSpec]) -> Sequence[StreamSpec]:
    """Return what streams are asked for, where it may be their number alone."""
    return [StreamSpec()] * streams if isinstance(streams, int) else streams


@contextlib.asynccontextmanager
async def connected(
    streams: int | Sequence[StreamSpec] = 2,
    *,
    through: Callable[[int], AbstractAsyncContextManager[int]] = contextlib.nullcontext,
    server: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Pair, Pair]]:
    """Yield both ends of a connection: client, server.

    Args:
        streams: Their number, or each of them.
        through: Opens the path to a port, and yields the port where it begins.
        server: The server's options; `options` are the client's.
    """
    accepted: asyncio.Queue[Pair] = asyncio.Queue()
    specs = specs_of(streams)

    async def accept(*pair: Any) -> None:
        accepted.put_nowait(pair)

    async with serving(accept, plain=len(specs) == 1, **(server or {})) as (_, port), through(port) as start:
        ours = await mstcp.open_connection(HOST, start, streams=specs, seed=1, join_timeout=20, **options)
        # Where a path is slow a second hello may have opened another connection, which the server gives up.
        theirs = await asyncio.wait_for(accepted.get(), TIMEOUT_S)
        while len(specs) > 1 and _connection_id(theirs) != _connection_id(ours):
            theirs = await asyncio.wait_for(accepted.get(), TIMEOUT_S)
        try:
            yield ours, theirs
        finally:
            for _, writer in (ours, theirs):
                writer.transport.abort()
                with contextlib.suppress(mstcp.MstcpError):
                    await writer.wait_closed()


def _connection_id(pair: Pair) -> bytes:
    return bytes(pair[1].get_extra_info("connection_id"))


async def ask(
    port: int, data: bytes, streams: int | Sequence[StreamSpec] = 2, host: str = HOST, **options: Any
) -> bytes:
    """Send data and its end, and return what comes back until the peer's."""
    async with mstcp.open_connection(host, port, streams=specs_of(streams), **options) as (reader, writer):

        async def send() -> None:
            writer.write(data)
            await writer.drain()
            writer.write_eof()

        sending = asyncio.create_task(send())
        try:
            return await asyncio.wait_for(reader.read(), TIMEOUT_S)
        finally:
            await sending
