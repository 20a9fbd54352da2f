"""One host of one transfer: `python -m benchmarks.shaped.peer SIDE KIND SEND RECEIVE SCHEDULER CC`.

Each side sends SEND bytes, and says when it began and when it had RECEIVE bytes (monotonic clock, which the
hosts share). `tcp2` are two plain TCP connections, one on each path: they send without end, and their bytes
count together. An empty CC is the system's congestion control. The process then waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
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
        self._look()

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Count what comes on a connection."""
        while data := await reader.read(READER_LIMIT_BYTES):
            self._rest -= len(data)
            self._look()

    def _look(self) -> None:
        if self._rest <= 0 and not self.done_s.done():
            self.done_s.set_result(time.monotonic())


async def send(writer: asyncio.StreamWriter, total_bytes: float) -> None:
    """Send so many bytes, and the end."""
    chunk = bytes(WRITE_BYTES)
    while total_bytes > 0:
        writer.write(chunk)
        total_bytes -= len(chunk)
        await writer.drain()
    writer.write_eof()


async def near(kind: str, sizes: tuple[int, int], scheduler: str, congestion_control: str) -> None:
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
            congestion_control=congestion_control or None,
            limit=READER_LIMIT_BYTES,
        )
        connections = [opened]
    else:
        connections = [
            await asyncio.open_connection(network.FAR, LISTEN_PORT, local_addr=(network.NEAR, port))
            for port in PORTS
        ]
        use_congestion_control(connections, congestion_control)
    for _, writer in connections:
        writer.write(b"\0")
    await exchange(connections, kind, *sizes)


def use_congestion_control(connections: list[Streams], name: str) -> None:
    """Have plain TCP connections use a congestion control, if one is named."""
    for _, writer in connections if name else []:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


async def exchange(connections: list[Streams], kind: str, send_bytes: int, receive_bytes: int) -> None:
    """Send and receive; say when all was received."""
    began_s = time.monotonic()
    count = Count(receive_bytes)
    size = math.inf if send_bytes and kind != "mstcp" else send_bytes
    tasks = [asyncio.create_task(count.read(reader)) for reader, _ in connections]
    tasks += [asyncio.create_task(send(writer, size)) for _, writer in connections]
    done_s = await count.done_s
    print(json.dumps({"began_s": began_s, "done_s": done_s}), flush=True)
    await asyncio.gather(*tasks)
    await asyncio.Event().wait()


async def far(kind: str, sizes: tuple[int, int], scheduler: str, congestion_control: str) -> None:
    """Accept, wait for the beginning, send and receive."""
    accepted: asyncio.Queue[Streams] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        accepted.put_nowait((reader, writer))

    if kind == "mstcp":
        await mstcp.start_server(
            serve,
            network.FAR,
            LISTEN_PORT,
            scheduler=scheduler,
            congestion_control=congestion_control or None,
            limit=READER_LIMIT_BYTES,
        )
    else:
        await asyncio.start_server(serve, network.FAR, LISTEN_PORT)
    print(json.dumps({"listening": True}), flush=True)
    count = 1 if kind == "mstcp" else len(PORTS)
    connections = [await accepted.get() for _ in range(count)]
    if kind != "mstcp":
        use_congestion_control(connections, congestion_control)
    await exchange(connections, kind, *sizes)


def main() -> None:
    """Run the side that the arguments name, until it is killed."""
    side, kind, send_bytes, receive_bytes, scheduler, congestion_control = sys.argv[1:]
    host = {"near": near, "far": far}[side]
    asyncio.run(host(kind, (int(send_bytes), int(receive_bytes)), scheduler, congestion_control))


if __name__ == "__main__":
    main()
