"""Transfers over streams that break: `python -m benchmarks.soak [--seeds 50] [--mib 1024]`.

A proxy on the loopback stands for two paths. Every 0.2 to 2 s one of them is reset (its streams break), or
swallows what it gets (a black hole), or comes back; one always lives. The peer's digest must be the sender's,
memory must stay within the window, and while a path lives nothing may stand still for more than 2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import random
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import mstcp

HOST = "127.0.0.1"
WRITE_BYTES = 1 << 18
WINDOW_BYTES = 4 << 20
STANDSTILL_S = 2.0


@dataclass(frozen=True)
class Outcome:
    """What a transfer came to."""

    seed: int
    carried_bytes: int
    is_equal: bool
    longest_gap_s: float
    faults: int
    streams_lost: int
    reorder_max_bytes: int
    resent_bytes: int


class Path:
    """Relays the streams of one path; a black hole takes what comes and passes nothing on."""

    def __init__(self, destination_port: int) -> None:
        self._destination_port = destination_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self.lost = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one stream in both directions until an end of it breaks."""
        try:
            onward = await asyncio.open_connection(HOST, self._destination_port)
        except OSError:
            writer.close()
            return
        ends = {writer, onward[1]}
        self._writers |= ends
        try:
            await asyncio.gather(self._copy(reader, onward[1]), self._copy(onward[0], writer))
        except OSError:
            pass
        finally:
            self._writers -= ends
            for end in ends:
                self._reset(end)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await self._passing.wait()
            writer.write(data)
            await writer.drain()
        await self._passing.wait()
        writer.write_eof()

    def swallow(self) -> None:
        """Pass nothing on until `restore`."""
        self._passing.clear()

    def restore(self) -> None:
        """Pass on what comes."""
        self._passing.set()

    def break_streams(self) -> None:
        """Reset what is open; new streams may come."""
        self.lost += len(self._writers) // 2
        for writer in list(self._writers):
            self._reset(writer)

    def _reset(self, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def trouble(paths: Sequence[Path], rng: random.Random, count: list[int]) -> None:
    """Do something to a path every 0.2 to 2 s; the other then lives."""
    while True:
        await asyncio.sleep(rng.uniform(0.2, 2.0))
        victim = rng.randrange(len(paths))
        for path in paths:
            path.restore()
        deed = rng.choice(("reset", "swallow", "restore"))
        if deed == "reset":
            paths[victim].break_streams()
        elif deed == "swallow":
            paths[victim].swallow()
        count[0] += deed != "restore"


async def transfer(seed: int, total_bytes: int, least_s: float = 0.0) -> Outcome:
    """Send bytes through trouble and compare digests.

    Args:
        seed: Of the data and the faults.
        total_bytes: How many at least.
        least_s: How long at least, in seconds.
    """
    # Two generators: how fast the data goes must not change what happens to it.
    rng, troubles = random.Random(seed), random.Random(f"trouble {seed}")
    received = hashlib.blake2b()
    last_s = longest_s = 0.0
    counters: asyncio.Future[mstcp.ConnectionCounters] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal last_s, longest_s
        last_s = time.monotonic()
        while data := await reader.read(1 << 20):
            now_s = time.monotonic()
            longest_s, last_s = max(longest_s, now_s - last_s), now_s
            received.update(data)
        counters.set_result(writer.get_extra_info("counters"))
        writer.close()

    server = await mstcp.start_server(take, HOST, 0, reorder_buffer_bytes=WINDOW_BYTES)
    port = server.sockets[0].getsockname()[1]
    paths = [Path(port), Path(port)]
    faults = [0]
    order: dict[int, int] = {}

    async def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = writer.get_extra_info("peername")[1]
        await paths[order.setdefault(source, len(order)) % 2].relay(reader, writer)

    proxy = await asyncio.start_server(route, HOST, 0)
    relay_port = proxy.sockets[0].getsockname()[1]
    sent = hashlib.blake2b()
    carried = 0
    until_s = time.monotonic() + least_s
    specs = [mstcp.StreamSpec(), mstcp.StreamSpec()]
    _, writer = await mstcp.open_connection(HOST, relay_port, streams=specs, seed=seed)
    troubling = asyncio.create_task(trouble(paths, troubles, faults))
    try:
        while carried < total_bytes or time.monotonic() < until_s:
            data = rng.randbytes(WRITE_BYTES)
            sent.update(data)
            writer.write(data)
            carried += len(data)
            await writer.drain()
            if least_s:
                await asyncio.sleep(0.01)
        writer.write_eof()
        seen = await counters
        mine = writer.get_extra_info("counters")
        writer.close()
        await writer.wait_closed()
    finally:
        troubling.cancel()
        proxy.close()
        server.close()
        for path in paths:
            path.restore()
            path.break_streams()
        await asyncio.sleep(0)  # the relays see it and end
    return Outcome(
        seed,
        carried,
        sent.digest() == received.digest(),
        longest_s,
        faults[0],
        sum(path.lost for path in paths),
        seen.reorder_max_bytes or 0,
        sum(stream.resent_bytes for stream in mine.streams),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the seeds; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--mib", type=int, default=1024, help="of each transfer (default 1024)")
    args = parser.parse_args(argv)
    failures = 0
    for seed in range(args.first, args.first + args.seeds):
        outcome = asyncio.run(transfer(seed, args.mib << 20))
        good = (
            outcome.is_equal
            and outcome.longest_gap_s <= STANDSTILL_S
            and outcome.reorder_max_bytes <= WINDOW_BYTES
        )
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {outcome}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
