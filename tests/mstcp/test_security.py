"""Peers that lie, repeat themselves or come in numbers: a documented error each, others go on unharmed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import struct
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

import mstcp
from mstcp import ServerLimits, StreamSpec, _core
from mstcp.limits import HalfOpen
from tests.fakes.connections import ask, serving
from tests.fakes.echo_server import EchoServer, echo_server
from tests.fakes.raw_client import RawClient, closes_in, read_answer, refusal_of
from tests.fakes.tcp_server import tcp_client, tcp_server
from tests.fakes.waiting import until
from tests.vectors import generate
from tests.vectors.generate import control, long, short

PROTOCOL_ERROR, UNSUPPORTED_VERSION, UNKNOWN_CONNECTION, NOT_AUTHORISED, LIMIT_EXCEEDED = range(1, 6)
PAYLOAD = 100


def full(offset: int, data: bytes = bytes(PAYLOAD)) -> bytes:
    return generate.full(offset, data)


class Victim(EchoServer):
    """An echo server with an honest connection through it, which must not notice anything."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def connect(self) -> None:
        self.reader, self.writer = await mstcp.open_connection(
            "127.0.0.1", self.port, streams=[StreamSpec()] * 2, join_timeout=0.0
        )

    async def is_unharmed(self) -> bool:
        data = bytes(range(256)) * 1000
        self.writer.write(data)
        return await asyncio.wait_for(self.reader.readexactly(len(data)), 20) == data


@contextlib.asynccontextmanager
async def victim(*, connects: bool = True, **options: Any) -> AsyncIterator[Victim]:
    it = Victim()
    async with serving(it.echo, plain=False, on_rejected=it.on_rejected, **options) as (_, it.port):
        if connects:
            await it.connect()
        yield it
        if connects:
            assert await it.is_unharmed()
            it.writer.close()
            await it.writer.wait_closed()
        await until(lambda: not it.open)


async def rest(reader: asyncio.StreamReader) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.wait_for(reader.read(1 << 16), 20):
            data += piece
    return data


async def refusal(port: int, opening: bytes) -> tuple[int | None, tuple[int, str]]:
    """Return the code of the answer to an opening, and code and sentence of the CLOSE after it."""
    async with tcp_client(port) as (reader, writer):
        writer.write(opening)
        code = refusal_of(await read_answer(reader))
        (close,) = closes_in(await rest(reader), PAYLOAD)
        return code, close


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (full(1 << 40), "beyond 262144, the end of the receive window"),
        (full((1 << 62) - 1), "reaches beyond"),
        (full(262_144 - PAYLOAD + 1), "beyond 262144"),
        (short(0, b""), "a frame of 0 bytes"),
        (long(0, b"", 1 << 20 | 1), "a frame of 1048577 bytes"),
        (long(0, b"", 0xFFFF_FFFF), "a frame of 4294967295 bytes"),
        (control(5, b"", 0xFFFF), "a frame of 65535 bytes"),
        (struct.pack(">Q", 2 << 62 | 3 << 56 | 1 << 20), "bits set that must be 0"),
        (control(1, struct.pack(">Q", 1 << 62)), "FIN contradicts"),
        (control(7, bytes(32)), "CONFIRM where none is awaited"),
        (control(8, struct.pack(">IQ", 0, 1 << 40)), "what was never sent"),
        (control(1, b"1234567"), "type 1 has a body of the wrong length"),
        (control(2, bytes(16 + 12 * 65)), "type 2 has a body of the wrong length"),
        (control(2, struct.pack(">QQ", 1, 0)), "what was never sent"),
        (control(2, struct.pack(">QQIQ", 0, 0, 0, 1)), "what was never sent"),
        (full(0) + control(1, struct.pack(">Q", PAYLOAD - 1)), "FIN contradicts"),
        (control(1, struct.pack(">Q", 7)) + control(1, struct.pack(">Q", 8)), "FIN contradicts"),
        (control(3, b"") + full(0), "after its LAST"),
        (
            b"".join(short(offset, b"x") for offset in range(1, 30_000, 2)),
            "too many small pieces",
        ),
    ],
)
async def test_a_broken_rule_ends_the_connection_with_close_1(frames: bytes, reason: str) -> None:
    async with victim(reorder_buffer_bytes=1 << 18) as server, tcp_client(server.port) as (reader, writer):
        await RawClient().exchange(reader, writer)
        writer.write(frames)
        closes = closes_in(await rest(reader), PAYLOAD)
        # A reset can overtake the CLOSE where much was sent that nobody read.
        assert not closes or (closes[0][0] == PROTOCOL_ERROR and reason in closes[0][1])
        await until(lambda: server.errors)
        assert isinstance(server.errors[0], mstcp.RemoteProtocolError)
        assert reason in str(server.errors[0])


async def test_joining_takes_the_proof_a_new_id_and_a_living_connection() -> None:
    async with victim() as server, tcp_client(server.port) as (reader, writer):
        client, stranger = RawClient(), RawClient(bytes(16))
        first = client.hello()
        writer.write(first)
        writer.write(client.confirm(await read_answer(reader)))
        for opening, code, reason in [
            (client.hello(1, key=bytes(32)), NOT_AUTHORISED, "does not prove"),
            (client.hello(1)[:-32] + bytes(32), NOT_AUTHORISED, "does not prove"),
            (RawClient(secret=b"guessed").hello(), NOT_AUTHORISED, "does not prove"),
            (first, NOT_AUTHORISED, "came again"),
            (stranger.hello(1), UNKNOWN_CONNECTION, "not here"),
        ]:
            told = await refusal(server.port, opening)
            assert told[0] == told[1][0] == code
            assert reason in told[1][1]
        # Ids may jump; each is good for once.
        async with tcp_client(server.port) as (second, joining):
            await client.exchange(second, joining, 0xFFFF_FFFF)
            assert (await refusal(server.port, client.hello(0xFFFF_FFFF)))[0] == NOT_AUTHORISED
        await until(lambda: len(server.rejected) == 6)


async def test_a_hello_sent_twice_at_once_gets_in_once() -> None:
    async with victim() as server, contextlib.AsyncExitStack() as stack:
        client = RawClient()
        for index in (0, 1):
            opening = client.hello(index)
            pairs = [await stack.enter_async_context(tcp_client(server.port)) for _ in range(20)]
            for _, writer in pairs:
                writer.write(opening)
            answers = await asyncio.gather(*(read_answer(reader) for reader, _ in pairs))
            codes = [refusal_of(answer) for answer in answers]
            assert sorted(code or 0 for code in codes) == [0] + [NOT_AUTHORISED] * 19
            client.confirm(answers[codes.index(None)], index)


# --- replay, reflection, swapping, truncation ---------------------------------------------------------------
async def recorded_opening(secret: bytes) -> tuple[bytes, RawClient]:
    """Return all that an honest client with the secret says on stream 0: hello, CONFIRM, a frame."""
    async with victim(connects=False, secret=secret) as server, tcp_client(server.port) as (reader, writer):
        client = RawClient(secret=secret)
        hello = client.hello()
        writer.write(hello)
        said = client.confirm(await read_answer(reader)) + full(0, b"x" * PAYLOAD)
        writer.write(said)
        # The application gets it, and sends it back.
        await reader.readuntil(b"x" * PAYLOAD)
        return hello + said, client


async def test_a_recorded_opening_is_good_for_no_other_server_and_no_restart() -> None:
    secret = b"between us"
    recorded, _ = await recorded_opening(secret)
    async with victim(connects=False, secret=secret) as server, tcp_client(server.port) as (reader, writer):
        writer.write(recorded)
        await rest(reader)
        await until(lambda: server.rejected)
        assert "does not prove that its sender read the answer" in server.rejected[0]
        assert server.protocols == []


async def test_a_hello_alone_does_not_open_a_connection_with_a_secret() -> None:
    options: dict[str, Any] = {"secret": b"ours", "hello_timeout": 0.3}
    async with victim(connects=False, **options) as server, tcp_client(server.port) as (reader, writer):
        writer.write(RawClient(secret=b"ours").hello(early=b"first bytes"))
        await rest(reader)
        await until(lambda: server.rejected)
        assert server.rejected == ["the answer to the hello was not confirmed in time"]
        assert server.protocols == []


async def test_frames_without_the_confirmation_never_reach_the_application() -> None:
    async with victim() as server, tcp_client(server.port) as (reader, writer):
        client = RawClient()
        await client.exchange(reader, writer)
        for said in (full(0), control(7, bytes(32)), control(5, bytes(8))):
            async with tcp_client(server.port) as (second, joining):
                stream_id = said[0]  # a new one each time
                joining.write(client.hello(stream_id))
                await read_answer(second)
                joining.write(said + full(0, b"forged".ljust(PAYLOAD)))
                # That stream alone is given up, and the connection goes on.
                await rest(second)
        writer.write(full(0, b"honest".ljust(PAYLOAD)))
        echoed = b""
        while b"honest" not in echoed:
            echoed += await asyncio.wait_for(reader.read(1 << 16), 20)
        assert b"forged" not in echoed


async def test_early_data_comes_a_round_trip_earlier_where_the_server_takes_it() -> None:
    options: dict[str, Any] = {"secret": b"ours", "early_data": True}
    async with victim(connects=False, **options) as server, tcp_client(server.port) as (reader, writer):
        writer.write(RawClient(secret=b"ours").hello(early=b"first bytes"))
        await read_answer(reader)
        # Nothing was confirmed yet.
        await asyncio.wait_for(reader.readuntil(b"first bytes"), 20)
        assert server.protocols == ["mstcp"]


async def test_early_data_of_our_client_arrives_once() -> None:
    for takes_early in (False, True):
        async with victim(connects=False, secret=b"ours", early_data=takes_early) as server:
            options: dict[str, Any] = {"secret": b"ours", "early_data": b"question"}
            assert await ask(server.port, b", and more", **options) == b"question, and more"


async def test_other_versions_are_told_which_are_spoken() -> None:
    async with victim() as server:
        expected = generate.message({1: generate.VERSION, 8: generate.VERSION, 9: 3}) + bytes(32)
        for hello in (generate.message({1: 1}), generate.message({1: 9, 8: 4})):
            async with tcp_client(server.port) as (reader, writer):
                writer.write(hello + bytes(32))
                data = await rest(reader)
                assert data.startswith(expected)
                ((code, reason),) = closes_in(data[len(expected) :], PAYLOAD)
                assert code == UNSUPPORTED_VERSION
                assert f"this library {generate.VERSION}" in reason
        await until(lambda: len(server.rejected) == 2)
        assert server.rejected == [
            "the peer speaks version 0 to 1, this library 3",
            "the peer speaks version 4 to 9, this library 3",
        ]


async def test_a_client_of_another_version_is_told_by_the_error() -> None:
    async def newer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(generate.message({1: 5, 8: 4, 9: 3}) + bytes(32))
        await rest(reader)
        done.append(True)

    done: list[bool] = []
    async with tcp_server(newer) as port:
        with pytest.raises(mstcp.UnsupportedVersion, match="speaks version 4 to 5, this library 3") as caught:
            await mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2, join_timeout=0.0)
        assert (caught.value.least, caught.value.highest) == (4, 5)
        # The connection had two streams; the second said nothing.
        await until(lambda: len(done) == 2)


async def test_silent_streams_make_room_for_honest_ones() -> None:
    limits = ServerLimits(half_open_streams=8)
    async with victim(connects=False, limits=limits) as server, contextlib.AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(tcp_client(server.port)) for _ in range(30)]
        await asyncio.wait_for(server.connect(), 30)
        assert await server.is_unharmed()
        assert server.rejected
        assert set(server.rejected) == {"dropped for others: 8 streams were half open"}
        assert len(silent) == 30
        server.writer.close()
        await server.writer.wait_closed()


async def test_hellos_beyond_the_rate_wait_and_then_are_refused() -> None:
    async with victim(limits=ServerLimits(hellos_per_s=2), hello_timeout=1.0) as server:
        openings = [RawClient(bytes([number]) * 16).hello() for number in range(12)]
        codes = []
        async with contextlib.AsyncExitStack() as stack:
            pairs = [await stack.enter_async_context(tcp_client(server.port)) for _ in openings]
            for (_, writer), opening in zip(pairs, openings, strict=True):
                writer.write(opening)
            for reader, _ in pairs:
                codes.append(refusal_of(await read_answer(reader)))
        assert set(codes) == {None, LIMIT_EXCEEDED}
        await until(lambda: "more than 2 hellos come in a second" in server.rejected)


async def test_connections_are_counted() -> None:
    async with (
        victim(limits=ServerLimits(connections=2)) as server,
        tcp_client(server.port) as (reader, writer),
    ):
        await RawClient().exchange(reader, writer)
        with pytest.raises(mstcp.RemoteProtocolError, match=r"limits is reached \(the server has 2 conn"):
            await mstcp.open_connection(
                "127.0.0.1", server.port, streams=[StreamSpec()] * 2, join_timeout=0.0
            )


@pytest.mark.parametrize("plain", [True, "auto"])
async def test_plain_connections_count_as_the_others_do(plain: Literal[True, "auto"]) -> None:
    async with (
        echo_server(plain=plain, limits=ServerLimits(connections=2)) as echo,
        contextlib.AsyncExitStack() as stack,
    ):

        async def asks() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await stack.enter_async_context(tcp_client(echo.port))
            writer.write(b"question")
            return reader, writer

        pairs = [await asks(), await asks()]
        for reader, _ in pairs:
            assert await reader.readexactly(8) == b"question"
        reader, _ = await asks()
        assert await rest(reader) == b""
        assert echo.rejected == ["the server has 2 connections"]
        if plain == "auto":
            with pytest.raises(mstcp.RemoteProtocolError, match="the server has 2 connections"):
                await mstcp.open_connection(
                    "127.0.0.1", echo.port, streams=[StreamSpec()] * 2, join_timeout=0.0
                )
        # One that ends makes room, by an end or by a break.
        pairs[0][1].write_eof()
        pairs[1][1].transport.abort()
        await until(lambda: not echo.open)
        for _ in range(2):
            reader, _ = await asks()
            assert await reader.readexactly(8) == b"question"


async def test_a_connection_whose_protocol_cannot_be_made_does_not_count() -> None:
    made = 0

    def make() -> asyncio.Protocol:
        nonlocal made
        made += 1
        if made < 3:
            raise RuntimeError("no protocol")
        return asyncio.Protocol()

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    limits = ServerLimits(connections=1)
    async with await mstcp.create_server(make, "127.0.0.1", plain=True, limits=limits) as server:
        for _ in range(2):
            async with tcp_client(server.sockets[0].getsockname()[1]) as (reader, _):
                assert await rest(reader) == b""
        async with tcp_client(server.sockets[0].getsockname()[1]):
            await until(lambda: made == 3)


async def test_mstcp_connections_leave_no_room_for_plain_ones() -> None:
    async with echo_server(limits=ServerLimits(connections=1)) as echo:
        streams = [StreamSpec()] * 2
        async with mstcp.open_connection("127.0.0.1", echo.port, streams=streams, join_timeout=0.0):
            async with tcp_client(echo.port) as (reader, plain):
                plain.write(b"question")
                assert await rest(reader) == b""
            assert echo.rejected == ["the server has 1 connections"]
        await until(lambda: not echo.open)
        async with tcp_client(echo.port) as (reader, plain):
            plain.write(b"question")
            assert await reader.readexactly(8) == b"question"


async def test_a_connection_has_64_streams_at_once() -> None:
    async with victim() as server, contextlib.AsyncExitStack() as stack:
        client = RawClient()
        for index in range(_core.MAX_STREAMS):
            reader, writer = await stack.enter_async_context(tcp_client(server.port))
            await client.exchange(reader, writer, index)
        code, (_, reason) = await refusal(server.port, client.hello(_core.MAX_STREAMS))
        assert code == LIMIT_EXCEEDED
        assert reason == "the connection has 64 streams"


async def test_windows_of_all_connections_stay_within_the_process_bound() -> None:
    """Connections whose application reads nothing: what they may send stays within the bound."""
    before, _ = _core.receive_memory()
    bound = before + (4 << 20)
    stop = asyncio.Event()

    ended = 0

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal ended
        await stop.wait()
        while await reader.read(1 << 20):
            pass
        writer.close()
        ended += 1

    async def fill(port: int) -> asyncio.StreamWriter:
        _, writer = await mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2)
        for _ in range(32):
            writer.write(bytes(1 << 18))
        return writer

    async with serving(ignore, limit=1024) as (_, port):
        mstcp.limit_receive_memory(bound)
        try:
            writers = await asyncio.gather(*(fill(port) for _ in range(12)))
            for _ in range(50):
                promised, limit = _core.receive_memory()
                assert limit == bound
                assert promised <= bound
                await asyncio.sleep(0.01)
            stop.set()
            for writer in writers:
                writer.close()
            await asyncio.wait_for(asyncio.gather(*(writer.wait_closed() for writer in writers)), 60)
            await until(lambda: ended == len(writers), "the other ends to be closed too")
        finally:
            mstcp.limit_receive_memory(1 << 30)


@pytest.mark.parametrize("is_aborted", [False, True])
async def test_a_closed_connection_holds_no_receive_memory(is_aborted: bool) -> None:
    """Other connections would get the least window, until the garbage collector comes."""
    gc.collect()
    before, _ = _core.receive_memory()
    echo = EchoServer()
    async with await mstcp.start_server(echo.echo, "127.0.0.1", reconnect_timeout=0.2) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        kept = [writer.transport, *server._reception.connections]
        assert len(kept) == 2
        assert _core.receive_memory()[0] > before
        if is_aborted:
            writer.transport.abort()
        writer.close()
        await until(lambda: not echo.open, "the server's end to close")
        await until(lambda: _core.receive_memory()[0] <= before, "the promises to be given back")


@pytest.mark.parametrize("value", [0, -1, float("nan"), "10", None])
def test_limits_that_make_no_sense_are_refused_by_name(value: Any) -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="half_open_streams must be a number from 1 on"):
        ServerLimits(half_open_streams=value)
    with pytest.raises(mstcp.LocalProtocolError, match="a number of bytes"):
        mstcp.limit_receive_memory(value if value != 0 else -5)


def half_open(dropped: list[str]) -> HalfOpen[str]:
    """Return a full table of two honest streams and six of a flood, a second apart."""
    table = HalfOpen[str](8)
    for number in range(8):
        address = "honest" if number < 2 else "flood"
        name = f"{address}{number}"
        table.add(name, address, float(number), functools.partial(dropped.append, name))
    return table


def test_the_address_with_most_half_open_streams_loses_its_oldest_first() -> None:
    dropped: list[str] = []
    table = half_open(dropped)
    assert table.is_full
    assert table.make_room(10.0) == 2
    assert dropped == ["flood2", "flood3"]
    assert len(table) == 6
    assert table.make_room(10.0) == 0


def test_half_open_streams_have_a_second() -> None:
    dropped: list[str] = []
    table = half_open(dropped)
    assert table.make_room(0.9) == 0
    assert table.make_room(1.5) == 1
    assert dropped == ["honest0"]
