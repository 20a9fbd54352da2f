"""Connections with anyio's interface, on both of its event loops and between them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import mstcp.anyio
from mstcp import StreamSpec
from mstcp.anyio import MstcpStream

BACKENDS = ["asyncio", "trio"]
WAIT_S = 30.0
DATA = random.Random(7).randbytes(3_000_000)
STREAMS = [StreamSpec()] * 2


def run(backend: str, main: Callable[[], Any]) -> None:
    async def limited() -> None:
        with anyio.fail_after(WAIT_S):
            await main()

    anyio.run(limited, backend=backend)


async def echo(stream: MstcpStream) -> None:
    async with stream:
        async for data in stream:
            await stream.send(data)
        await stream.send_eof()


@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_go_both_ways_and_each_direction_ends_apart(backend: str) -> None:
    async def main() -> None:
        async with await mstcp.anyio.listen("127.0.0.1") as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, echo)
            async with await mstcp.anyio.connect(*listener.address, streams=STREAMS) as stream:
                assert stream.get_extra_info("protocol") == "mstcp"

                async def send() -> None:
                    await stream.send(DATA)
                    await stream.send_eof()

                tasks.start_soon(send)
                got = bytearray()
                async for data in stream:
                    got += data
                assert got == DATA
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()
            tasks.cancel_scope.cancel()

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_receive_that_is_cancelled_loses_nothing(backend: str) -> None:
    async def main() -> None:
        async with await mstcp.anyio.listen("127.0.0.1") as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, echo)
            async with await mstcp.anyio.connect(*listener.address, streams=STREAMS) as stream:
                for message in (b"one", b"two"):
                    with anyio.move_on_after(0.05) as scope:
                        await stream.receive()
                    assert scope.cancelled_caught
                    await stream.send(message)
                    assert await stream.receive() == message
            tasks.cancel_scope.cancel()

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_closed_and_broken_connections_raise_anyios_errors(backend: str) -> None:
    async def abort(stream: MstcpStream) -> None:
        await stream.receive()
        await stream.aclose()

    async def main() -> None:
        async with await mstcp.anyio.listen("127.0.0.1") as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, abort)
            stream = await mstcp.anyio.connect(*listener.address, streams=STREAMS)
            await stream.send(b"x")
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
            await stream.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await stream.receive()
            with pytest.raises(anyio.ClosedResourceError):
                await stream.send(b"x")
            tasks.cancel_scope.cancel()
        with pytest.raises(OSError):
            await mstcp.anyio.connect("127.0.0.1", 9, streams=STREAMS, connect_timeout=1)

    run(backend, main)
