"""One host of one transfer, as a process: `python -m benchmarks.shaped.peer SIDE KIND BYTES SCHEDULER`.

Each side sends so many bytes and says when it began and when it had as many (monotonic clock, which the hosts
share). `tcp2` are two plain TCP connections, one on each path: they send without end, and their bytes count
together. The process then waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time

import mstcp
from benchmarks.transport import network

LISTEN_PORT = 5001
WRITE_BYTES = 1 << 16
READER_LIMIT_BYTES = 1 << 20
PORTS = (network.FIRST_PATH_PORT, network.SECOND_PATH_PORT)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Count:
    """Counts what comes over all connections, to the last byte awaited."""

    def __init__(self, wanted_bytes: int) -> None:
        self._rest = wanted_bytes
        self.done_s: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Count what comes on a connection."""
        while data := await reader.read(READER_LIMIT_BYTES):
            self._rest -= len(data)
            if self._rest <= 0 and not self.done_s.done():
                self.done_s.set_result(time.monotonic())


async def send(writer: asyncio.StreamWriter, total_bytes: float) -> None:
    """Send so many bytes."""
    chunk = bytes(WRITE_BYTES)
    while total_bytes > 0:
        writer.write(chunk)
        total_bytes -= len(chunk)
        await writer.drain()


async def near(kind: str, total_bytes: int, scheduler: str) -> None:
    """Open, say that it begins, send and receive."""
    connections: list[Streams]
    if kind == "mstcp":
        specs = [mstcp.StreamSpec(source_port=port) for port in PORTS]
        opened = await mstcp.open_connection(
            network.FAR,
            LISTEN_PORT,
            streams=specs,
            source_address=network.NEAR,
            scheduler=scheduler,
            limit=READER_LIMIT_BYTES,
        )
        connections = [opened]
    else:
        connections = [
            await asyncio.open_connection(network.FAR, LISTEN_PORT, local_addr=(network.NEAR, port))
            for port in PORTS
        ]
    for _, writer in connections:
        writer.write(b"\0")
    await exchange(connections, kind, total_bytes)


async def exchange(connections: list[Streams], kind: str, total_bytes: int) -> None:
    """Send and receive; say when all was received."""
    began_s = time.monotonic()
    count = Count(total_bytes)
    size = total_bytes if kind == "mstcp" else math.inf
    tasks = [asyncio.create_task(count.read(reader)) for reader, _ in connections]
    tasks += [asyncio.create_task(send(writer, size)) for _, writer in connections]
    done_s = await count.done_s
    print(json.dumps({"began_s": began_s, "done_s": done_s}), flush=True)
    await asyncio.gather(*tasks)
    await asyncio.Event().wait()


async def far(kind: str, total_bytes: int, scheduler: str) -> None:
    """Accept, wait for the beginning, send and receive."""
    accepted: asyncio.Queue[Streams] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        accepted.put_nowait((reader, writer))

    if kind == "mstcp":
        await mstcp.start_server(
            serve, network.FAR, LISTEN_PORT, scheduler=scheduler, limit=READER_LIMIT_BYTES
        )
    else:
        await asyncio.start_server(serve, network.FAR, LISTEN_PORT)
    print(json.dumps({"listening": True}), flush=True)
    count = 1 if kind == "mstcp" else len(PORTS)
    connections = [await accepted.get() for _ in range(count)]
    await exchange(connections, kind, total_bytes)


def main() -> None:
    """Run the side that the arguments name, until it is killed."""
    side, kind, total_bytes, scheduler = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    asyncio.run({"near": near, "far": far}[side](kind, total_bytes, scheduler))


if __name__ == "__main__":
    main()
