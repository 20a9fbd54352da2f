"""Connections whose large frames worker threads carry, instead of the loop or the application's threads."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import mstcp
from mstcp import StreamSpec, blocking
from tests.fakes.waiting import until

LIMIT_S = 60.0
PIECE = os.urandom(1 << 20)
PIECES = 48
MOST_PIECES = 10_000
# Frames are large at such a rate.
STREAMS = [StreamSpec(rate_bps=20e9)] * 2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by /proc")


def workers() -> int:
    """Return how many worker threads this process has."""
    count = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            count += (task / "comm").read_text().strip() == "mstcp-io"
    return count


class Sink(asyncio.Protocol):
    """Digests what comes."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b()
        self.count = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.digest.update(data)
        self.count += len(data)

    def eof_received(self) -> bool:
        self.ended.set_result(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


@contextlib.asynccontextmanager
async def connected(
    io_threads: int | None = 2,
) -> AsyncIterator[tuple[mstcp.ConnectionTransport, asyncio.StreamWriter, Sink]]:
    """Open a connection; yield the client's transport and writer, and what takes its bytes."""
    sinks: list[Sink] = []

    def sink() -> Sink:
        sinks.append(Sink())
        return sinks[0]

    server = await mstcp.create_server(sink, "127.0.0.1", 0, io_threads=io_threads)
    async with server:
        address = server.sockets[0].getsockname()[:2]
        _, writer = await mstcp.open_connection(
            *address, streams=STREAMS, io_threads=io_threads, join_timeout=20
        )
        transport = writer.transport
        assert isinstance(transport, mstcp.ConnectionTransport)
        yield transport, writer, sinks[0]
        transport.abort()
        theirs = sinks[0].transport
        assert isinstance(theirs, mstcp.ConnectionTransport)
        theirs.abort()
        await asyncio.wait_for(theirs.wait_closed(), LIMIT_S)
    await until(lambda: workers() == 0, "no worker is left")


async def send(writer: asyncio.StreamWriter, pieces: int = PIECES) -> None:
    """Write so many pieces."""
    for _ in range(pieces):
        writer.write(PIECE)
        await writer.drain()


async def send_until_workers(writer: asyncio.StreamWriter) -> int:
    """Write until worker threads are seen; return how many pieces."""
    for sent in range(1, MOST_PIECES):
        await send(writer, 1)
        if workers():
            return sent
    raise AssertionError("no workers begin")


def digest(pieces: int = PIECES) -> bytes:
    """Return the digest of so many pieces."""
    whole = hashlib.blake2b()
    for _ in range(pieces):
        whole.update(PIECE)
    return whole.digest()


@pytest.mark.parametrize("io_threads", [1, 2])
async def test_bytes_arrive_in_order_and_no_thread_is_left(io_threads: int) -> None:
    async with connected(io_threads) as (_, writer, sink):
        sent = await send_until_workers(writer) + PIECES
        await send(writer)
        writer.write_eof()
        await asyncio.wait_for(sink.ended, LIMIT_S)
        assert sink.count == sent << 20
        assert sink.digest.digest() == digest(sent)


async def test_without_threads_of_the_library_there_are_none() -> None:
    async with connected(0) as (_, writer, sink):
        for _ in range(PIECES):
            await send(writer, 1)
            assert workers() == 0
        writer.write_eof()
        await asyncio.wait_for(sink.ended, LIMIT_S)
        assert sink.digest.digest() == digest()


async def test_a_stream_that_breaks_under_workers_costs_no_byte() -> None:
    async with connected() as (transport, writer, sink):
        sent = await send_until_workers(writer) + PIECES
        transport.get_extra_info("sockets")[1].shutdown(socket.SHUT_RDWR)
        await send(writer)
        writer.write_eof()
        await asyncio.wait_for(sink.ended, LIMIT_S)
        assert sink.digest.digest() == digest(sent)


async def test_a_protocol_that_pauses_gets_nothing_and_then_the_rest() -> None:
    async with connected() as (_, writer, sink):
        sent = await send_until_workers(writer) + PIECES
        sending = asyncio.ensure_future(send(writer))
        assert isinstance(sink.transport, asyncio.Transport)
        for _ in range(5):
            sink.transport.pause_reading()
            before = sink.count
            await asyncio.sleep(0.01)
            assert sink.count == before
            sink.transport.resume_reading()
            await asyncio.sleep(0.01)
        await sending
        writer.write_eof()
        await asyncio.wait_for(sink.ended, LIMIT_S)
        assert sink.digest.digest() == digest(sent)


@pytest.mark.parametrize("how", ["abort", "close"])
async def test_a_connection_ends_under_workers(how: str) -> None:
    async with connected() as (transport, writer, sink):
        sent = await send_until_workers(writer) + 8
        for _ in range(8):
            writer.write(PIECE)
        getattr(transport, how)()
        await asyncio.wait_for(transport.wait_closed(), LIMIT_S)
        await asyncio.wait_for(sink.ended, LIMIT_S)
        if how == "close":
            assert sink.digest.digest() == digest(sent)


async def test_a_connection_that_is_forgotten_leaves_no_thread() -> None:
    async with connected() as (transport, writer, _):
        await send_until_workers(writer)
        sockets = transport.get_extra_info("sockets")
        for sock in sockets:
            sock.close()
        await until(lambda: workers() == 0, "no worker is left")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_a_forked_process_has_no_workers_and_the_parents_go_on() -> None:
    async with connected() as (_, writer, sink):
        sent = await send_until_workers(writer) + PIECES
        sending = asyncio.ensure_future(send(writer))
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(workers())
            await asyncio.sleep(0.01)
            assert os.waitpid(child, 0) == (child, 0)
        await sending
        writer.write_eof()
        await asyncio.wait_for(sink.ended, LIMIT_S)
        assert sink.digest.digest() == digest(sent)


@pytest.mark.parametrize("io_threads", [0, 2])
def test_blocking_sockets_leave_large_frames_to_workers(io_threads: int) -> None:
    with blocking.create_server(("127.0.0.1", 0), timeout=LIMIT_S, io_threads=io_threads) as listener:
        ours = blocking.create_connection(
            listener.getsockname()[:2], streams=STREAMS, timeout=LIMIT_S, io_threads=io_threads
        )
        theirs, _ = listener.accept()
        theirs.settimeout(LIMIT_S)
        sent = 0

        def write() -> None:
            nonlocal sent
            while sent < PIECES or (io_threads and not workers() and sent < MOST_PIECES):
                ours.sendall(PIECE)
                sent += 1
            for _ in range(PIECES):
                ours.sendall(PIECE)
            ours.shutdown(socket.SHUT_WR)

        writing = threading.Thread(target=write)
        writing.start()
        received, buffer = hashlib.blake2b(), bytearray(3 << 20)
        while count := theirs.recv_into(buffer):
            received.update(memoryview(buffer)[:count])
            received.update(theirs.recv(100_000))
        writing.join()
        assert sent < MOST_PIECES
        assert received.digest() == digest(sent + PIECES)
        ours.close()
        theirs.close()


INTERRUPTED = """
import signal, sys, threading, mstcp
from mstcp import blocking
signal.signal(signal.SIGINT, signal.default_int_handler)
with blocking.create_server(("127.0.0.1", 0), io_threads=2) as listener:
    streams = [mstcp.StreamSpec(rate_bps=20e9)] * 2
    ours = blocking.create_connection(listener.getsockname()[:2], streams=streams, io_threads=2)
    theirs, _ = listener.accept()

    def echo():
        while data := theirs.recv(1 << 20):
            ours_read.set()

    ours_read = threading.Event()
    threading.Thread(target=echo, daemon=True).start()
    try:
        for number in range(1_000_000):
            ours.sendall(bytes(1 << 20))
            if number == 64:
                print("sending", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    ours.abort()
    theirs.abort()
"""


def test_ctrl_c_ends_a_send_and_the_process_though_workers_carry_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sending\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=LIMIT_S)
        assert (out, process.returncode) == ("interrupted\n", 0), errors
