"""Bytes from one connection to another and back, ends and breaks included."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

from mstcp.errors import MstcpError

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES = 1 << 18
LIMIT_BYTES = 1 << 20
"""Of the readers: what may wait in each direction, twice."""


async def relay(one: Pair, other: Pair) -> None:
    """Carry bytes both ways until both have ended; half-closes are passed on, and a break breaks the other.

    Raises:
        MstcpError: The connection over MSTCP broke.
        OSError: The other one broke.
    """
    pumps = [
        asyncio.ensure_future(_pump(one[0], other[1])),
        asyncio.ensure_future(_pump(other[0], one[1])),
    ]
    try:
        await asyncio.gather(*pumps)
    except BaseException:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        abort(one)
        abort(other)
        raise
    for _, writer in (one, other):
        writer.close()
    for _, writer in (one, other):
        with contextlib.suppress(MstcpError, OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):  # the peer may have gone after its last byte
        writer.write_eof()


def abort(pair: Pair) -> None:
    """Break a connection, so that its peer sees a break and no end."""
    transport = pair[1].transport
    sock = transport.get_extra_info("socket")
    if sock is not None and transport.get_extra_info("protocol") is None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


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

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (MstcpError, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            self._on_error(error)

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, *_: object) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
