"""Whatever a peer does with its streams, and whatever was written and read before: the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
import selectors
import socket
import struct
from collections.abc import Coroutine
from typing import Any

import pytest

import mstcp
from mstcp import StreamReader, StreamSpec, StreamWriter
from tests.fakes.waiting import TIMEOUT_S

SEEDS = range(12)
MOST_WAKE_UPS = 3000
"""Of the event loop, for one connection: paced streams wake it some hundred times a second."""


class Relay:
    """Between a client and a server: carries bytes until it breaks, which each side sees in its own order."""

    def __init__(self, rng: random.Random, port: int) -> None:
        self._rng = rng
        self._port = port
        self._carrying: list[asyncio.Task[None]] = []
        self._is_broken = asyncio.Event()
        self.listener = _small(socket.socket())
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self._accepting = asyncio.ensure_future(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            near, _ = await loop.sock_accept(self.listener)
            near.setblocking(False)
            far = _small(socket.socket())
            await loop.sock_connect(far, ("127.0.0.1", self._port))
            self._carrying += [
                asyncio.ensure_future(self._carry(*ends)) for ends in ((near, far), (far, near))
            ]

    async def _carry(self, one: socket.socket, other: socket.socket) -> None:
        pumping = asyncio.ensure_future(_pump(one, other))
        await self._is_broken.wait()
        pumping.cancel()
        await asyncio.gather(pumping, return_exceptions=True)
        for step in self._rng.choices(("end", "read", "wait"), (3, 1, 1), k=self._rng.randrange(4)):
            with contextlib.suppress(OSError):
                if step == "end":
                    one.shutdown(socket.SHUT_WR)
                elif step == "read":
                    one.recv(self._rng.randrange(1, 1 << 17))
            await asyncio.sleep(self._rng.choice((0, 0.1, 0.3)))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()

    async def end(self) -> None:
        """Let no more streams through, and break those that there are."""
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self.listener.close()
        self._is_broken.set()
        await asyncio.gather(*self._carrying)


def _small(sock: socket.socket) -> socket.socket:
    """Let little wait in the relay: then the ends have unsent bytes when it breaks."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 13)
    sock.setblocking(False)
    return sock


async def _pump(one: socket.socket, other: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(one, 1 << 12):
        await loop.sock_sendall(other, data)


async def use(rng: random.Random, reader: StreamReader, writer: StreamWriter) -> None:
    """Write, read, end and close as it comes, and see the connection end."""
    reading = asyncio.ensure_future(reader.read()) if rng.random() < 0.6 else None
    for step in rng.choices(("write", "wait", "write_eof", "close"), (6, 2, 1, 1), k=rng.randrange(1, 4)):
        with contextlib.suppress(OSError, mstcp.LocalProtocolError):
            if step == "write":
                writer.write(bytes(rng.choice((1, 10_000, 3_000_000))))
            elif step == "wait":
                await asyncio.sleep(rng.choice((0.01, 0.1, 0.3)))
            else:
                getattr(writer, step)()
    with contextlib.suppress(OSError):
        await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    if reading is not None:
        await asyncio.gather(reading, return_exceptions=True)


async def one_connection(seed: int, streams: int, rate_bps: float | None) -> None:
    rng = random.Random(f"{seed} {streams} {rate_bps}")
    accepted: asyncio.Queue[tuple[StreamReader, StreamWriter]] = asyncio.Queue()
    options: dict[str, Any] = {"reconnect_timeout": 0.2}
    async with await mstcp.start_server(
        lambda *pair: accepted.put_nowait(pair), "127.0.0.1", plain=streams == 1, **options
    ) as server:
        relay = Relay(rng, server.sockets[0].getsockname()[1])
        client = await mstcp.open_connection(
            *relay.listener.getsockname(), streams=[StreamSpec(rate_bps=rate_bps)] * streams, **options
        )
        peer = await accepted.get()
        if rate_bps is not None:
            transport = peer[1].transport
            transport.set_rates({stream.source_port: rate_bps for stream in transport.streams()})
        ends: list[Coroutine[Any, Any, None]] = [use(rng, *client), use(rng, *peer)]
        using = asyncio.gather(*ends)
        await asyncio.sleep(rng.choice((0, 0.05, 0.2)))
        await relay.end()
        await asyncio.wait_for(using, TIMEOUT_S)


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("rate_bps", [None, 1e6])
async def test_every_order_of_ends_and_resets_ends_a_connection(
    streams: int, rate_bps: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wake_ups = 0
    select = selectors.DefaultSelector.select

    def counted(self: selectors.DefaultSelector, timeout: float | None = None) -> Any:
        nonlocal wake_ups
        wake_ups += 1
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", counted)
    await asyncio.gather(*(one_connection(seed, streams, rate_bps) for seed in SEEDS))
    assert wake_ups < MOST_WAKE_UPS * len(SEEDS)
