"""Transfers in both directions over relays that break, with the library as it is."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import mstcp
from benchmarks.faults.relay import HOST, Path, listening

_WRITE_BYTES = 1 << 16
WINDOW_BYTES = 4 << 20
_NOMINAL_S = 6.0
_STALL_TIMEOUT_S = 60.0
"""Nothing arrived for this time, though a path works in each direction: nothing will."""


@dataclass(frozen=True)
class Outcome:
    """What a seed came to; times in seconds."""

    is_equal: bool
    longest_pause_s: float
    longest_unused_s: float
    close_s: float
    resent_bytes: int
    faults: int
    reorder_max_bytes: int


@dataclass
class _Direction:
    """The bytes of one direction, and how long they stood still though they need not have."""

    digest: str = ""
    last_s: float = field(default_factory=time.monotonic)
    fair_since_s: float | None = None
    longest_s: float = 0.0
    is_through: bool = False

    def note(self, fair: bool, delivered: bool) -> None:
        now_s = time.monotonic()
        if self.fair_since_s is not None and not self.is_through:
            self.longest_s = max(self.longest_s, now_s - max(self.last_s, self.fair_since_s))
        if delivered:
            self.last_s = now_s
        self.fair_since_s = (self.fair_since_s or now_s) if fair else None


async def transfer(seed: int, total_bytes: int) -> Outcome:
    """Send bytes both ways through trouble; compare digests. What breaks or gets stuck counts as unequal."""
    rng = random.Random(seed)
    count = rng.randint(2, 8)
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put((reader, writer))

    async with contextlib.AsyncExitStack() as stack:
        server = await mstcp.start_server(accept, HOST, 0, reorder_buffer_bytes=WINDOW_BYTES)
        stack.push_async_exit(server)
        rate_bps = total_bytes * 8 / _NOMINAL_S / count
        paths = [Path(server.sockets[0].getsockname()[1], rate_bps) for _ in range(count)]
        front = await stack.enter_async_context(listening(paths))
        specs = [mstcp.StreamSpec() for _ in paths]
        client = await mstcp.open_connection(
            HOST, front, streams=specs, seed=seed, reorder_buffer_bytes=WINDOW_BYTES
        )
        peer = await asyncio.wait_for(accepted.get(), 20)
        directions, faults = [_Direction(), _Direction()], list[int]()
        troubling = asyncio.create_task(_trouble(paths, rng, directions, faults))
        sending = asyncio.gather(
            _send(client[1], seed, total_bytes),
            _send(peer[1], seed + 1, total_bytes),
            _receive(peer[0], directions[0]),
            _receive(client[0], directions[1]),
        )
        try:
            fault = await _end(sending, directions)
        finally:
            troubling.cancel()
        if fault:
            print(f"seed {seed}: {fault}", file=sys.stderr)
        for path in paths:
            path.repair()
        close_s = await _close(client[1], peer[1])
        ends = [end.get_extra_info("counters") for end in (client[1], peer[1])]
    return Outcome(
        not fault and [direction.digest for direction in directions] == list(sending.result()[:2]),
        max(direction.longest_s for direction in directions),
        max(path.longest_unused_s for path in paths),
        close_s,
        sum(stream.resent_bytes for end in ends for stream in end.streams),
        len(faults),
        max(end.reorder_max_bytes or 0 for end in ends),
    )


async def _end(sending: asyncio.Future[Any], directions: list[_Direction]) -> str:
    """Wait until all has been sent and received; return what went wrong, if anything did."""
    while not (await asyncio.wait([sending], timeout=1.0))[0]:
        now_s = time.monotonic()
        if any(now_s - each.last_s > _STALL_TIMEOUT_S for each in directions if not each.is_through):
            sending.cancel()
            await asyncio.wait([sending])
            return f"nothing arrived for {_STALL_TIMEOUT_S:g} s"
    error = sending.exception()
    return "" if error is None else f"{type(error).__name__}: {error}"


async def _send(writer: asyncio.StreamWriter, seed: int, total_bytes: int) -> str:
    rng, digest = random.Random(f"data {seed}"), hashlib.blake2b()
    for _ in range(0, total_bytes, _WRITE_BYTES):
        data = rng.randbytes(_WRITE_BYTES)
        digest.update(data)
        writer.write(data)
        await writer.drain()
    writer.write_eof()
    return digest.hexdigest()


async def _receive(reader: asyncio.StreamReader, direction: _Direction) -> None:
    digest = hashlib.blake2b()
    while data := await reader.read(1 << 20):
        digest.update(data)
        direction.note(direction.fair_since_s is not None, True)
    direction.is_through = True
    direction.digest = digest.hexdigest()


async def _trouble(
    paths: list[Path], rng: random.Random, directions: list[_Direction], faults: list[int]
) -> None:
    """Do something to a path every 0.2 to 2 s; one in each direction always works."""
    while True:
        fair = all(any(path.carries(direction) for path in paths) for direction in range(2))
        for direction in directions:
            direction.note(fair, False)
        await asyncio.sleep(rng.uniform(0.2, 2.0))
        victim = rng.randrange(len(paths))
        path = paths[victim]
        way = rng.randrange(2)
        deed = rng.randrange(9)
        if deed == 0:
            path.reset()
        elif deed == 1:
            path.stop(0, 1)
        elif deed == 2:
            path.stop(way)
        elif deed == 3:
            path.swallow()
        elif deed == 4:
            path.half_close(way)
        elif deed == 5:
            path.slow_down()
        else:
            path.repair()
        faults += [victim] * (deed < 6)
        if not all(any(path.carries(direction) for path in paths) for direction in range(2)):
            paths[(victim + 1) % len(paths)].repair()


async def _close(*writers: asyncio.StreamWriter) -> float:
    started_s = time.monotonic()
    for writer in writers:
        writer.close()
    for writer in writers:
        with contextlib.suppress(mstcp.MstcpError):
            await asyncio.wait_for(writer.wait_closed(), 60)
    return time.monotonic() - started_s
