"""The end of a connection, when the event loop ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator

import pytest

import mstcp
from mstcp import ConnectionTransport, StreamSpec
from tests.fakes.echo_server import EchoServer
from tests.fakes.flow_controller import FlowController


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
    async with FlowController() as controller, await mstcp.start_server(EchoServer().echo) as server:
        port = server.sockets[0].getsockname()[1]
        transport, _ = await mstcp.create_connection(
            Noting, "127.0.0.1", port, rate=8e6, controller=controller.address
        )
        transport.abort()
        await transport.wait_closed()
    assert released == [["flow-1"]]
