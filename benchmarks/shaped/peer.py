"""One host of one transfer: `python -m benchmarks.shaped.peer SIDE KIND SEND RECEIVE SCHEDULER CC`.

Each side sends SEND bytes, and says when it began, when it had a quarter of RECEIVE bytes, and when all (by
the monotonic clock, which the hosts share). `mstcp` begins when both paths have a stream, and `mptcp`, the
kernel's, when its second subflow had time to come. `tcp2` are two plain TCP connections, one on each path:
they send without end, and their bytes count together. An empty CC is the system's congestion control. The
process then waits to be killed.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import sys
import time

import mstcp
from benchmarks.transport import network
from benchmarks.transport.peer import IPPROTO_MPTCP

LISTEN_PORT = 5001
WRITE_BYTES = 1 << 16
READER_LIMIT_BYTES = 1 << 20
SUBFLOWS_S = 2.0
"""How long the kernel's MPTCP gets for its second subflow: more than two of the longest round trips."""
START_JITTER_S = 0.001
"""A transfer begins up to so much later: exact time would lock phases, where the clock is virtual."""
PORTS = (network.FIRST_PATH_PORT, network.SECOND_PATH_PORT)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Count:
    """Counts what comes over all connections, to the last byte awaited."""

    def __init__(self, wanted_bytes: int) -> None:
        self._rest = wanted_bytes
        self._after_quarter = wanted_bytes * 3 // 4
        self.quarter_s = 0.0
        self.done_s: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._look()

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Count what comes on a connection."""
        while data := await reader.read(READER_LIMIT_BYTES):
            self._rest -= len(data)
            self._look()

    def _look(self) -> None:
        if self._rest <= self._after_quarter and not self.quarter_s:
            self.quarter_s = time.monotonic()
        if self._rest <= 0 and not self.done_s.done():
            self.done_s.set_result(time.monotonic())


async def send(writer: asyncio.StreamWriter, total_bytes: float) -> None:
    """Send this many bytes, and the end."""
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
        await all_streams(opened[1])
        connections = [opened]
    elif kind == "mptcp":
        sock = mptcp_socket(congestion_control)
        sock.bind((network.NEAR, 0))
        sock.connect((network.FAR, LISTEN_PORT))
        sock.setblocking(False)
        connections = [await asyncio.open_connection(sock=sock)]
    else:
        connections = [
            await asyncio.open_connection(network.FAR, LISTEN_PORT, local_addr=(network.NEAR, port))
            for port in PORTS
        ]
        use_congestion_control(connections, congestion_control)
    await asyncio.sleep(random.uniform(0, START_JITTER_S))
    for _, writer in connections:
        writer.write(b"\0")
    await exchange(connections, kind, *sizes)


async def all_streams(writer: asyncio.StreamWriter) -> None:
    """Wait until both paths have a stream; RuntimeError if they do not get one in time."""
    transport = writer.transport
    assert isinstance(transport, mstcp.ConnectionTransport)
    deadline_s = time.monotonic() + SUBFLOWS_S
    while transport.alive_streams < len(PORTS):
        if time.monotonic() > deadline_s:
            raise RuntimeError("the second stream did not come in time")
        await asyncio.sleep(0.01)


def mptcp_socket(congestion_control: str) -> socket.socket:
    """Return a socket of the kernel's MPTCP."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    if congestion_control:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    return sock


def use_congestion_control(connections: list[Streams], name: str) -> None:
    """Have plain TCP connections use a congestion control, if one is named."""
    for _, writer in connections if name else []:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


async def exchange(connections: list[Streams], kind: str, send_bytes: int, receive_bytes: int) -> None:
    """Send and receive; say when all was received."""
    if kind == "mptcp":
        await asyncio.sleep(SUBFLOWS_S)
    began_s = time.monotonic()
    count = Count(receive_bytes)
    size = math.inf if send_bytes and kind == "tcp2" else send_bytes
    tasks = [asyncio.create_task(count.read(reader)) for reader, _ in connections]
    tasks += [asyncio.create_task(send(writer, size)) for _, writer in connections]
    done_s = await count.done_s
    print(json.dumps({"began_s": began_s, "quarter_s": count.quarter_s, "done_s": done_s}), flush=True)
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
    elif kind == "mptcp":
        listener = mptcp_socket(congestion_control)
        listener.bind(("", LISTEN_PORT))  # the second subflow comes to another address
        await asyncio.start_server(serve, sock=listener)
    else:
        await asyncio.start_server(serve, network.FAR, LISTEN_PORT)
    print(json.dumps({"listening": True}), flush=True)
    count = len(PORTS) if kind == "tcp2" else 1
    connections = [await accepted.get() for _ in range(count)]
    if kind == "tcp2":
        use_congestion_control(connections, congestion_control)
    await exchange(connections, kind, *sizes)


def main() -> None:
    """Run the side that the arguments name, until it is killed."""
    side, kind, send_bytes, receive_bytes, scheduler, congestion_control = sys.argv[1:]
    host = {"near": near, "far": far}[side]
    asyncio.run(host(kind, (int(send_bytes), int(receive_bytes)), scheduler, congestion_control))


if __name__ == "__main__":
    main()
