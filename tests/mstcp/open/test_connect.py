"""Opening a connection over long paths: one connection, and all of its streams."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec
from mstcp.open import connect as client_connect
from tests.fakes.connections import serving

CONNECT_S = 0.8
"""As long as nobody accepts: TCP then tries again a second after the first time."""
ONE_WAY_S = 0.2
"""Less than connecting says: on a busy machine it may be a second more, and the result is the same."""


@contextlib.asynccontextmanager
async def far_away(port: int) -> AsyncIterator[int]:
    """Yield the port of a relay that is far: connecting and every byte take the time that the path does."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            data = await reader.read(1 << 16)
            deliver = writer.write if data else lambda _: writer.close()
            loop.call_later(ONE_WAY_S, deliver, data)
            if not data:
                return

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, back))
        for ends in ((reader, back), (there, writer)):
            tasks.add(asyncio.ensure_future(carry(*ends)))

    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    address = listener.getsockname()
    filling = socket.create_connection(address)  # who comes after it waits

    async def begin() -> asyncio.Server:
        await asyncio.sleep(CONNECT_S)
        filling.close()
        return await asyncio.start_server(relay, sock=listener, backlog=100)

    beginning = asyncio.ensure_future(begin())
    try:
        yield address[1]
    finally:
        server = await beginning
        server.close()
        await asyncio.sleep(2 * ONE_WAY_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_long_path_opens_one_connection_with_all_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(mstcp.ConnectionLost):
            handled.append(await reader.read(100))
            await reader.read()
            writer.close()

    resolve = client_connect.resolve

    async def twice(host: str, port: int) -> Any:
        return 2 * await resolve(host, port)  # as a name with two addresses of one server

    # Streams that were connected and not needed are no plain connections.
    options: dict[str, Any] = {"plain": False, "on_rejected": lambda *_: None, "early_data": True}
    async with serving(answer, **options) as (_, port):
        monkeypatch.setattr("mstcp.open.client.resolve", twice)
        async with far_away(port) as start:
            opening = mstcp.open_connection(
                "127.0.0.1", start, streams=[StreamSpec()] * 3, early_data=b"early", join_timeout=20
            )
            async with opening as (_, writer):
                assert writer.transport.alive_streams == 3
    assert handled == [b"early"]
