"""How a connection is: figures with the kernel's part, traces, signs of life, streams taken out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import logging
import random
import socket
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec, StreamWriter
from mstcp.stats import parse_tcp_info
from tests.fakes.connections import Pair, connected
from tests.fakes.tcp_server import wire
from tests.fakes.waiting import until


@contextlib.asynccontextmanager
async def over_wire(**options: Any) -> AsyncIterator[tuple[Pair, Pair, asyncio.Event]]:
    """Yield both ends of a connection, and whether the path between them carries what is sent."""
    is_open = asyncio.Event()
    is_open.set()
    async with connected(through=functools.partial(wire, is_open), **options) as ends:
        yield *ends, is_open


# --- figures ------------------------------------------------------------------------------------------------
async def test_stats_have_rates_and_the_kernels_part() -> None:
    async with connected(3) as ((_, writer), (reader, server)):
        first = writer.transport.stats()
        assert first.sent_bps is None
        assert [stream.is_alive for stream in first.streams] == [True] * 3
        writer.write(bytes(3_000_000))
        await reader.readexactly(3_000_000)
        sent, received = writer.transport.stats(), server.transport.stats()
        elapsed_s = sent.at_s - first.at_s
        carried = sum(stream.carried.bytes_sent for stream in sent.streams)
        assert sent.sent_bps == pytest.approx(carried * 8 / elapsed_s)
        assert carried >= 3_000_000
        assert received.total.bytes_received >= 3_000_000
        if sys.platform == "linux":
            for stream in sent.streams:
                assert stream.tcp.rtt_us is not None
                assert 0 < stream.tcp.rtt_us < 60_000_000
                assert stream.tcp.cwnd
                assert stream.tcp.retransmits is not None
    after = writer.transport.stats()
    assert [stream.is_alive for stream in after.streams] == [False] * 3
    assert after.streams[0].tcp.rtt_us is None
    # More where a stream was held up and others sent its frames again.
    assert after.total.bytes_sent >= sent.total.bytes_sent


async def test_stats_of_a_plain_connection() -> None:
    async with connected(1) as ((_, writer), (reader, _)):
        writer.write(b"x" * 1000)
        await reader.readexactly(1000)
        stats = writer.transport.stats()
        assert (len(stats.streams), stats.streams[0].is_stalled) == (1, False)
        assert stats.total.bytes_sent == 1000
        with pytest.raises(mstcp.LocalProtocolError, match="close the connection"):
            writer.transport.remove_stream(0)


def test_tcp_info_of_older_kernels_is_shorter() -> None:
    data = bytearray(168)
    struct.pack_into("=II", data, 68, 1500, 200)
    struct.pack_into("=I", data, 80, 10)
    struct.pack_into("=I", data, 148, 0xFFFF_FFFF)
    struct.pack_into("=Q", data, 160, 1_000_000)
    full = parse_tcp_info(bytes(data))
    assert (full.rtt_us, full.rttvar_us, full.cwnd, full.min_rtt_us) == (1500, 200, 10, None)
    assert full.delivery_rate_bps == 8_000_000
    short = parse_tcp_info(bytes(data[:104]))
    assert (short.rtt_us, short.retransmits, short.delivery_rate_bps) == (1500, 0, None)
    assert parse_tcp_info(b"").rtt_us is None


# --- traces -------------------------------------------------------------------------------------------------
def events(path: Path) -> list[dict[str, Any]]:
    records = path.read_text().split("\x1e")
    assert records[0] == ""
    return [json.loads(record) for record in records[1:]]


async def test_a_trace_tells_the_connections_life(tmp_path: Path) -> None:
    async with connected() as ((_, writer), (reader, server)):
        writer.transport.start_trace(tmp_path)
        server.transport.start_trace(tmp_path)
        with pytest.raises(mstcp.LocalProtocolError, match="a trace already"):
            writer.transport.start_trace(tmp_path)
        ports = [stream.source_port for stream in writer.transport.streams()]
        writer.transport.set_rates(dict.fromkeys(ports, 50e6))
        writer.write(bytes(200_000))
        await reader.readexactly(200_000)
        writer.transport.remove_stream(1)
        await asyncio.sleep(0.25)
    name = writer.get_extra_info("connection_id").hex()
    header, *told = events(tmp_path / f"{name}-client.sqlog")
    assert header["qlog_format"] == "JSON-SEQ"
    names = [event["name"].removeprefix("mstcp:") for event in told]
    assert names[0] == "connection_started"
    assert names[-1] == "connection_closed"
    assert {"rates_set", "metrics", "stream_removed"} <= set(names)
    assert [event["time"] for event in told] == sorted(event["time"] for event in told)
    metrics = [event["data"] for event in told if event["name"] == "mstcp:metrics"]
    assert sum(stream["bytes_sent"] for stream in metrics[-1]["streams"]) > 0
    assert (tmp_path / f"{name}-server.sqlog").exists()


async def test_a_full_disk_ends_the_trace_and_not_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="cannot be written: No such file"):
        async with connected() as ((_, writer), _):
            writer.transport.start_trace("/no/such/folder/trace")
    async with connected() as ((_, writer), (reader, _)):
        writer.transport.start_trace("/dev/full")
        ports = [stream.source_port for stream in writer.transport.streams()]
        for _ in range(300):
            writer.transport.set_rates(dict.fromkeys(ports, 50e6))
        assert "the trace ends here, the connection goes on" in caplog.text
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"


async def test_nothing_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="mstcp")
    async with connected() as ((_, writer), (reader, _)):
        writer.write(b"x")
        writer.get_extra_info("sockets")[0].shutdown(socket.SHUT_RDWR)
        assert await reader.readexactly(1) == b"x"
    assert [record for record in caplog.records if record.name == "mstcp"] == []
    assert any(isinstance(each, logging.NullHandler) for each in logging.getLogger("mstcp").handlers)


# --- signs of life ------------------------------------------------------------------------------------------
async def test_an_idle_connection_is_kept_while_its_peer_answers() -> None:
    async with connected() as ((_, writer), (reader, _)):
        idle_s, probes = 0.05, 10
        writer.transport.set_keepalive(idle_s, probes)
        await asyncio.sleep(2 * idle_s * probes)  # unanswered probes would have ended it by half of that
        assert not writer.transport.is_closing()
        assert writer.transport.alive_streams == 2
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        writer.transport.set_keepalive(None)


async def test_a_peer_that_gives_no_sign_of_life_is_lost() -> None:
    async with over_wire(reconnect_timeout=0.2) as ((client, writer), _, is_open):
        writer.transport.set_keepalive(0.1, probes=2)
        is_open.clear()
        with pytest.raises(mstcp.ConnectionLost, match="nothing came through"):
            await asyncio.wait_for(client.read(), 30)


async def test_streams_that_gave_no_sign_come_back_with_their_path() -> None:
    async with over_wire(reconnect_timeout=20.0) as ((_, writer), (reader, _), is_open):
        writer.transport.set_keepalive(0.1, probes=2)
        is_open.clear()
        await until(lambda: writer.transport.alive_streams == 0)
        is_open.set()
        await until(lambda: writer.transport.alive_streams == 2)
        writer.write(b"back again")
        assert await reader.readexactly(10) == b"back again"


@pytest.mark.parametrize(("idle_s", "probes"), [(0.0, 3), (-1.0, 3), (1e9, 3), (1.0, 0), (1.0, 128)])
async def test_a_keepalive_that_makes_no_sense_is_refused(idle_s: float, probes: int) -> None:
    async with connected(1) as ((_, writer), _):
        with pytest.raises(mstcp.LocalProtocolError, match=r"idle_s is|probes is"):
            writer.transport.set_keepalive(idle_s, probes)


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_USER_TIMEOUT is Linux's")
async def test_every_stream_has_a_user_timeout_and_plain_tcp_has_none() -> None:
    for count, milliseconds in ((2, 30_000), (1, 0)):
        async with connected(count) as ((_, writer), (_, server)):
            for end in (writer, server):
                for sock in end.get_extra_info("sockets"):
                    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == milliseconds


# --- streams that are taken out -----------------------------------------------------------------------------
async def test_a_stream_is_taken_out_during_a_transfer_and_nothing_is_lost() -> None:
    data = random.Random(3).randbytes(4 << 20)
    async with connected([StreamSpec(rate_bps=40e6)] * 3) as ((client, writer), (reader, server)):

        async def write(end: StreamWriter) -> None:
            for start in range(0, len(data), 20_000):
                end.write(data[start : start + 20_000])
                await end.drain()
            end.write_eof()

        writing = [asyncio.ensure_future(write(end)) for end in (writer, server)]
        reading = [asyncio.ensure_future(end.read()) for end in (client, reader)]
        await asyncio.sleep(0.1)
        writer.transport.remove_stream(1)
        for end in (writer, server):
            await until(lambda end=end: end.transport.alive_streams == 2)  # type: ignore[misc]
        got = await asyncio.wait_for(asyncio.gather(*reading), 60)
        await asyncio.gather(*writing)
        assert [hashlib.sha256(each).digest() for each in got] == [hashlib.sha256(data).digest()] * 2
        # It is not opened again.
        assert writer.transport.alive_streams == server.transport.alive_streams == 2
        streams = writer.transport.stats().streams
        assert [stream.is_alive for stream in streams] == [True, False, True]
        writer.transport.remove_stream(0)
        with pytest.raises(mstcp.LocalProtocolError, match="last stream"):
            writer.transport.remove_stream(2)
        with pytest.raises(mstcp.LocalProtocolError, match="no stream 1"):
            writer.transport.remove_stream(1)
