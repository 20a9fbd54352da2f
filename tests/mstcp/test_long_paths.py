"""Opening a connection over long paths: one connection, and all of its streams."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec, client

CONNECT_S = 1.5
ONE_WAY_S = 0.2
"""Less than connecting says: on a busy machine it may be a second more, and the result is the same."""


@contextlib.asynccontextmanager
async def far_away(port: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """Yield the port of a relay that is far: connecting and every byte take the time that the path does."""
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def slow_connect(sock: socket.socket, address: Any) -> None:
        await connect(sock, address)
        await asyncio.sleep(CONNECT_S)

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

    server = await asyncio.start_server(relay, "127.0.0.1")
    monkeypatch.setattr(loop, "sock_connect", slow_connect)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
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
            writer.close()

    resolve = client._resolve_all

    async def twice(host: str, port: int) -> Any:
        return 2 * await resolve(host, port)  # as a name with two addresses of one server

    async with await mstcp.start_server(answer, "127.0.0.1", early_data=True) as server:
        async with far_away(server.sockets[0].getsockname()[1], monkeypatch) as port:
            monkeypatch.setattr(client, "_resolve_all", twice)
            _, writer = await mstcp.open_connection(
                "127.0.0.1", port, streams=[StreamSpec()] * 3, early_data=b"early", join_timeout=20
            )
            assert writer.transport.alive_streams == 3
            writer.close()
            await writer.wait_closed()
    assert handled == [b"early"]
