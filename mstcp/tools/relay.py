"""Bytes from one connection to another and back, ends and breaks included."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

from mstcp import sockets
from mstcp.errors import MstcpError, sentence
from mstcp.transport import ConnectionTransport

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES = 1 << 18
LIMIT_BYTES = 1 << 20
"""Buffer limit of the readers; twice as much may wait in each direction."""
KEEPALIVE_S = 60.0
"""Idle time before TCP keepalive probes."""
KEEPALIVE_PROBES = 4
"""After this many without an answer, each a minute after the one before, its connection is lost."""


async def relay(one: Pair, other: Pair, one_left: asyncio.Event | None = None) -> None:
    """Carry bytes both ways until both have ended; half-closes are passed on, and a break breaks the other.

    Args:
        one: A connection.
        other: The one that it is carried on to.
        one_left: When it is set nobody waits at `one` any more: what came from there is still brought over,
            and that is the end.

    Raises:
        MstcpError: The connection over MSTCP broke.
        OSError: The other one broke.
    """
    for pair in (one, other):
        keep_alive(pair)
    there = asyncio.ensure_future(_pump(one[0], other[1]))
    back = asyncio.ensure_future(_pump(other[0], one[1]))
    leaving = asyncio.ensure_future(_leave(one_left or asyncio.Event(), there, back))
    pumps = [there, back]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_EXCEPTION)
        for pump in pumps:
            if pump.done() and not pump.cancelled():
                pump.result()
    except BaseException:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        abort(one)
        abort(other)
        raise
    finally:
        leaving.cancel()
    for _, writer in (one, other):
        writer.close()
    for _, writer in (one, other):
        with contextlib.suppress(MstcpError, OSError):
            await writer.wait_closed()


async def _leave(left: asyncio.Event, there: asyncio.Task[None], back: asyncio.Task[None]) -> None:
    await left.wait()
    await asyncio.wait([there])
    back.cancel()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):  # the peer may have gone after its last byte
        writer.write_eof()


def keep_alive(pair: Pair) -> None:
    """Have a peer that has vanished found out, which nobody would wait for otherwise."""
    transport = pair[1].transport
    if isinstance(transport, ConnectionTransport):
        transport.set_keepalive(KEEPALIVE_S, KEEPALIVE_PROBES)
    elif (sock := transport.get_extra_info("socket")) is not None:
        with contextlib.suppress(OSError):  # it may be closed already
            sockets.set_keepalive(sock, KEEPALIVE_S, KEEPALIVE_PROBES)


def abort(pair: Pair) -> None:
    """Break a connection, so that its peer sees a break and no end."""
    transport = pair[1].transport
    sock = transport.get_extra_info("socket")
    if sock is not None and transport.get_extra_info("protocol") is None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def reporting(report: Callable[[str], None]) -> Callable[[BaseException], None]:
    """Return what reports why a connection failed, for `Tasks`."""
    return lambda error: report(f"a connection failed: {sentence(error)}")


class Tasks:
    """Runs a coroutine for each connection and ends them all when it is left."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Awaitable[None]) -> None:
        """Run it; what it raises is told, unless it was cancelled."""
        task = asyncio.ensure_future(self._run(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def ended(self) -> None:
        """Wait until none runs."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (MstcpError, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            self._on_error(error)

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End all."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
