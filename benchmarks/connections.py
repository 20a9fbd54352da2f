"""Many connections at once: python -m benchmarks.connections [--connections N] [--busy N] [--json].

Opens connections of two streams each to one server over the loopback, sends a message over each and back, and
leaves them idle. Printed: what failed, how fast they were opened, and the memory that one costs the server's
process and the client's (both run the streams API), without the kernel's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mstcp
from benchmarks.command_line import command_line, exit_status, show
from benchmarks.occupied import add_busy, occupied

HOST = "127.0.0.1"
STREAMS = 2
MESSAGE = bytes(1024)
AT_ONCE = 200
PER_ADDRESS = 2_000
"""Connections from one of the loopback's addresses, which has some 28,000 source ports."""
SPARE_DESCRIPTORS = 100 + STREAMS * AT_ONCE
"""Where the machine is busy a second path says the hello too, and the server holds both for a moment."""
JOIN_S = 60.0
"""A connection is open with its first stream; where the machine is busy others join so much later."""


def memory_bytes() -> int:
    """Return the memory that this process alone has."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "Private_Dirty":
            return int(rest.split()[0]) * 1024
    raise RuntimeError("/proc/self/smaps_rollup has no Private_Dirty: a kernel of 4.14 or later is needed")


def raise_descriptor_limit(connections: int) -> None:
    """Allow this process as many descriptors as it needs (OSError: The machine allows fewer)."""
    wanted = connections * STREAMS + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        raise OSError(
            f"{wanted} descriptors are needed and {hard} allowed: raise it by `ulimit -n`, or run as root"
        ) from None


async def serve() -> None:
    """Send back what comes; for each line of standard input tell the connections, the lost and their memory.

    Lost are also those that a client gave up for another path whose hello was answered first.
    """
    count = lost = 0

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count, lost
        count += 1
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
        except mstcp.MstcpError:
            lost += 1
        finally:
            count -= 1
            writer.close()

    # The kind is known: with "auto" a client that is held up for 2 s before its address has a connection
    # is taken for a plain one, and this one is held up as long as the machine likes.
    server = await mstcp.start_server(echo, HOST, 0, backlog=1024, plain=False)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    print(json.dumps({"port": port}), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        gc.collect()
        print(json.dumps({"connections": count, "lost": lost, "bytes": memory_bytes()}), flush=True)
    # Its client is gone: nobody is left to be told how thousands of connections end.
    os._exit(0)


class Server:
    """The server as a process of its own."""

    def __init__(self, connections: int) -> None:
        words = [sys.executable, "-m", "benchmarks.connections", "--serve", "--connections", str(connections)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._read()["port"])

    def ask(self) -> dict[str, Any]:
        """Return how many connections it has and its memory."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server ended; its reason stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


async def open_all(
    port: int, count: int
) -> tuple[list[tuple[mstcp.StreamReader, mstcp.StreamWriter]], list[str], int]:
    """Open the connections and send a message over each and back.

    Return those that work, what failed, and how many were open before all their streams were.
    """
    permits = asyncio.Semaphore(AT_ONCE)
    opened: list[tuple[mstcp.StreamReader, mstcp.StreamWriter]] = []
    failures: list[str] = []
    late: list[int] = []

    async def one(number: int) -> None:
        address = f"127.0.1.{1 + number // PER_ADDRESS}"
        async with permits:
            try:
                reader, writer = await mstcp.open_connection(
                    HOST, port, streams=[mstcp.StreamSpec()] * STREAMS, source_address=address
                )
                writer.write(MESSAGE)
                if await reader.readexactly(len(MESSAGE)) != MESSAGE:
                    raise RuntimeError("the message came back changed")
                if writer.transport.alive_streams < STREAMS:
                    late.append(number)
                    await all_joined(writer.transport)
                opened.append((reader, writer))
            except (mstcp.MstcpError, OSError, RuntimeError, asyncio.IncompleteReadError) as error:
                failures.append(f"{type(error).__name__}: {error}")

    await asyncio.gather(*map(one, range(count)))
    return opened, failures, len(late)


async def all_joined(transport: mstcp.ConnectionTransport) -> None:
    """Wait until a connection has all its streams (RuntimeError: One did not come)."""
    until_s = time.monotonic() + JOIN_S
    while transport.alive_streams < STREAMS:
        if time.monotonic() > until_s:
            raise RuntimeError("a stream is missing")
        await asyncio.sleep(0.1)


async def settled(server: Server, count: int) -> dict[str, Any]:
    """Return what the server tells once it has this many connections alone, or some more after all that time.

    It gives up those whose hello was answered on another path first, but not at once.
    """
    until_s = time.monotonic() + JOIN_S
    while True:
        await asyncio.sleep(2)
        told = server.ask()
        if told["connections"] <= count or time.monotonic() > until_s:
            return told


async def measure(server: Server, count: int) -> dict[str, Any]:
    """Return what this many connections cost."""
    # What is loaded and kept at the first connections is no connection's.
    warm, failures, _ = await open_all(server.port, AT_ONCE)
    for _, writer in warm:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in warm))
    warm.clear()
    await asyncio.sleep(1)
    gc.collect()
    before, own_before = server.ask(), memory_bytes()
    began_s = time.monotonic()
    opened, more, late = await open_all(server.port, count)
    seconds = time.monotonic() - began_s
    after = await settled(server, len(opened))
    gc.collect()
    own_after = memory_bytes()
    server.close()  # first, or it would tell of each connection that it is given up
    for _, writer in opened:
        writer.transport.abort()
    return {
        "connections": len(opened),
        "streams": STREAMS * len(opened),
        "held_by_server": after["connections"],
        "lost_by_server": after["lost"] - before["lost"],
        "failures": len(failures) + len(more),
        "first_failures": (failures + more)[:3],
        "streams_joined_later": late,
        "opened_per_s": round(len(opened) / seconds),
        "server_bytes_per_connection": round((after["bytes"] - before["bytes"]) / max(1, len(opened))),
        "client_bytes_per_connection": round((own_after - own_before) / max(1, len(opened))),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a connection failed."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--connections", type=int, default=10_000, metavar="N", help="default 10000")
    add_busy(parser)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    most = 254 * PER_ADDRESS
    if not 1 <= arguments.connections <= most:
        parser.error(f"--connections must be 1 to {most}, not {arguments.connections}")

    def run() -> int:
        raise_descriptor_limit(arguments.connections)
        if arguments.serve:
            asyncio.run(serve())
            return 0
        with contextlib.closing(Server(arguments.connections)) as server, occupied(arguments.busy):
            result = asyncio.run(measure(server, arguments.connections))
        show(result, arguments.json)
        return int(result["failures"] > 0 or result["held_by_server"] != arguments.connections)

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
