"""TLS on every stream: certificates are checked, the hello is inside, and one plain stream is plain TLS."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trustme

import mstcp
from mstcp import StreamReader, StreamSpec, StreamWriter, blocking
from tests.fakes.connections import ask, echo, serving
from tests.fakes.tcp_server import echo as echo_of_tcp
from tests.fakes.tcp_server import tcp_client, tcp_server
from tests.fakes.waiting import until

AUTHORITY = trustme.CA()
OTHER_AUTHORITY = trustme.CA()


def server_context(name: str = "localhost", authority: trustme.CA = AUTHORITY) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name, "127.0.0.1", "::1").configure_cert(context)
    return context


def client_context(authority: trustme.CA = AUTHORITY) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@contextlib.asynccontextmanager
async def tls_server(
    context: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[int, list[str]]]:
    """Yield the port of an echo server and what it rejects."""
    rejected: list[str] = []
    options |= {
        "ssl": context or server_context(),
        "on_rejected": lambda error, _: rejected.append(str(error)),
    }
    async with serving(**options) as (_, port):
        yield port, rejected


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("count", [1, 3])
async def test_bytes_arrive_and_each_direction_ends_apart(
    count: int, host: str, version: ssl.TLSVersion
) -> None:
    data = random.Random(count).randbytes(3_000_000)
    context = client_context()
    context.minimum_version = context.maximum_version = version
    async with tls_server(host=host) as (port, _):
        assert await ask(port, data, count, host, ssl=context) == data


async def test_paced_streams_carry_tls() -> None:
    data = random.Random(1).randbytes(300_000)
    streams = [StreamSpec(rate_bps=2e7), StreamSpec(rate_bps=1e7)]
    async with tls_server() as (port, _):
        assert await ask(port, data, streams, ssl=client_context()) == data


@pytest.mark.parametrize("count", [1, 2])
async def test_certificates_are_checked(count: int) -> None:
    async with tls_server() as (port, rejected):
        for options in (
            {"ssl": client_context(OTHER_AUTHORITY)},
            {"ssl": client_context(), "server_hostname": "another.example"},
            {"ssl": True},
        ):
            with pytest.raises(ssl.SSLCertVerificationError):
                await ask(port, b"x", count, **options)
        assert await ask(port, b"x", count, ssl=client_context(), server_hostname="localhost") == b"x"
    assert len(rejected) == 3 * count


@pytest.mark.parametrize("count", [1, 2])
async def test_a_peer_without_tls_is_named_as_such(count: int) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(TimeoutError, match=r"within 0\.1 s: it may not use TLS"),
    ):
        await ask(silent.getsockname()[1], b"x", count, ssl=client_context(), handshake_timeout=0.1)


async def test_a_server_may_ask_clients_for_certificates() -> None:
    context = server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    AUTHORITY.configure_trust(context)
    known = client_context()
    AUTHORITY.issue_cert("client.example").configure_cert(known)
    async with tls_server(context) as (port, _):
        assert await ask(port, b"x", 2, ssl=known) == b"x"
        with pytest.raises((mstcp.MstcpError, OSError)):
            await ask(port, b"x", 2, ssl=client_context())


async def test_a_stream_without_tls_is_rejected_and_harms_no_other() -> None:
    async with tls_server() as (port, rejected):
        with pytest.raises((mstcp.MstcpError, OSError)):
            await ask(port, b"x", 2)
        assert await ask(port, b"x", 2, ssl=client_context()) == b"x"
    assert any("TLS" in reason for reason in rejected)


async def test_plain_clients_speak_tls_as_any() -> None:
    async with tls_server() as (port, _):
        async with tcp_client(port, ssl=client_context()) as (reader, writer):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"


async def test_a_single_stream_speaks_tls_to_any_server() -> None:
    async with tcp_server(echo_of_tcp, server_context()) as port:
        async with mstcp.open_connection("127.0.0.1", port, ssl=client_context()) as (reader, writer):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            assert writer.get_extra_info("cipher") is not None
            assert writer.get_extra_info("peercert")["subjectAltName"]


async def test_tcps_end_without_tlss_is_no_end() -> None:
    """An attacker on the path could end a stream early."""
    listener = socket.create_server(("127.0.0.1", 0))
    context = server_context()

    def serve() -> None:
        sock, _ = listener.accept()
        tls = context.wrap_socket(sock, server_side=True)
        tls.sendall(b"cut")
        socket.socket(fileno=tls.detach()).close()

    with listener:
        serving_thread = threading.Thread(target=serve)
        serving_thread.start()
        port = listener.getsockname()[1]
        reader, writer = await mstcp.open_connection("127.0.0.1", port, ssl=client_context())
        with pytest.raises(mstcp.ConnectionLost):
            await asyncio.wait_for(reader.read(), 20)
        serving_thread.join()
        writer.close()


@pytest.mark.parametrize("count", [1, 2])
async def test_a_transport_tells_of_tls_what_asyncios_own_does(count: int) -> None:
    """What aiohttp pins certificates by, and servers tell https from http."""
    names = ("sslcontext", "ssl_object", "peercert", "cipher", "compression")
    seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await seen.put({name: writer.get_extra_info(name) for name in names})
        writer.close()

    ours, theirs = server_context(), client_context()
    async with serving(note, ssl=ours, plain=count == 1) as address:
        transport, _ = await mstcp.create_connection(
            asyncio.Protocol, *address, ssl=theirs, streams=[StreamSpec()] * count
        )
        accepted = await seen.get()
        expected = {}
        if count == 1:
            asyncios, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, *address, ssl=theirs
            )
            expected = {name: asyncios.get_extra_info(name) for name in names}
            asyncios.abort()
        assert transport.get_extra_info("sslcontext") is theirs and accepted["sslcontext"] is ours
        ssl_object = transport.get_extra_info("ssl_object")
        assert ssl_object.getpeercert(binary_form=True)
        for name in ("peercert", "cipher", "compression"):
            assert transport.get_extra_info(name) == expected.get(name, transport.get_extra_info(name))
        transport.abort()
        await transport.wait_closed()


async def test_application_protocols_are_agreed() -> None:
    server, client = server_context(), client_context()
    server.set_alpn_protocols(["demo/2", "demo/1"])
    client.set_alpn_protocols(["demo/1"])
    async with tls_server(server) as (port, _):
        streams = [StreamSpec()] * 2
        async with mstcp.open_connection("127.0.0.1", port, streams=streams, ssl=client) as (_, writer):
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "demo/1"


async def test_a_lost_stream_comes_back_with_tls() -> None:
    async with tls_server() as (port, _):
        opening = mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2, ssl=client_context())
        async with opening as (reader, writer):
            first = writer.get_extra_info("sockets")
            first[0].shutdown(socket.SHUT_RDWR)
            for number in range(100):
                writer.write(bytes([number]) * 1000)
                assert await asyncio.wait_for(reader.readexactly(1000), 20) == bytes([number]) * 1000
                if number > 5 and not set(writer.get_extra_info("sockets")) <= set(first):
                    break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("the stream did not come back")


@pytest.mark.parametrize("count", [1, 2])
def test_blocking_sockets_carry_tls(count: int) -> None:
    data = random.Random(count).randbytes(2_000_000)
    with blocking.create_server(("127.0.0.1", 0), ssl=server_context(), timeout=20) as listener:
        address = listener.getsockname()
        streams = [StreamSpec()] * count
        with blocking.create_connection(address, streams=streams, ssl=client_context(), timeout=20) as ours:
            ours.sendall(b"first")
            theirs, _ = listener.accept()
            with theirs:
                theirs.settimeout(20)
                assert theirs.recv(100) == b"first"
                sender = threading.Thread(target=theirs.sendall, args=(data,))
                sender.start()
                with ours.makefile("rb") as file:
                    assert file.read(len(data)) == data
                sender.join()
        with pytest.raises(ssl.SSLCertVerificationError):
            blocking.create_connection(address, streams=streams, ssl=client_context(OTHER_AUTHORITY))


async def test_wrong_use_is_named() -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="server_hostname"):
        await mstcp.open_connection("127.0.0.1", 1, server_hostname="x")
    with pytest.raises(mstcp.LocalProtocolError, match="SSLContext"):
        await mstcp.open_connection("127.0.0.1", 1, ssl="yes")  # type: ignore[arg-type]
    with pytest.raises(mstcp.LocalProtocolError, match="SSLContext"):
        await mstcp.start_server(echo, ssl=True)  # type: ignore[arg-type]


# --- TLS within a connection --------------------------------------------------------------------------------
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("count", [1, 2])
async def test_tls_is_begun_within_a_connection(count: int, early: bool) -> None:
    """Also where the reader holds the beginning of the peer's TLS already (cpython 142352)."""
    inside, outside = server_context(), client_context()

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        assert await reader.readexactly(8) == b"STARTTLS"
        if early:
            await until(lambda: reader._pieces or reader._buffer)
        else:
            writer.write(b"go")
        await writer.start_tls(inside)
        assert reader._transport is writer.transport
        await echo(reader, writer)

    async with serving(answer) as address:
        async with mstcp.open_connection(*address, streams=[StreamSpec()] * count) as (reader, writer):
            writer.write(b"STARTTLS")
            if not early:
                assert await reader.readexactly(2) == b"go"
            await asyncio.wait_for(writer.start_tls(outside, server_hostname="localhost"), 20)
            assert reader._transport is writer.transport and writer.get_extra_info("sslcontext") is outside
            # More than the reader holds: it has TLS paused, not the connection below.
            data = random.Random(5).randbytes(3_000_000)
            writer.write(data)
            await asyncio.sleep(0.1)
            assert await asyncio.wait_for(reader.readexactly(len(data)), 20) == data


async def test_tls_that_cannot_begin_breaks_the_connection_and_says_why() -> None:
    told: asyncio.Queue[BaseException] = asyncio.Queue()

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await reader.readexactly(8)
            await writer.start_tls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except (OSError, mstcp.MstcpError) as error:
            await told.put(error)
        writer.close()

    async with serving(answer) as address:
        for first in (b"STARTTLSthis is no TLS at all", b"STARTTLS"):
            reader, writer = await mstcp.open_connection(
                *address, streams=[StreamSpec()] * 2, join_timeout=0.0
            )
            writer.write(first)
            if len(first) == 8:
                with pytest.raises(OSError):
                    await asyncio.wait_for(
                        writer.start_tls(ssl.create_default_context(), server_hostname="localhost"), 20
                    )
            assert isinstance(await asyncio.wait_for(told.get(), 20), OSError)
            with contextlib.suppress(OSError):
                await asyncio.wait_for(reader.read(), 20)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
