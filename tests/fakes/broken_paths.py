"""Connections over relays that break."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import mstcp
from benchmarks.faults.relay import HOST, Path, listening
from mstcp import StreamSpec

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def over_paths(
    count: int, *, silent: tuple[int, ...] = ()
) -> AsyncIterator[tuple[Pair, Pair, list[Path]]]:
    """Yield both ends of a connection whose streams go over relays; the silent pass nothing at first."""
    accepted: asyncio.Queue[Pair] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put((reader, writer))

    async with contextlib.AsyncExitStack() as stack:
        server = await mstcp.start_server(accept, HOST, 0, reorder_buffer_bytes=1 << 18)
        stack.push_async_callback(_stop, server)
        paths = [Path(server.sockets[0].getsockname()[1], 1e9) for _ in range(count)]
        for index in silent:
            paths[index].stop(0, 1)
        port = await stack.enter_async_context(listening(paths))
        client = await mstcp.open_connection(
            HOST, port, streams=[StreamSpec()] * count, seed=1, join_timeout=20
        )
        stack.push_async_callback(_abort, client[1])
        # Where a path is slow a second hello may have opened another connection, which the server gives up.
        peer = await asyncio.wait_for(accepted.get(), 30)
        while _connection_id(peer) != _connection_id(client):
            peer = await asyncio.wait_for(accepted.get(), 30)
        yield client, peer, paths


def _connection_id(pair: Pair) -> bytes:
    return bytes(pair[1].get_extra_info("connection_id"))


async def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(mstcp.MstcpError):
        await writer.wait_closed()


async def _stop(server: mstcp.Server) -> None:
    """Close a server with all its connections, also those that nobody has taken."""
    server.close()
    server.abort_clients()
    await server.wait_closed()
