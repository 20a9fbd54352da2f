"""What the transport makes of its driver's actions, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

import mstcp
from mstcp import ConnectionLost, LocalProtocolError, StreamSpec, sockets
from mstcp.open.connect import open_transport
from mstcp.options import ClientOptions
from tests.fakes.transport import Raw
from tests.fakes.waiting import until


class Taking(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(exc)


async def test_a_stream_that_joins_takes_the_place_of_one_that_is_gone() -> None:
    async with AsyncExitStack() as stack:
        raw, lost = Raw(stack), list[StreamSpec]()
        await raw.open(Taking())
        transport = raw.transport
        ports = [sock.getsockname()[1] for sock in raw.theirs]
        transport.on_lost = lambda spec, _: lost.append(spec)
        sockets.reset(raw.theirs[0])
        await until(lambda: lost)
        assert [spec.source_port for spec in lost] == ports[:1]
        await raw.join()
        ports.append(raw.theirs[2].getsockname()[1])
        await until(lambda: transport.open_ports == set(ports[1:]))
        assert [stream.spec.source_port for stream in transport.shell.streams] == [ports[2], ports[1]]
        assert transport.get_extra_info("sockets") == tuple(s.sock for s in transport.shell.streams)
        transport.set_rates({ports[1]: 3e6})
        assert [stream.rate_bps for stream in transport.streams()] == [0.0, 3e6]
        for index, priority in ((2, 0), (-1, 0), (0, -1), (0, 1 << 32)):
            with pytest.raises(LocalProtocolError):
                transport.set_priority(index, priority)


async def test_the_protocol_is_told_why_once_and_after_the_allocation_is_back() -> None:
    loop, protocol = asyncio.get_running_loop(), Taking()
    released: asyncio.Future[None] = loop.create_future()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        destination = [(socket.AF_INET, listener.getsockname())]
        options = ClientOptions()
        transport = await open_transport(
            destination, options.specs, options, None, on_closed=lambda: released
        )
        transport.set_protocol(protocol)
        transport.start()
        sockets.reset(listener.accept()[0])
    await until(lambda: transport.is_closed)
    transport.abort()
    waiting = asyncio.create_task(transport.wait_closed())
    await asyncio.sleep(0)
    assert not waiting.done() and protocol.told == []
    released.set_result(None)
    await waiting
    (error,) = protocol.told
    assert isinstance(error, ConnectionLost) and error.stream is not None
    assert error is transport.lost


async def test_abort_resets_a_stream_though_the_loop_never_read_it() -> None:
    class Aborting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, mstcp.ConnectionTransport)
            transport.abort()
            self.transport = transport

    protocol = Aborting()
    async with await mstcp.create_server(lambda: protocol, "127.0.0.1", plain=True) as server:
        with socket.create_connection(server.sockets[0].getsockname()) as sock:
            sock.setblocking(False)
            with pytest.raises(ConnectionResetError):
                await asyncio.get_running_loop().sock_recv(sock, 1)
    assert all(stream.sock.fileno() < 0 for stream in protocol.transport.shell.streams)


async def test_a_writer_is_held_back_and_goes_on() -> None:
    protocol, size = Taking(), 1 << 23
    async with await mstcp.create_server(lambda: protocol, "127.0.0.1") as server:
        address = server.sockets[0].getsockname()
        reader, writer = await mstcp.open_connection(*address, streams=[StreamSpec()] * 2)
        writer.write(b"hello")
        await until(lambda: protocol.told)
        (transport,) = server._reception.connections
        transport.set_write_buffer_limits(high=1 << 16)
        transport.write(bytes(size))
        assert protocol.told == [b"hello", "pause"]
        await reader.readexactly(size)
        await until(lambda: protocol.told == [b"hello", "pause", "resume"])
        writer.transport.abort()


async def test_the_loop_leaves_the_sockets_to_threads_and_has_them_back() -> None:
    async with AsyncExitStack() as stack:
        raw = Raw(stack)
        await raw.open(Taking())
        shell = raw.transport.shell
        watched = {stream.sock for stream in shell.streams if stream.is_read}
        shell.core.stand_by(True)
        shell.apply()
        assert len(watched) == 2 and not any(stream.is_read for stream in shell.streams)
        shell.take_back()
        assert watched == {stream.sock for stream in shell.streams if stream.is_read}
