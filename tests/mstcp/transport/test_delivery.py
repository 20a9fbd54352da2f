"""Giving a protocol bytes: pauses in the middle, failures, and the order of all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mstcp
from mstcp import ConnectionTransport, StreamSpec, sockets
from mstcp.transport.delivery import Delivery
from tests.fakes.connections import serving
from tests.fakes.transport import PAYLOAD_BYTES, Raw
from tests.fakes.waiting import until

Told = tuple[str, bytes]


class Taker:
    """A protocol's part that both kinds share: pauses after bytes as it was told to."""

    def __init__(self, pauses: list[bool]) -> None:
        self.delivery: Delivery
        self.pauses = pauses
        self.got = bytearray()
        self.ended = 0
        self.depth = 0

    def take(self, data: bytes) -> None:
        assert not self.delivery.is_paused, "bytes came while reading was paused"
        assert not self.ended, "bytes came after the end"
        self.got += data
        self.delivery.is_paused = bool(self.pauses and self.pauses.pop())

    def eof_received(self) -> bool:
        self.ended += 1
        return True


class Plain(Taker, asyncio.Protocol):
    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.take(data)


class Buffered(Taker, asyncio.BufferedProtocol):
    """Its buffer has room for a few bytes, and none while it is paused."""

    def __init__(self, pauses: list[bool], room: int = 3) -> None:
        super().__init__(pauses)
        self.buffer = bytearray(room)

    def get_buffer(self, sizehint: int) -> memoryview:
        assert sizehint > 0
        return memoryview(self.buffer)[: 0 if self.delivery.is_paused else len(self.buffer)]

    def buffer_updated(self, nbytes: int) -> None:
        self.take(bytes(self.buffer[:nbytes]))


def unexpected(error: Exception) -> None:
    raise error


@given(
    st.sampled_from([Plain, Buffered]),
    st.lists(st.lists(st.binary(min_size=1, max_size=9), max_size=4), max_size=6),
    st.lists(st.booleans(), max_size=40),
)
def test_all_bytes_come_once_and_in_order_whenever_the_protocol_pauses(
    kind: Callable[[list[bool]], Plain | Buffered], rounds: list[list[bytes]], pauses: list[bool]
) -> None:
    protocol = kind(pauses)
    delivery = protocol.delivery = Delivery(protocol, unexpected)
    for pieces in rounds:
        delivery.give(pieces)
        if not protocol.pauses:
            delivery.is_paused = False
    while delivery.held or delivery.is_paused:
        assert not delivery.give_end()
        assert not protocol.ended
        delivery.is_paused = False
        delivery.give([])
    assert protocol.got == b"".join(b"".join(pieces) for pieces in rounds)
    for _ in range(2):
        assert not delivery.give_end()
    assert protocol.ended == 1


def test_another_protocol_takes_over_in_the_middle_of_a_piece() -> None:
    first = Buffered([])
    second = Plain([])
    first.delivery = second.delivery = delivery = Delivery(first, unexpected)

    def hand_over(nbytes: int) -> None:
        Buffered.buffer_updated(first, nbytes)
        delivery.set_protocol(second)

    first.buffer_updated = hand_over  # type: ignore[method-assign]
    delivery.give([b"abcdef", b"gh"])
    assert (bytes(first.got), bytes(second.got)) == (b"abc", b"defgh")


def test_a_protocol_that_closes_gets_nothing_more() -> None:
    protocol = Plain([])
    delivery = protocol.delivery = Delivery(protocol, unexpected)

    def close(data: bytes) -> None:
        delivery.is_stopped = True

    protocol.data_received = close  # type: ignore[method-assign]
    delivery.give([b"a", b"b"])
    assert not delivery.held
    assert not delivery.give_end()
    assert not protocol.ended


def test_a_buffer_without_room_is_a_failure_of_the_protocol() -> None:
    failures: list[Exception] = []
    protocol = Buffered([], room=0)
    protocol.delivery = Delivery(protocol, failures.append)
    protocol.delivery.give([b"a"])
    assert [str(error) for error in failures] == ["get_buffer() returned an empty buffer"]


# --- with a transport ---------------------------------------------------------------------------------------


class Listening(asyncio.Protocol):
    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.lost: list[Exception | None] = []
        self.is_called = False
        self.on_data: Callable[[bytes], None] = lambda data: None

    def data_received(self, data: bytes) -> None:
        assert not self.is_called, "called while it was being called"
        self.is_called = True
        self.got.append(data)
        self.on_data(data)
        self.is_called = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


@pytest.mark.parametrize("writes", [False, True])
async def test_what_a_broken_stream_brought_comes_after_what_was_read_before(writes: bool) -> None:
    async with AsyncExitStack() as stack:
        protocol, raw = Listening(), Raw(stack)
        await raw.open(protocol)
        if writes:
            # The application's write finds the stream broken, in the midst of a delivery.
            protocol.on_data = lambda _: raw.transport.write(b"thanks")
        data = random.Random(1).randbytes(2 * PAYLOAD_BYTES)
        raw.send(0, data[:PAYLOAD_BYTES])
        raw.send(1, data[PAYLOAD_BYTES:])
        sockets.reset(raw.theirs[1])
        await until(lambda: sum(map(len, protocol.got)) == len(data))
        assert b"".join(protocol.got) == data
        await until(lambda: raw.transport.alive_streams == 1)


async def test_a_protocol_that_fails_ends_the_connection() -> None:
    protocol = Listening()
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: seen.append(context))
    error = ValueError("not what I expected")

    def fail(_data: bytes) -> None:
        raise error

    protocol.on_data = fail
    async with await mstcp.create_server(lambda: protocol, "127.0.0.1") as server:
        address = server.sockets[0].getsockname()
        reader, writer = await mstcp.open_connection(*address, streams=[StreamSpec()] * 2)
        writer.write(bytes(2 * PAYLOAD_BYTES))
        # The peer is told, rather than left to find out.
        with pytest.raises(mstcp.ConnectionLost, match="the application failed"):
            await reader.read()
        await until(lambda: protocol.lost)
    assert protocol.lost == [error]
    assert len(protocol.got) == 1
    assert [context["exception"] for context in seen] == [error]


class Pausing(asyncio.Protocol):
    """Pauses after all it gets, and goes on a little later."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended = self.loop.create_future()
        self.got = bytearray()
        self.is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, ConnectionTransport)
        self.transport = transport

    def take(self, data: bytes | bytearray) -> None:
        assert not self.is_paused
        assert not self.ended.done()
        self.got += data
        self.is_paused = True
        self.transport.pause_reading()
        self.loop.call_soon(self.loop.call_soon, self.resume)

    def resume(self) -> None:
        self.is_paused = False
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.take(data)

    def eof_received(self) -> None:
        assert not self.is_paused
        self.ended.set_result(None)


class PausingBuffered(Pausing, asyncio.BufferedProtocol):
    buffer = bytearray(10_000)

    def get_buffer(self, _sizehint: int) -> bytearray:
        assert not self.is_paused
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.take(self.buffer[:nbytes])


@pytest.mark.parametrize("protocol_class", [Pausing, PausingBuffered])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_protocol_that_pauses_within_its_callback_gets_every_byte_once(
    count: int, protocol_class: type[Pausing]
) -> None:
    data = random.Random(2).randbytes(3_000_000)

    async def send(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.close()

    async with serving(send) as address:
        streams = [StreamSpec()] * count
        connection, protocol = await mstcp.create_connection(protocol_class, *address, streams=streams)
        if count == 1:
            connection.write(b"plain")
        await asyncio.wait_for(protocol.ended, 60)
        assert protocol.got == data
        await connection.wait_closed()
