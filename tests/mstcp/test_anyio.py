"""Connections with anyio's interface, on both of its event loops and between them."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute

import mstcp.anyio
from mstcp import StreamSpec
from mstcp.anyio import MstcpStream
from tests.fakes.waiting import TIMEOUT_S

BACKENDS = ["asyncio", "trio"]
DATA = random.Random(7).randbytes(3_000_000)
STREAMS = [StreamSpec()] * 2


def run(backend: str, main: Callable[[], Any]) -> None:
    async def limited() -> None:
        with anyio.fail_after(TIMEOUT_S):
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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 2])
def test_streams_behave_as_anyios_own(count: int, backend: str) -> None:
    """What anyio's tests of its TCP streams ask."""
    silent: list[MstcpStream] = []

    async def keep(stream: MstcpStream) -> None:
        silent.append(stream)
        await anyio.sleep_forever()

    async def use(stream: MstcpStream, address: tuple[str, int]) -> None:
        raw = stream.extra(SocketAttribute.raw_socket)
        assert stream.extra(SocketAttribute.family) == raw.family == socket.AF_INET
        assert stream.extra(SocketAttribute.local_address) == raw.getsockname()
        assert stream.extra(SocketAttribute.local_port) == raw.getsockname()[1]
        assert stream.extra(SocketAttribute.remote_address) == address
        assert stream.extra(SocketAttribute.remote_port) == address[1]
        with pytest.raises(ValueError, match="max_bytes must be a positive integer"):
            await stream.receive(0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BusyResourceError, match="already reading from"):
                await stream.receive()
            tasks.cancel_scope.cancel()

        async def send() -> None:
            while True:
                await stream.send(bytes(1 << 20))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            with anyio.move_on_after(0.5):
                await anyio.sleep_forever()
            with pytest.raises(anyio.BusyResourceError, match="already writing to"):
                await stream.send(b"x")
            tasks.cancel_scope.cancel()
        await stream.send_eof()
        await stream.send_eof()
        with pytest.raises(anyio.BrokenResourceError):
            await stream.send(b"x")

        async def close() -> None:
            await anyio.wait_all_tasks_blocked()
            # Beside a peer that has not read what was sent.
            await stream.aclose()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            with pytest.raises(anyio.ClosedResourceError):
                await stream.receive()
        with pytest.raises(anyio.ClosedResourceError):
            await stream.send(b"x")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            listener = await mstcp.anyio.listen("127.0.0.1", plain=count == 1)
            assert listener.extra(SocketAttribute.local_port) == listener.address[1]
            tasks.start_soon(listener.serve, keep)
            stream = await mstcp.anyio.connect(*listener.address, streams=[StreamSpec()] * count)
            await use(stream, listener.address)
            other = await mstcp.anyio.connect(*listener.address, streams=[StreamSpec()] * count)
            raw = other.extra(SocketAttribute.raw_socket)
            await other.send(b"x")
            await anyio.aclose_forcefully(other)
            while raw.fileno() >= 0:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await listener.aclose()
        async with anyio.create_task_group() as tasks:
            with pytest.raises(anyio.ClosedResourceError):
                await listener.serve(keep, tasks)
        for stream in silent:
            await stream.aclose()

    run(backend, main)


def test_a_send_that_waits_for_room_ends_with_what_closes_or_cancels_it() -> None:
    """Nothing of a send that was cancelled while it waited goes out, and one is closed under ends at once."""

    async def main() -> None:
        got = bytearray()
        reads = anyio.Event()

        async def read_late(stream: MstcpStream) -> None:
            async with stream:
                await reads.wait()
                async for data in stream:
                    got.extend(data)

        async with await mstcp.anyio.listen("127.0.0.1") as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, read_late)
            stream = await mstcp.anyio.connect(*listener.address, streams=STREAMS)
            waits = False
            while not waits:
                with anyio.move_on_after(0.5) as full:
                    await stream.send(bytes(1 << 20))
                waits = full.cancelled_caught
            with anyio.move_on_after(0.2) as full:
                await stream.send(b"cancelled")
            assert full.cancelled_caught
            reads.set()
            await stream.send(b"sent")
            await stream.send_eof()
            while not got.endswith(b"sent"):
                await anyio.sleep(0.01)
            assert b"cancelled" not in got
            await stream.aclose()

            reads = anyio.Event()
            closed = await mstcp.anyio.connect(*listener.address, streams=STREAMS)

            async def send_for_ever() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    while True:
                        await closed.send(bytes(1 << 20))

            async with anyio.create_task_group() as sending:
                sending.start_soon(send_for_ever)
                await anyio.wait_all_tasks_blocked()
                await anyio.sleep(0.5)
                await closed.aclose()
            reads.set()
            tasks.cancel_scope.cancel()

    run("asyncio", main)
