"""Readers that are woken for much of a large frame at once read what has come where no more comes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import mstcp
import mstcp.blocking
from mstcp import StreamSpec
from tests.fakes.waiting import until

HOST = "127.0.0.1"
BURST_BYTES = 1_500_000
TAIL_BYTES = 20_000
"""Less than any reader of a large frame waits for."""
ROUNDS = 12
ESTABLISHED = "01"
HELLO_BYTES = 4096
"""More than the first stream's hello takes."""
Forwarding = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gate:
    """Forwards what the first stream sends to the server, as far as it is allowed; all else always."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._left = self._unsent = HELLO_BYTES
        self._is_allowed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    @property
    def has_sent_all(self) -> bool:
        """Whether all that is allowed has been handed over, or nothing will be any more."""
        return self._unsent <= 0 or self._is_over

    def allow(self, byte_count: int) -> None:
        self._left += byte_count
        self._unsent += byte_count
        self._is_allowed.set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        forward = self._forward if self._tasks else self._forward_allowed
        task = asyncio.create_task(self._serve(reader, writer, forward))
        # Also of a task that is cancelled before it begins.
        task.add_done_callback(lambda _: writer.transport.abort())
        self._tasks.add(task)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, forward: Forwarding
    ) -> None:
        to_reader, to_writer = await asyncio.open_connection(HOST, self._port)
        to_writer.transport.set_write_buffer_limits(0)
        back = asyncio.create_task(self._forward(to_reader, writer))
        try:
            await forward(reader, to_writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            for end in (to_writer, writer):
                end.transport.abort()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()

    async def _forward_allowed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                while self._left <= 0:
                    self._is_allowed.clear()
                    await self._is_allowed.wait()
                data = await reader.read(self._left)
                if not data:
                    return
                self._left -= len(data)
                writer.write(data)
                await writer.drain()
                self._unsent -= len(data)
        finally:
            self._is_over = True

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)


def unread_bytes(port: int) -> int:
    """What was sent to a server's port and is not read, by the kernel's table of connections."""
    unread = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, queues, *_ = line.split()
        sent, received = (int(part, 16) for part in queues.split(":"))
        if state == ESTABLISHED:
            unread += received if local.endswith(f":{port:04X}") else 0
            unread += sent if remote.endswith(f":{port:04X}") else 0
    return unread


async def forward_in_parts(port: int) -> None:
    """Send to a server through a gate that stops within frames; see that all that is let through is read."""
    gate = Gate(port)
    relay = await asyncio.start_server(gate.serve, HOST, 0)
    through = relay.sockets[0].getsockname()[1]
    streams = [StreamSpec(rate_bps=1e9), StreamSpec(rate_bps=0)]
    _, writer = await mstcp.open_connection(HOST, through, streams=streams)
    writer.write(bytes((BURST_BYTES + TAIL_BYTES) * 2 * ROUNDS))
    for _ in range(ROUNDS):
        for part in (BURST_BYTES, TAIL_BYTES):
            gate.allow(part)
            await until(lambda: gate.has_sent_all)
        await until(lambda: unread_bytes(port) == 0, "a reader of all that came")
    writer.transport.abort()
    with contextlib.suppress(mstcp.MstcpError):
        await writer.wait_closed()
    relay.close()
    await gate.close()


async def test_the_beginning_of_a_frame_is_read_where_its_rest_is_late() -> None:
    received, is_closed = 0, False

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received, is_closed
        with contextlib.suppress(mstcp.MstcpError):
            while data := await reader.read(1 << 20):
                received += len(data)
        writer.close()
        with contextlib.suppress(mstcp.MstcpError):
            await writer.wait_closed()
        is_closed = True

    async with await mstcp.start_server(take, HOST, 0) as server:
        await forward_in_parts(server.sockets[0].getsockname()[1])
        # All but what frames cost, and what was sent again on a slow machine.
        assert received >= ROUNDS * BURST_BYTES / 2
        # It would wait for the client to come back.
        server.abort_clients()
        await until(lambda: is_closed)


async def test_a_blocking_reader_has_the_beginning_of_a_frame_too() -> None:
    received, connections = 0, []

    def take(listener: mstcp.blocking.Listener) -> None:
        nonlocal received
        connection, _ = listener.accept()
        connections.append(connection)
        buffer = bytearray(1 << 20)
        with contextlib.suppress(mstcp.MstcpError, OSError):
            while count := connection.recv_into(buffer):
                received += count

    with mstcp.blocking.create_server((HOST, 0)) as listener:
        reading = threading.Thread(target=take, args=(listener,))
        reading.start()
        await forward_in_parts(listener.getsockname()[1])
        assert received >= ROUNDS * BURST_BYTES / 2
        connections[0].close()
        reading.join(30)
        assert not reading.is_alive()
