"""The server: telling plain TCP from MSTCP, joining streams, rejecting what is wrong while others go on."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import pytest

import mstcp
from mstcp import StreamSpec
from tests.fakes.connections import ask, serving
from tests.fakes.echo_server import EchoServer, echo_server
from tests.fakes.raw_client import RawClient, refusal_of
from tests.fakes.tcp_server import tcp_client
from tests.fakes.waiting import until
from tests.vectors.generate import MAGIC

# Error codes of docs/protocol.md.
UNKNOWN_CONNECTION, NOT_AUTHORISED = 3, 4


async def ask_plainly(port: int, data: bytes, *, eof: bool = True) -> bytes:
    """Send raw bytes over plain TCP and return what comes back; b"" if the server resets."""
    async with tcp_client(port) as (reader, writer):
        writer.write(data)
        if eof:
            writer.write_eof()
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(reader.read(), 20)
    return b""


def hello(count: int = 2, payload: int = 100) -> bytes:
    return RawClient(count=count, payload=payload).hello()


async def test_both_kinds_at_one_server() -> None:
    async with echo_server() as server:
        answers = await asyncio.gather(
            ask_plainly(server.port, b"plain"),
            ask(server.port, b"streams"),
            ask_plainly(server.port, b"\x93MSTCP, not quite"),
            ask(server.port, b"more", 5),
            ask(server.port, b"one", 1),
        )
        assert list(answers) == [b"plain", b"streams", b"\x93MSTCP, not quite", b"more", b"one"]
        assert sorted(server.protocols) == ["mstcp", "mstcp", "tcp", "tcp", "tcp"]


async def test_short_and_empty_plain_connections() -> None:
    async with echo_server() as server:
        assert await ask_plainly(server.port, b"") == b""
        assert await ask_plainly(server.port, b"\x93") == b"\x93"
        assert await ask_plainly(server.port, MAGIC[:7]) == MAGIC[:7]
        assert server.protocols == ["tcp"] * 3


async def test_a_plain_client_that_waits_for_the_server_to_speak() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome\n")
        writer.write(await reader.readline())
        writer.close()

    async with serving(greet, plain_after=0.05) as address:
        async with tcp_client(address[1]) as (reader, writer):
            assert await reader.readline() == b"welcome\n"
            writer.write(b"\x93thanks\n")
            assert await reader.readline() == b"\x93thanks\n"


async def test_a_hello_after_the_silence_is_an_error_and_no_data() -> None:
    async with echo_server(plain_after=0.05) as server:
        async with tcp_client(server.port) as (reader, writer):
            await until(lambda: server.protocols)
            opening = hello()
            writer.write(opening[:5])
            await asyncio.sleep(0.05)
            writer.write(opening[5:])
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            await until(lambda: server.errors)
            assert "already treated as plain TCP" in str(server.errors[0])


async def test_plain_true_takes_everything_as_it_is() -> None:
    async with echo_server(plain=True) as server:
        opening = hello()
        assert await ask_plainly(server.port, opening) == opening


async def test_plain_false_rejects_what_is_no_hello() -> None:
    async with echo_server(plain=False) as server:
        assert await ask_plainly(server.port, b"GET / HTTP/1.1\r\n") == b""
        await until(lambda: server.rejected)
        assert server.rejected == ["the stream does not begin with the MSTCP magic"]
        assert await ask(server.port, b"streams") == b"streams"


@pytest.mark.parametrize(
    ("opening", "reason"),
    [
        (MAGIC + b"\xff\xff\xff\xff", "announces 4294967295 bytes"),
        (MAGIC + b"\0\0\0\x03\x08\x03\x40" + bytes(32), "cut short"),
        (MAGIC + b"\0\0\0\x03\x08\x03\xff" + bytes(32), "cut short"),
        (MAGIC + b"\0\0\0\x02\x08\x03" + bytes(32), "connection_id is not 16 bytes"),
        (MAGIC + b"\0\0\0\x50", "ended within its hello"),
        (hello(count=65), "stream_count is not 1 to 64"),
        (hello(payload=0), "frame_payload_bytes is not"),
    ],
)
async def test_a_wrong_hello_is_told_and_other_connections_go_on(opening: bytes, reason: str) -> None:
    async with echo_server() as server:
        streams = [StreamSpec()] * 2
        async with mstcp.open_connection("127.0.0.1", server.port, streams=streams) as (reader, writer):
            assert await ask_plainly(server.port, opening) == b""
            await until(lambda: server.rejected)
            assert reason in server.rejected[0]
            writer.write(b"still here")
            assert await reader.readexactly(10) == b"still here"


async def test_streams_that_do_not_fit_their_connection_are_refused_alone() -> None:
    async with echo_server() as server:
        client = RawClient()
        first_reader, first = await asyncio.open_connection("127.0.0.1", server.port)
        await client.exchange(first_reader, first)
        await until(lambda: server.protocols)
        other = RawClient(payload=99)
        other.key = client.key
        for wrong, code, reason in [
            (other.hello(1), NOT_AUTHORISED, "contradicts"),
            (client.hello(), NOT_AUTHORISED, "came again"),
            (client.hello(2, key=bytes(32)), NOT_AUTHORISED, "does not prove"),
            (RawClient(bytes(16)).hello(1), UNKNOWN_CONNECTION, "not here"),
        ]:
            assert refusal_of(await ask_plainly(server.port, wrong)) == code
            await until(lambda: server.rejected)
            assert reason in server.rejected.pop()
        second_reader, second = await asyncio.open_connection("127.0.0.1", server.port)
        await client.exchange(second_reader, second, 1)
        # The same id once more.
        assert refusal_of(await ask_plainly(server.port, client.hello(1))) == NOT_AUTHORISED
        await until(lambda: server.rejected)
        assert "twice" in server.rejected.pop()
        assert server.protocols == ["mstcp"]
        assert not first_reader.at_eof()
        for writer in (first, second):
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await until(lambda: server.errors)


async def test_a_hello_that_never_ends_is_not_waited_for_forever() -> None:
    async with echo_server(hello_timeout=0.2) as server:
        assert await ask_plainly(server.port, MAGIC + b"\0", eof=False) == b""
        await until(lambda: server.rejected)
        assert server.rejected == ["no complete hello came in time"]


async def test_a_secret_keeps_others_out() -> None:
    async with echo_server(plain=False, secret=b"ours") as server:
        assert await ask(server.port, b"knows", secret=b"ours") == b"knows"
        for secret in (None, b"theirs"):
            with pytest.raises(mstcp.RemoteProtocolError, match="refuses the stream: the proof"):
                await ask(server.port, b"does not", secret=secret)
        refused = "the hello does not prove that its sender knows the shared secret"
        await until(lambda: server.rejected.count(refused) == 2)
    with pytest.raises(mstcp.LocalProtocolError, match="plain=False"):
        await mstcp.start_server(EchoServer().echo, secret=b"ours")


async def test_the_servers_conventions() -> None:
    echo = EchoServer()
    server = await mstcp.start_server(echo.echo, start_serving=False)
    assert server.sockets[0].getsockname()[0] == "127.0.0.1"
    assert not server.is_serving()
    forever = asyncio.create_task(server.serve_forever())
    await until(server.is_serving)
    port = server.sockets[0].getsockname()[1]
    async with mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2) as (reader, writer):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        server.close()
        await server.wait_closed()
        await forever
        assert server.sockets == ()
        assert not server.is_serving()
        with pytest.raises(ConnectionRefusedError):
            await mstcp.open_connection("127.0.0.1", port)
        # What is open stays open.
        writer.write(b"y")
        assert await reader.readexactly(1) == b"y"


async def test_closing_the_server_drops_half_open_connections() -> None:
    async with echo_server() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(hello()[:30])
        await asyncio.sleep(0.05)
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_rejected_stream_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(plain=False) as (_, port):
        await ask_plainly(port, b"12345678")
        await until(lambda: caplog.text)
        assert "rejected: the stream does not begin with the MSTCP magic" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this host's on Linux alone")
async def test_streams_from_one_address_reach_the_same_of_servers_that_share_a_port() -> None:
    servers: list[mstcp.Server] = []
    served: list[int] = []

    async def serve(number: int, port: int) -> None:
        async def note(reader: mstcp.StreamReader, writer: mstcp.StreamWriter) -> None:
            served.append(number)
            await reader.read()
            writer.close()

        servers.append(await mstcp.start_server(note, "127.0.0.1", port, reuse_port=True))

    await serve(0, 0)
    address = servers[0].sockets[0].getsockname()
    await serve(1, address[1])
    for host in range(2, 22):
        opening = mstcp.open_connection(
            *address, streams=[StreamSpec()] * 2, source_address=f"127.0.0.{host}", join_timeout=10
        )
        async with opening as (_, writer):
            assert writer.transport.alive_streams == 2
    assert len(served) == 20
    assert set(served) == {0, 1}
    for server in servers:
        server.close()
        await server.wait_closed()
