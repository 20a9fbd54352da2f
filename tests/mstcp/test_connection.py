"""Connections over loopback with streams given by hand."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import random
import socket
import struct
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec, _core
from tests.fakes.connections import ask, connected, serving
from tests.fakes.waiting import until


@pytest.mark.parametrize("listening", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_name_with_addresses_of_both_kinds_is_reached(
    count: int, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def both(_host: object, port: int, **_: object) -> list[Any]:
        return [
            (socket.AF_INET6, 1, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, 1, 6, "", ("127.0.0.1", port)),
        ]

    async with serving(host=listening) as (_, port):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
        assert await ask(port, b"x" * 100_000, count, "both.example") == b"x" * 100_000


def random_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


async def send_in_pieces(writer: asyncio.StreamWriter, data: bytes, seed: int) -> None:
    rng = random.Random(seed)
    offset = 0
    while offset < len(data):
        size = rng.choice([1, 100, 1452, 5000, 100_000])
        writer.write(data[offset : offset + size])
        await writer.drain()
        offset += size
    writer.write_eof()


async def read_unevenly(reader: asyncio.StreamReader, seed: int) -> bytes:
    rng = random.Random(seed)
    got = bytearray()
    while chunk := await reader.read(rng.choice([1, 7, 1000, 1 << 16, 1 << 20])):
        got += chunk
        if rng.random() < 0.05:
            await asyncio.sleep(0)
    return bytes(got)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
async def test_bulk_is_exact_in_both_directions_at_once(count: int) -> None:
    up, down = random_bytes(3_000_000, 1), random_bytes(2_000_000, 2)
    async with connected(count) as ((reader, writer), (server_reader, server_writer)):
        results = await asyncio.gather(
            send_in_pieces(writer, up, 3),
            send_in_pieces(server_writer, down, 4),
            read_unevenly(reader, 5),
            read_unevenly(server_reader, 6),
        )
        assert hashlib.sha256(results[2]).digest() == hashlib.sha256(down).digest()
        assert hashlib.sha256(results[3]).digest() == hashlib.sha256(up).digest()
        sent, received = writer.transport.counters(), server_writer.transport.counters()
        for one, other, data in ((sent, received, up), (received, sent, down)):
            assert one.bytes_sent - one.resent_bytes == len(data)
            assert other.bytes_received - (other.duplicate_bytes or 0) == len(data)
        assert len(sent.streams) == count


async def test_streams_of_very_different_pace_deliver_in_order() -> None:
    rates = [2e6, 8e6, 40e6, 200e6]
    data = random_bytes(1_500_000)
    async with connected([StreamSpec(rate_bps=rate) for rate in rates]) as ((_, writer), (server_reader, _)):
        _, got = await asyncio.gather(send_in_pieces(writer, data, 1), read_unevenly(server_reader, 2))
        assert got == data
        carried = [stream.bytes_sent for stream in writer.transport.counters().streams]
        assert carried == sorted(carried)


async def test_half_close_leaves_the_other_direction_open() -> None:
    async with connected(3) as ((reader, writer), (server_reader, server_writer)):
        writer.write(b"question")
        writer.write_eof()
        assert await server_reader.read() == b"question"
        assert server_reader.at_eof()
        for _ in range(50):
            server_writer.write(b"answer\n")
            await server_writer.drain()
            assert await reader.readline() == b"answer\n"
        server_writer.write_eof()
        assert await reader.read() == b""
        with pytest.raises(mstcp.LocalProtocolError, match=r"write_eof\(\) was called"):
            writer.write(b"more")


async def test_the_readers_conventions() -> None:
    async with connected() as ((_, writer), (reader, _)):
        writer.writelines([b"line\n", b"until;", b"exactly"])
        assert await reader.readline() == b"line\n"
        assert await reader.readuntil(b";") == b"until;"
        assert await reader.readexactly(4) == b"exac"
        writer.write_eof()
        with pytest.raises(asyncio.IncompleteReadError):
            await reader.readexactly(4)


@pytest.mark.parametrize("count", [1, 2])
async def test_close_sends_everything_first(count: int) -> None:
    data = random_bytes(1_000_000)
    async with connected([StreamSpec(rate_bps=100e6)] * count) as ((_, writer), (reader, server_writer)):
        server_writer.write(bytes(100_000))  # never read: closing must not turn it into a reset
        writer.write(data)
        writer.close()
        assert writer.is_closing()
        assert await reader.read() == data
        await writer.wait_closed()
        sent = writer.transport.counters()
        assert sent.bytes_sent - sent.resent_bytes == len(data)
        with pytest.raises(mstcp.ConnectionClosed, match="was closed"):
            writer.transport.try_write(b"more")


@pytest.mark.parametrize("count", [1, 3])
async def test_a_peer_that_vanishes_is_a_lost_connection(count: int) -> None:
    async with connected(count) as ((_, writer), (reader, server_writer)):
        writer.write(b"half a mess")
        writer.transport.abort()
        told = "gave the connection up" if count > 1 else "connection lost on stream"
        with pytest.raises(mstcp.ConnectionLost, match=told):
            await reader.readexactly(100)
        with pytest.raises(ConnectionError):
            server_writer.write(b"x")
            await server_writer.drain()
        with pytest.raises(mstcp.ConnectionLost):
            server_writer.transport.try_write(b"x")


async def test_a_connection_whose_streams_do_not_come_back_is_lost_after_its_time() -> None:
    async with connected(2, reconnect_timeout=0.3) as (
        (client_reader, _),
        (reader, server_writer),
    ):
        # The server forgets the connection, as one that was restarted would.
        server_writer.transport.shell.give_up(None)
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(mstcp.ConnectionLost, match="connection lost on stream"):
            await client_reader.read()
        assert loop.time() - started >= 0.3
        assert await reader.read() == b""


OWN_ADDRESS = "127.77.0.1"
"""Where nobody else's connections share a port."""


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_stream_whose_port_was_taken_comes_back_from_another_unless_it_was_named(
    is_named: bool,
) -> None:
    with socket.create_server((OWN_ADDRESS, 0)) as free:
        named_port = free.getsockname()[1] if is_named else 0
    specs = [StreamSpec(source_port=named_port), StreamSpec()]
    async with connected(specs, source_address=OWN_ADDRESS) as ((_, writer), _):
        mine = writer.transport
        port = mine.streams()[0].source_port
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((OWN_ADDRESS, port))
            other.listen()  # from now on it shares the port with nobody
            writer.get_extra_info("sockets")[0].shutdown(socket.SHUT_RDWR)
            if not is_named:
                await until(lambda: mine.streams()[0].source_port != port and mine.alive_streams == 2)
                return
            await until(lambda: mine.alive_streams == 1)
        await until(lambda: mine.alive_streams == 2)
        assert mine.streams()[0].source_port == port


def disconnect(sock: socket.socket) -> None:
    """Reset a socket's connection and leave the socket open: connect(2) with AF_UNSPEC."""
    assert ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), bytes(16), 16) == 0


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_stream_comes_back_though_another_connection_goes_to_the_server_from_its_port(
    is_named: bool,
) -> None:
    """Ports that are bound to come back may be shared; that one is in use shows when it connects."""
    with socket.create_server((OWN_ADDRESS, 0)) as free:
        named_port = free.getsockname()[1] if is_named else 0
    specs = [StreamSpec(source_port=named_port), StreamSpec()]
    async with connected(specs, source_address=OWN_ADDRESS) as ((_, writer), _):
        mine = writer.transport
        port = mine.streams()[0].source_port
        # From now on its port is bound as that of a stream that came back.
        disconnect(writer.get_extra_info("sockets")[0])
        await until(lambda: mine.alive_streams == 1)
        await until(lambda: mine.alive_streams == 2)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((OWN_ADDRESS, port))
            disconnect(writer.get_extra_info("sockets")[0])
            other.connect(writer.get_extra_info("peername"))
            if not is_named:
                await until(lambda: mine.streams()[0].source_port != port and mine.alive_streams == 2)
                return
            await until(lambda: mine.alive_streams == 1)
            linger = struct.pack("ii", 1, 0)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await until(lambda: mine.alive_streams == 2)
        assert mine.streams()[0].source_port == port


async def test_streams_that_break_come_back_and_every_byte_arrives_once() -> None:
    rng = random.Random(5)
    data = rng.randbytes(3 << 20)
    specs = [StreamSpec(rate_bps=16e6), StreamSpec(rate_bps=8e6)]
    async with connected(specs) as ((_, writer), (reader, _)):

        async def write() -> None:
            for start in range(0, len(data), 5000):
                writer.write(data[start : start + 5000])
                await writer.drain()
            writer.write_eof()

        async def break_streams() -> None:
            while True:
                await asyncio.sleep(rng.uniform(0.05, 0.2))
                sock = rng.choice(writer.get_extra_info("sockets"))
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

        writing, breaking = asyncio.create_task(write()), asyncio.create_task(break_streams())
        got = await asyncio.wait_for(reader.read(), 15)
        breaking.cancel()
        await writing
        assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
        resent = [stream.resent_bytes for stream in writer.transport.counters().streams]
        assert sum(resent) > 0


@pytest.mark.parametrize("frame", [b"\xff" * 12, b"\x82" + bytes(6) + b"\3abc"])
async def test_frames_that_break_the_protocol_end_the_connection(frame: bytes) -> None:
    """A length beyond all bounds; an ACK of 3 bytes."""
    async with connected() as ((_, writer), (reader, _)):
        writer.get_extra_info("sockets")[0].send(frame)
        with pytest.raises(mstcp.RemoteProtocolError):
            await reader.read()


async def test_a_slow_reader_holds_the_sender_back_in_bounded_memory() -> None:
    reorder, limit = 100_000, 10_000
    async with connected(4, server={"reorder_buffer_bytes": reorder, "limit": limit}) as (
        (_, writer),
        (reader, server_writer),
    ):
        written = 0
        with contextlib.suppress(asyncio.TimeoutError):
            while written < 200_000_000:
                writer.write(bytes(100_000))
                written += 100_000
                await asyncio.wait_for(writer.drain(), 0.5)
        # What the kernel's buffers of 4 streams take, and no more.
        assert written < 100_000_000
        counters = server_writer.transport.counters()
        assert counters.reorder_max_bytes is not None
        assert counters.reorder_max_bytes <= reorder + 4 * (1 << 18)
        writer.write_eof()
        got = 0
        while chunk := await reader.read(1 << 20):
            got += len(chunk)
        assert got == written


@pytest.mark.parametrize("count", [1, 2])
async def test_try_write_takes_all_or_nothing(count: int) -> None:
    bound = 131_072
    async with connected([StreamSpec(rate_bps=8e6 / count)] * count, send_buffer_bytes=bound) as (
        (_, writer),
        (reader, _),
    ):
        sender = writer.transport
        payload = writer.get_extra_info("frame_payload_bytes")
        taken = 0
        while sender.try_write(bytes(payload)):
            taken += 1
        unacknowledged = sender.shell.core.unacknowledged_bytes
        assert unacknowledged + sender.counters().queued_bytes <= bound
        assert taken * payload >= bound - payload - 8 * taken
        await reader.readexactly(taken * payload)
        assert sender.try_write(bytes(payload))
        with pytest.raises(mstcp.LocalProtocolError, match="never fit"):
            for _ in range(2):
                sender.try_write(bytes(bound + 1))


async def test_try_write_without_a_bound_of_its_own() -> None:
    async with connected([StreamSpec(rate_bps=1e5)] * 2) as ((_, writer), _):
        sender = writer.transport
        while sender.try_write(bytes(1000)):
            pass
        assert 255_000 <= sender.get_write_buffer_size() <= 1 << 18


async def test_drain_waits_above_the_high_water_mark() -> None:
    async with connected([StreamSpec(rate_bps=8e6)] * 2) as ((_, writer), (reader, _)):
        sender = writer.transport
        sender.set_write_buffer_limits(high=100_000, low=50_000)
        assert sender.get_write_buffer_limits() == (50_000, 100_000)
        writer.write(bytes(300_000))
        assert sender.get_write_buffer_size() > 100_000
        await writer.drain()
        assert sender.get_write_buffer_size() <= 50_000
        await reader.readexactly(300_000)


async def test_an_application_that_never_drains_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mstcp.open.connect.HARD_QUEUE_BYTES", 100_000)
    async with connected([StreamSpec(rate_bps=1e5)] * 2) as ((_, writer), _):
        with pytest.raises(mstcp.BufferLimitExceeded, match="await writer.drain") as caught:
            for _ in range(1000):
                writer.write(bytes(1000))
        assert caught.value.limit_bytes == 100_000


async def test_what_the_connection_tells_of_itself() -> None:
    specs = [
        StreamSpec(rate_bps=4e6, delay_s=0.003, path=("T0", "S0", "T2")),
        StreamSpec(rate_bps=1e6, delay_s=0.007),
    ]
    async with connected(specs, packet_bytes=602) as ((_, writer), (_, server_writer)):
        first, second = writer.get_extra_info("streams")
        assert (first.index, first.rate_bps, first.delay_s, first.path) == (0, 4e6, 0.003, ("T0", "S0", "T2"))
        assert (second.index, second.rate_bps, second.delay_s, second.path) == (1, 1e6, 0.007, None)
        assert [stream.source_port for stream in server_writer.get_extra_info("streams")] == [
            first.source_port,
            second.source_port,
        ]
        assert writer.get_extra_info("protocol") == "mstcp"
        overhead = mstcp.sockets.segment_overhead_bytes(socket.AF_INET)
        assert writer.get_extra_info("frame_payload_bytes") == 602 - overhead - 8
        assert writer.get_extra_info("connection_id") == server_writer.get_extra_info("connection_id")
        assert writer.get_extra_info("peername") == server_writer.get_extra_info("sockname")
        assert writer.get_extra_info("counters") == writer.transport.counters()
        assert writer.get_extra_info("nothing", 7) == 7


async def test_each_write_of_one_payload_is_one_frame() -> None:
    async with connected(2, packet_bytes=602) as ((_, writer), (reader, server_writer)):
        payload = writer.get_extra_info("frame_payload_bytes")
        for _ in range(20):
            assert writer.transport.try_write(bytes(payload))
            await reader.readexactly(payload)
        assert server_writer.transport.counters().frames_received == 20


async def test_streams_leave_from_the_ports_and_with_the_options_asked_for() -> None:
    ports = []
    for _ in range(2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
            ports.append(probe.getsockname()[1])

    async with connected(
        [StreamSpec(port, 8e6) for port in ports],
        source_address="127.0.0.2",
        congestion_control="reno",
        receive_buffer_bytes=131_072,
    ) as ((_, writer), _):
        socks = writer.get_extra_info("sockets")
        assert [sock.getsockname() for sock in socks] == [("127.0.0.2", port) for port in ports]
        assert [stream.congestion_control for stream in writer.get_extra_info("streams")] == ["reno", "reno"]
        payload = writer.get_extra_info("frame_payload_bytes")
        for sock in socks:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 131_072
            # 1e6 bytes of goodput a second, the identifiers, and 1 % slack.
            pacing = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, 47, 8))[0]
            assert pacing == pytest.approx(1e6 * (payload + 8) / payload * 1.01, abs=1)


async def test_pacing_keeps_the_rate() -> None:
    """The kernel's pacing gives at most the rate and its slack, however fast the machine is."""
    loop = asyncio.get_running_loop()
    rate = 4e6
    async with connected([StreamSpec(rate_bps=rate / 2)] * 2) as ((_, writer), (reader, _)):
        writer.write(bytes(1_000_000))
        await reader.readexactly(100_000)
        begin = loop.time()
        await reader.readexactly(500_000)
        # Ten segments of each stream leave unpaced, and the kernel may make good a late one.
        assert loop.time() - begin > 500_000 * 8 / (rate * 1.01) * 0.75


async def test_arguments_that_make_no_sense() -> None:
    for streams, reason in [
        ([], "1 to 64 streams"),
        ([StreamSpec()] * 65, "1 to 64 streams"),
        ([StreamSpec(5000), StreamSpec(5000)], "differ"),
        ([StreamSpec(70000)], "source_port is a whole number from 0 to 65535, not 70000"),
        ([StreamSpec(rate_bps=1.0), StreamSpec()], "for all streams or none"),
        ([StreamSpec(rate_bps=-1.0)], "rate_bps is a number in bit/s from 0"),
        ([StreamSpec(rate_bps=0.0)], "not all 0"),
        ([StreamSpec(rate_bps=float("nan"))], "rate_bps is a number in bit/s from 0"),
    ]:
        with pytest.raises(mstcp.LocalProtocolError, match=reason):
            await mstcp.open_connection("127.0.0.1", 9, streams=streams)
    with pytest.raises(mstcp.LocalProtocolError, match="does not allow congestion control 'none such'"):
        await mstcp.open_connection("127.0.0.1", 9, congestion_control="none such")


@pytest.mark.parametrize("scheduler", _core.SCHEDULERS)
async def test_every_scheduler_brings_the_bytes_in_order(scheduler: str) -> None:
    specs = [StreamSpec(rate_bps=30e6, delay_s=0.001), StreamSpec(rate_bps=10e6, delay_s=0.025)]
    data = random.Random(1).randbytes(1 << 18)
    async with connected(specs, scheduler=scheduler) as ((_, writer), (reader, _)):
        for start in range(0, len(data), 1000):
            writer.write(data[start : start + 1000])
            await writer.drain()
        assert await reader.readexactly(len(data)) == data


async def test_unknown_scheduler_is_refused_by_name() -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="'fastest': choose one of stochastic, weighted"):
        async with connected([StreamSpec(), StreamSpec()], scheduler="fastest"):
            pass


async def test_a_protocol_of_the_applications_gets_the_bytes_in_its_own_buffer() -> None:
    class Buffered(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer = bytearray(1000)
            self.got = bytearray()
            self.ended = asyncio.get_running_loop().create_future()

        def get_buffer(self, _sizehint: int) -> bytearray:
            return self.buffer

        def buffer_updated(self, nbytes: int) -> None:
            self.got += self.buffer[:nbytes]

        def eof_received(self) -> None:
            self.ended.set_result(None)

    async with serving() as address:
        connection, protocol = await mstcp.create_connection(Buffered, *address, streams=[StreamSpec()] * 2)
        data = random.Random(3).randbytes(300_000)
        connection.write(data)
        connection.write_eof()
        await asyncio.wait_for(protocol.ended, 20)
        await connection.wait_closed()
        assert protocol.got == data
