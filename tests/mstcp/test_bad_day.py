"""Paths and peers that fail in the ways that connections stood still in: each goes on."""

from __future__ import annotations

import asyncio
import contextlib
import time

import mstcp
from benchmarks.faults.relay import HOST
from mstcp import StreamSpec
from tests.fakes.broken_paths import over_paths
from tests.fakes.raw_client import answer_to, read_answer
from tests.fakes.waiting import until


async def test_a_window_update_that_is_lost_with_its_stream_is_repeated_over_another() -> None:
    data = bytes(3 << 20)
    async with over_paths(2) as ((_, writer), (reader, _), paths):
        writer.write(data)
        await asyncio.sleep(0.3)  # the window is full, and the reader is late
        paths[0].stop(1)
        got = await asyncio.wait_for(reader.readexactly(len(data)), 30)
        assert got == data


async def test_the_end_is_acknowledged_though_one_way_back_has_stopped() -> None:
    async with over_paths(2) as ((_, writer), (reader, server_writer), paths):
        writer.write(b"all there is")
        assert await reader.readexactly(12) == b"all there is"
        paths[0].stop(1)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 20) == b""
        server_writer.close()
        started = time.monotonic()
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), 60)
        # Once took 30 s.
        assert time.monotonic() - started < 20


async def test_a_connection_opens_on_whichever_path_answers() -> None:
    started = time.monotonic()
    async with over_paths(2, silent=(0,)) as ((_, writer), (reader, _), paths):
        # A silent path once took 10 s, and failed the connection if it was the first.
        assert time.monotonic() - started < 8
        writer.write(b"over the other")
        assert await asyncio.wait_for(reader.readexactly(14), 20) == b"over the other"
        paths[0].repair()

        def alive() -> int:
            assert isinstance(writer.transport, mstcp.ConnectionTransport)
            return writer.transport.alive_streams

        await until(lambda: alive() == 2, "the repaired path")


async def test_a_peer_that_never_reads_is_not_polled_again_and_again_while_closing() -> None:
    async with over_paths(2) as ((_, writer), _, _):
        writer.write(bytes(4 << 20))
        writer.close()
        calls = 0
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def counted(*args: object, **options: object) -> asyncio.TimerHandle:
            nonlocal calls
            calls += 1
            return call_at(*args, **options)  # type: ignore[arg-type]

        await asyncio.sleep(5.5)  # until then a side that waits asks five times a second
        loop.call_at = counted  # type: ignore[method-assign]
        try:
            await asyncio.sleep(2)
        finally:
            loop.call_at = call_at  # type: ignore[method-assign]
        # 88 a second once; both ends together now ask and answer about once a second and stream.
        assert calls < 60


async def test_a_path_that_answers_too_late_is_not_confirmed() -> None:
    """A server would take its connection for one that may come back."""
    is_confirmed = asyncio.Event()
    behind: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_first, number = not behind, len(behind)
        behind.append(b"")
        hello = await read_answer(reader)
        if is_first:
            await is_confirmed.wait()
        writer.write(answer_to(hello, bytes([number + 1]) * 32))
        with contextlib.suppress(ConnectionError):
            behind[number] = await reader.read(1)
        is_confirmed.set()
        writer.close()

    async with await asyncio.start_server(answer, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await mstcp.open_connection(HOST, port, streams=[StreamSpec()] * 2)
        await until(lambda: len(behind) > 2, "another attempt")
        assert behind[0] == b""
        assert behind[1] != b""
        writer.transport.abort()
