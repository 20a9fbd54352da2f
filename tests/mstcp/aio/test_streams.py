"""Connections behave as people know it of asyncio's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mstcp
from mstcp import StreamReader, StreamSpec, StreamWriter, blocking
from tests.fakes.connections import echo, serving
from tests.fakes.flow_controller import FlowController
from tests.fakes.waiting import TIMEOUT_S, until

SOON_S = 3.0
"""Less than the 5 s after which a connection without streams is lost."""


def streams(count: int) -> list[StreamSpec]:
    return [StreamSpec()] * count


# --- wrong options are found before the first packet --------------------------------------------------------
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("reorder_buffer_bytes", -1),
        ("send_buffer_bytes", 0),
        ("receive_buffer_bytes", -5),
        ("packet_bytes", 20),
        ("seed", -1),
        ("seed", 2**64),
        ("reconnect_timeout", -1.0),
        ("reconnect_timeout", float("nan")),
        ("connect_timeout", 0),
        ("handshake_timeout", "soon"),
        ("secret", "text"),
        ("secret", b""),
        ("rate", 0.0),
        ("limit", 0),
        ("sock", 7),
        ("early_data", "text"),
        ("early_data", None),
        ("source_address", 5),
        ("server_hostname", 5),
        ("ssl", "yes"),
        ("max_paths", "4"),
        ("max_announced", -1),
        ("controller", 5),
        ("streams", 5),
        ("streams", "two"),
        ("streams", [5]),
        ("source_port", "5001"),
        ("source_port", 65_536),
        ("rate_bps", "5e6"),
        ("delay_s", -1.0),
        ("delay_s", "soon"),
        ("delay_s", 2**70),
        ("path", "S0"),
        ("path", 5),
        ("priority", 256),
        ("priority", True),
    ],
)
async def test_an_option_out_of_range_is_refused_before_connecting(option: str, value: object) -> None:
    wrong: Any = {option: value}
    if option in StreamSpec.__dataclass_fields__:
        wrong = {"streams": [StreamSpec(**wrong)]}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with pytest.raises(mstcp.LocalProtocolError, match=option):
            await mstcp.open_connection(*listener.getsockname(), **wrong)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(("address", "told"), [("192.0.2.7", "Cannot assign"), ("nowhere", "not known")])
async def test_an_address_that_is_not_ours_is_named(address: str, told: str) -> None:
    with pytest.raises(OSError, match=f"cannot connect from address {address}: .*{told}"):
        await mstcp.open_connection("127.0.0.1", 9, source_address=address)


async def test_a_source_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = [StreamSpec(port), StreamSpec()]
        with pytest.raises(OSError, match=f"cannot connect from port {port}: Address already in use"):
            await mstcp.open_connection("127.0.0.1", 9, streams=given)


@pytest.mark.parametrize("count", [1, 2])
async def test_source_ports_that_are_used_are_named(count: int) -> None:
    async with serving() as address:
        with contextlib.ExitStack() as free:
            probes = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
            used = [StreamSpec(probe.getsockname()[1]) for probe in probes]
        told = f"cannot connect from port {used[0].source_port} to 127.0.0.1 port {address[1]}: another"
        async with mstcp.open_connection(*address, streams=used):
            with pytest.raises(OSError, match=told):
                await mstcp.open_connection(*address, streams=used)


def test_arguments_are_taken_as_by_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    with blocking.create_server(("", 0), plain=True) as listener:
        host, port = listener.getsockname()
        assert host == "0.0.0.0"
        with blocking.create_connection(("127.0.0.1", port), 5.0, ("127.0.0.1", 0)) as sock:
            assert sock.gettimeout() == 5.0 and sock.getsockname()[0] == "127.0.0.1"
            taken = sock.getsockname()
        with pytest.raises(OSError, match=f"cannot connect from address 127.0.0.1 port {taken[1]}"):
            blocking.create_connection(("127.0.0.1", port), 5.0, taken)
        monkeypatch.setattr(socket, "getdefaulttimeout", lambda: 7.0)
        unnamed: Any = socket._GLOBAL_DEFAULT_TIMEOUT  # type: ignore[attr-defined]  # as http.client does
        with blocking.create_connection(("127.0.0.1", port), unnamed) as sock:
            assert sock.gettimeout() == 7.0
        with pytest.raises(mstcp.LocalProtocolError, match="source_address with a port is for one stream"):
            blocking.create_connection(("127.0.0.1", port), 5.0, ("127.0.0.1", 9), streams=streams(2))


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "soon", 2**70])
def test_a_timeout_that_is_none_is_refused(timeout: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with pytest.raises(ValueError, match="a timeout is a number of seconds"):
            blocking.create_connection(listener.getsockname(), timeout=timeout)
        with pytest.raises(BlockingIOError):
            listener.accept()
    with pytest.raises(ValueError, match="a timeout is a number of seconds"):
        blocking.create_server(("127.0.0.1", 0), timeout=timeout)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("objective", 5),
        ("paths", 5),
        ("paths", [5]),
        ("paths", [mstcp.RequestedPath(("T0",), 5e6)]),
        ("paths", [mstcp.RequestedPath(("T0", "S0", "T2"), -5e6)]),
        ("paths", [mstcp.RequestedPath((5, 6), 5e6)]),  # type: ignore[arg-type]
        ("max_paths", 0),
        ("max_paths", 4.0),
        ("may_grow", "yes"),
        ("controller", "no-port"),
        ("controller", "127.0.0.1:70000"),
    ],
)
async def test_what_is_asked_of_a_controller_is_checked_before_it_is_asked(
    option: str, value: object
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as controller:
        controller.setblocking(False)
        host, port = controller.getsockname()
        wrong: Any = {"rate": 5e6, "controller": f"{host}:{port}", option: value}
        with pytest.raises(mstcp.LocalProtocolError, match=option):
            await mstcp.open_connection("127.0.0.1", 9, **wrong)
        with pytest.raises(BlockingIOError):
            controller.accept()


@pytest.mark.parametrize(
    ("host", "port"),
    [(5, 80), (b"127.0.0.1", 80), ("127.0.0.1", 0), ("127.0.0.1", 65_536), ("127.0.0.1", 80.0)],
)
async def test_what_is_no_address_is_refused(host: Any, port: Any) -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="host|port"):
        await mstcp.open_connection(host, port)
    if port != 0:  # a server's is then the system's choice
        with pytest.raises(mstcp.LocalProtocolError, match="host|port"):
            await mstcp.start_server(echo, host, port)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("backlog", 0),
        ("plain", "maybe"),
        ("plain_after", -1),
        ("hello_timeout", 0),
        ("limits", 5),
        ("limit", 0),
        ("plain", 1),
        ("early_data", b"GET"),
        ("start_serving", "no"),
        ("reuse_port", 5),
        ("announce", [("somewhere", 80)]),
        ("announce", [("192.0.2.1", 0)]),
        ("ssl", True),
        ("on_rejected", "log"),
    ],
)
async def test_a_servers_option_out_of_range_is_refused(option: str, value: object) -> None:
    wrong: Any = {option: value}
    with pytest.raises(mstcp.LocalProtocolError, match=option):
        await mstcp.start_server(echo, "127.0.0.1", **wrong)


# --- applications that fail ---------------------------------------------------------------------------------
class Failing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raise ValueError("connection_made failed")


def fail() -> asyncio.Protocol:
    raise ValueError("the factory failed")


@pytest.mark.parametrize("factory", [fail, Failing])
@pytest.mark.parametrize("count", [1, 2, 0])
async def test_a_client_whose_protocol_fails_leaves_no_stream_and_no_lease(
    factory: Callable[[], asyncio.Protocol], count: int
) -> None:
    ended = asyncio.Event()

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(mstcp.ConnectionLost, ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    async with contextlib.AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(answer, plain=count == 1))
        how: dict[str, Any] = {"streams": streams(count)}
        if not count:
            controller = await stack.enter_async_context(FlowController())
            how = {"rate": 8e6, "controller": controller.address}
        with pytest.raises(ValueError, match="failed"):
            await mstcp.create_connection(factory, *address, join_timeout=0.0, **how)
        await asyncio.wait_for(ended.wait(), TIMEOUT_S)
        if not count:
            await controller.wait_for(lambda: controller.released == ["flow-1"])


@pytest.mark.parametrize("factory", [fail, Failing])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_server_whose_protocol_fails_tells_the_client_at_once(
    factory: Callable[[], asyncio.Protocol], count: int
) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    server = await mstcp.create_server(factory, "127.0.0.1", plain=count == 1)
    async with server:
        began_s = time.monotonic()
        reader, writer = await mstcp.open_connection(*server.sockets[0].getsockname(), streams=streams(count))
        with pytest.raises(ConnectionError):
            await reader.readexactly(1)
        assert time.monotonic() - began_s < SOON_S
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        assert "failed" in str(told[0]["exception"])
        assert not server._reception.by_id


# --- writing ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2])
async def test_what_is_no_bytes_is_not_written(count: int) -> None:
    async with serving() as address:
        async with mstcp.open_connection(*address, streams=streams(count)) as (reader, writer):
            for wrong in (5, "text", None, [1, 2]):
                anything: Any = wrong
                with pytest.raises(TypeError, match="bytes"):
                    writer.write(anything)
                with pytest.raises(TypeError, match="bytes"):
                    writer.transport.try_write(anything)
            for right in (b"a", bytearray(b"b"), memoryview(b"c")):
                writer.write(right)
            assert await reader.readexactly(3) == b"abc"


@pytest.mark.parametrize("count", [1, 2])
async def test_writing_after_close_warns_and_does_not_raise(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as address:
        _, writer = await mstcp.open_connection(*address, streams=streams(count))
        writer.close()
        with caplog.at_level(logging.WARNING, "mstcp"):
            for _ in range(5):
                writer.write(b"late")
        assert "closed connection" in caplog.text
        await writer.wait_closed()


# --- files --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("how", ["loop", "transport"])
async def test_files_are_sent_from_any_place(count: int, how: str, tmp_path: Path) -> None:
    data = random.Random(4).randbytes(9_000_000 if how == "transport" else 300_000)
    path = tmp_path / "file"
    path.write_bytes(data)
    offset, size = 4097, len(data) - 10_000
    async with serving() as address:
        async with mstcp.open_connection(*address, streams=streams(count), limit=1 << 20) as (reader, writer):
            with path.open("rb") as file:
                reading = asyncio.create_task(reader.readexactly(size))
                if how == "loop":
                    loop = asyncio.get_running_loop()
                    sent = await loop.sendfile(writer.transport, file, offset, size)
                else:
                    sent = await writer.transport.sendfile(file, offset, size)
                assert sent == size
                assert await asyncio.wait_for(reading, TIMEOUT_S) == data[offset : offset + size]


# --- cancelling ---------------------------------------------------------------------------------------------
async def test_opening_that_is_cancelled_closes_no_descriptor_that_the_loop_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its number may be another connection's next, which the loop would then forget."""
    loop: Any = asyncio.get_running_loop()
    close, watched = socket.socket.close, []

    def checked(sock: socket.socket) -> None:
        if sock.fileno() in loop._selector.get_map():
            watched.append(sock)
        close(sock)

    async with serving() as address:
        monkeypatch.setattr(socket.socket, "close", checked)
        for turns in range(40):
            opening = asyncio.ensure_future(mstcp.open_connection(*address, streams=streams(3)))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            if not opening.cancelled():
                opening.result()[1].transport.abort()
        monkeypatch.undo()
    assert not watched


# --- context managers, iteration, servers -------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2])
async def test_a_block_closes_its_connection_and_aborts_it_when_it_fails(count: int) -> None:
    ends: asyncio.Queue[bool] = asyncio.Queue()

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await reader.read()
            ends.put_nowait(True)
        except ConnectionError:
            ends.put_nowait(False)
        writer.close()

    async with serving(answer) as address:
        async with mstcp.open_connection(*address, streams=streams(count)) as (_, writer):
            writer.write(b"whole")
        assert writer.is_closing()
        assert await asyncio.wait_for(ends.get(), TIMEOUT_S)
        with pytest.raises(KeyError):
            opening = mstcp.open_connection(*address, streams=streams(count), join_timeout=0.0)
            async with opening as (_, writer):
                writer.write(b"cut")
                raise KeyError
        assert not await asyncio.wait_for(ends.get(), TIMEOUT_S)
        transport, _ = await mstcp.create_connection(asyncio.Protocol, *address, streams=streams(count))
        async with transport:
            transport.write(b"whole")
        assert await asyncio.wait_for(ends.get(), TIMEOUT_S)


async def test_a_connection_can_be_opened_by_a_task_and_read_line_by_line() -> None:
    async with serving() as address:
        opening = asyncio.create_task(mstcp.open_connection(*address, streams=streams(2)))
        reader, writer = await opening
        async with writer:
            writer.write(b"one\ntwo\nthree")
            writer.write_eof()
            assert [line async for line in reader] == [b"one\n", b"two\n", b"three"]


@pytest.mark.parametrize("cut", [1, 3, 7, 100])
async def test_the_reader_reads_as_asyncios_does(cut: int) -> None:
    """Pieces of any size, through every method, in any order."""
    loop = asyncio.get_running_loop()
    data = random.Random(6).randbytes(5000).replace(b"\n", b"x") + b"\nrest\n" + bytes(500)
    ours, theirs = StreamReader(1 << 16, loop), asyncio.StreamReader(1 << 16)
    for start in range(0, len(data), cut):
        ours.feed_data(data[start : start + cut])
        theirs.feed_data(data[start : start + cut])
    for reader in (ours, theirs):
        reader.feed_eof()
    draw = random.Random(cut)
    while not theirs.at_eof():
        size = draw.randrange(1, 50)
        if draw.random() < 0.7:
            wanted = min(size, len(theirs._buffer))  # type: ignore[attr-defined]
            assert await ours.readexactly(wanted) == await theirs.readexactly(wanted)
        else:
            assert await ours.readline() == await theirs.readline()
        assert ours.at_eof() == theirs.at_eof()
    with pytest.raises(asyncio.IncompleteReadError):
        await ours.readexactly(1)
    assert await ours.read() == b""


@pytest.mark.parametrize("method", ["close_clients", "abort_clients"])
async def test_a_server_closes_and_aborts_its_clients(method: str) -> None:
    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"here")
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async with await mstcp.start_server(answer, "127.0.0.1") as server:
        address = server.sockets[0].getsockname()
        pairs = [await mstcp.open_connection(*address, streams=streams(count)) for count in (2, 3)]
        for reader, _ in pairs:
            assert await reader.readexactly(4) == b"here"
        getattr(server, method)()
        for reader, writer in pairs:
            if method == "close_clients":
                assert await asyncio.wait_for(reader.read(), TIMEOUT_S) == b""
            else:
                with pytest.raises(ConnectionError):
                    await asyncio.wait_for(reader.read(), TIMEOUT_S)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


# --- sockets of the application's ---------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2])
async def test_sockets_that_are_connected_already_are_used(count: int) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    async with await mstcp.start_server(echo, sock=listener) as server:
        assert server.sockets[0] is listener
        socks = [socket.create_connection(listener.getsockname()) for _ in range(count)]
        ports = [sock.getsockname()[1] for sock in socks]
        given = socks[0] if count == 1 else socks
        async with mstcp.open_connection(sock=given, join_timeout=20) as (reader, writer):
            assert [stream.source_port for stream in writer.transport.streams()] == ports
            writer.write(b"here")
            assert await reader.readexactly(4) == b"here"
        server.close_clients()
    with pytest.raises(mstcp.LocalProtocolError, match="leave one of them out"):
        with socket.socket() as sock:
            await mstcp.open_connection("127.0.0.1", 9, sock=sock)
    with pytest.raises(mstcp.LocalProtocolError, match="host and port are missing"):
        await mstcp.open_connection()


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="SO_REUSEPORT is not there")
async def test_streams_come_back_from_their_own_addresses_to_their_own() -> None:
    """Also the sockets that the application has connected: two may be over two interfaces."""
    ways = [("127.0.0.2", "127.0.0.1"), ("127.0.0.3", "127.0.0.5")]

    def is_closed(sock: socket.socket) -> bool:
        return sock.fileno() < 0

    def has_streams(writer: StreamWriter, count: int) -> bool:
        return writer.transport.alive_streams == count

    def used(transport: mstcp.ConnectionTransport) -> list[tuple[str, str]]:
        socks = transport.get_extra_info("sockets")
        return sorted((sock.getsockname()[0], sock.getpeername()[0]) for sock in socks if sock.fileno() >= 0)

    async with serving(host="0.0.0.0") as (_, port):
        specs = [StreamSpec(local=local, remote=(remote, port)) for local, remote in ways]
        given = [
            socket.create_connection((remote, port), source_address=(local, 0)) for local, remote in ways
        ]
        for how in ({"sock": given}, {"host": "127.0.0.1", "port": port, "streams": specs}):
            arguments: Any = how
            async with mstcp.open_connection(**arguments) as (reader, writer):
                for index in range(len(ways)):
                    lost = writer.get_extra_info("sockets")[index]
                    lost.shutdown(socket.SHUT_RDWR)
                    await until(functools.partial(is_closed, lost))
                    await until(functools.partial(has_streams, writer, len(ways)))
                assert used(writer.transport) == ways
                writer.write(b"x")
                assert await asyncio.wait_for(reader.readexactly(1), TIMEOUT_S) == b"x"
    for wrong in (StreamSpec(local="somewhere"), StreamSpec(remote=("host.example", 9))):
        with pytest.raises(mstcp.LocalProtocolError, match="of a stream is an IP address"):
            await mstcp.open_connection("127.0.0.1", 9, streams=[wrong])


@pytest.mark.parametrize("join_timeout", [None, 0.0])
async def test_a_server_that_does_not_answer_costs_no_more_than_its_timeout(
    join_timeout: float | None,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began_s = time.monotonic()
        with pytest.raises((mstcp.MstcpError, OSError)):
            reader, writer = await mstcp.open_connection(
                *silent.getsockname(), streams=streams(2), handshake_timeout=0.2, join_timeout=join_timeout
            )
            writer.close()
            await reader.read()
            await writer.wait_closed()
        assert time.monotonic() - began_s < SOON_S


@pytest.mark.parametrize(("join_timeout", "who"), [(None, "the peer is"), (0.0, "{host}:{port} is")])
async def test_a_peer_that_is_not_mstcp_is_named(join_timeout: float | None, who: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()

        def answer() -> None:
            socks = [listener.accept()[0] for _ in range(2)]
            for sock in socks:
                with sock, contextlib.suppress(ConnectionError):
                    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = asyncio.create_task(asyncio.to_thread(answer))
        with pytest.raises(
            mstcp.RemoteProtocolError, match=who.format(host=host, port=port) + " not an MSTCP"
        ):
            reader, writer = await mstcp.open_connection(
                host, port, streams=streams(2), join_timeout=join_timeout
            )
            writer.close()
            await reader.read()
            await writer.wait_closed()
        await asyncio.wait_for(answering, TIMEOUT_S)
