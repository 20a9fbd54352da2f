"""The end of a connection, when the event loop ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import struct
from collections.abc import AsyncIterator

import pytest

import mstcp
from mstcp import ConnectionTransport, StreamSpec
from tests.fakes.broken_paths import over_paths
from tests.fakes.connections import serving
from tests.fakes.echo_server import EchoServer
from tests.fakes.flow_controller import FlowController
from tests.fakes.raw_client import RawClient, read_answer, refusal_of
from tests.fakes.waiting import until
from tests.vectors import generate


async def opened(port: int, streams: int, controller: str | None) -> ConnectionTransport:
    how = {"streams": [StreamSpec()] * streams} if streams else {"rate": 8e6, "controller": controller}
    transport, _ = await mstcp.create_connection(asyncio.Protocol, "127.0.0.1", port, **how)
    return transport


async def ending(transports: list[ConnectionTransport]) -> AsyncIterator[None]:
    """End connections when the loop does: after all tasks, as a peer's exit may."""
    try:
        yield
    finally:
        for transport in transports:
            transport.abort()


@pytest.mark.parametrize("streams", [1, 2, 0])
def test_a_connection_that_ends_with_the_loop_leaves_nothing_undone(
    streams: int, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio.run cancels all tasks, then ends the generators, and runs the loop no more."""
    kept: list[AsyncIterator[None]] = []
    transports: list[ConnectionTransport] = []

    async def run() -> None:
        echo = EchoServer()
        async with contextlib.AsyncExitStack() as stack:
            controller = None if streams else await stack.enter_async_context(FlowController())
            server = await mstcp.start_server(echo.echo, "127.0.0.1")
            stack.callback(server.close)
            port = server.sockets[0].getsockname()[1]
            address = None if controller is None else controller.address
            transports.append(await opened(port, streams, address))
            transports[0].write(b"not a hello")
            # A handler that has not begun when it is cancelled cannot close its connection.
            while not server._reception.connections or not echo.open:
                await asyncio.sleep(0.001)
            transports.extend(server._reception.connections)
        kept.append(ending(transports))
        await anext(kept[0])

    asyncio.run(run())
    assert all(transport.is_closing() for transport in transports)
    assert len(transports) == 2
    transports.clear()
    kept.clear()
    gc.collect()  # would warn of what was never awaited
    assert "destroyed" not in caplog.text


async def test_connection_lost_is_told_after_the_allocation_is_given_back() -> None:
    class Noting(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            released.append(list(controller.released))

    released: list[list[str]] = []
    async with FlowController() as controller, serving() as (_, port):
        transport, _ = await mstcp.create_connection(
            Noting, "127.0.0.1", port, rate=8e6, controller=controller.address
        )
        transport.abort()
        await transport.wait_closed()
    assert released == [["flow-1"]]


ACK, FIN, LAST = 2, 1, 3


async def test_a_server_that_has_closed_tells_a_client_that_joins() -> None:
    """The last acknowledgement may be lost with the last stream: the client joins again, and asks."""
    ended = asyncio.Event()

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with serving(close, plain=False) as address:
        client = RawClient(count=1)
        reader, writer = await asyncio.open_connection(*address)
        await client.exchange(reader, writer)
        fin = generate.control(FIN, bytes(8))
        writer.write(fin)
        await asyncio.wait_for(reader.readuntil(fin), 20)
        writer.write(generate.control(ACK, struct.pack(">QQ", 1, 1 << 18)) + generate.control(LAST, b""))
        writer.write_eof()
        await asyncio.wait_for(ended.wait(), 20)
        writer.close()
        for _ in range(2):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(client.hello(1))
            assert refusal_of(await read_answer(reader)) is None
            assert await asyncio.wait_for(reader.readexactly(8), 20) == generate.control(ACK, bytes(16))[:8]
            received, limit = struct.unpack(">QQ", await reader.readexactly(16))
            assert received == 1 and limit >= 1 << 18
            assert await asyncio.wait_for(reader.read(), 20) == generate.control(LAST, b"")
            writer.close()
        # Who cannot prove that it is the client is told nothing.
        reader, writer = await asyncio.open_connection(*address)
        writer.write(client.hello(2, key=bytes(32)))
        assert refusal_of(await read_answer(reader)) is not None
        writer.close()


@pytest.mark.parametrize("closing", [0, 1])
async def test_what_a_closed_connection_still_has_to_send_goes_over_streams_that_come_back(
    closing: int,
) -> None:
    async with over_paths(2) as (client, server, paths):
        (_, writer), (reader, _) = (client, server) if closing == 0 else (server, client)
        for path in paths:
            path.stop(0, 1)
        data = bytes(range(256)) * 800
        writer.write(data)
        writer.close()
        for path in paths:
            path.repair()
            path.reset()
        assert await asyncio.wait_for(reader.read(), 60) == data
        (server if closing == 0 else client)[1].close()
        await asyncio.wait_for(writer.wait_closed(), 60)


async def read_a_byte(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(1)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("streams", [1, 2])
async def test_what_is_written_after_the_peer_has_closed_fails(streams: int) -> None:
    async with serving(read_a_byte) as address:
        reader, writer = await mstcp.open_connection(*address, streams=[StreamSpec()] * streams)
        writer.write(b"x")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        if streams > 1:
            await until(lambda: not writer.transport.alive_streams)
        with pytest.raises(ConnectionError):
            while True:
                writer.write(bytes(100_000))
                await asyncio.wait_for(writer.drain(), 60)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(writer.wait_closed(), 60)

        def blocking() -> None:
            with mstcp.blocking.create_connection(address, streams=[StreamSpec()] * streams) as sock:
                sock.settimeout(60)
                sock.sendall(b"x")
                assert sock.recv(1) == b""
                with pytest.raises(ConnectionError):
                    while True:
                        sock.sendall(bytes(100_000))

        await asyncio.to_thread(blocking)


async def abort(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def test_who_expects_a_reset_of_tcp_hears_of_a_break() -> None:
    async with serving(abort) as address:
        reader, _ = await mstcp.open_connection(*address, streams=[StreamSpec()] * 2)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 60)
