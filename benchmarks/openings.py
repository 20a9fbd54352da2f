"""How fast connections are opened: python -m benchmarks.openings [--seconds S] [--busy N] [--json].

Over the loopback, from one process to another: open a connection, send a byte and get it back, close. One
by one and 50 at a time, over TCP, the kernel's MPTCP (skipped where the kernel has none) and MSTCP of two
streams, of which each opening awaits the second; all kinds in turn, in several rounds, the medians are given.
Processor seconds are those of both ends for 1,000 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import mstcp
from benchmarks.command_line import command_line, exit_status, show
from benchmarks.occupied import add_busy, occupied

HOST = "127.0.0.1"
IPPROTO_MPTCP = 262
STREAMS = 2
ROUNDS = 3
AT_ONCE = (1, 50)
KINDS = ("tcp", "mptcp", "mstcp")


def _mptcp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)


def _kinds() -> list[str]:
    with contextlib.suppress(OSError), _mptcp():
        return list(KINDS)
    return [kind for kind in KINDS if kind != "mptcp"]


async def _serve(kind: str) -> None:
    """Send back what comes; for each line of standard input tell the processor time."""

    async def echo(reader: Any, writer: Any) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    if kind == "mstcp":
        limits = mstcp.ServerLimits(hellos_per_s=1e6)
        server: Any = await mstcp.start_server(echo, HOST, 0, backlog=1024, plain=False, limits=limits)
    else:
        listener = _mptcp() if kind == "mptcp" else socket.socket()
        listener.bind((HOST, 0))
        server = await asyncio.start_server(echo, sock=listener, backlog=1024)
    print(json.dumps(server.sockets[0].getsockname()[1]), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(_cpu_s()), flush=True)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _open(kind: str, port: int) -> tuple[Any, Any]:
    if kind == "mstcp":
        return await mstcp.open_connection(
            HOST, port, streams=[mstcp.StreamSpec()] * STREAMS, join_timeout=10.0
        )
    if kind == "tcp":
        return await asyncio.open_connection(HOST, port)
    sock = _mptcp()
    sock.connect((HOST, port))  # over the loopback it does not wait
    sock.setblocking(False)
    return await asyncio.open_connection(sock=sock)


async def _opened(kind: str, port: int, at_once: int, seconds: float) -> int:
    """Return how many connections were opened in this time."""
    until_s, count = time.monotonic() + seconds, 0

    async def one_by_one() -> None:
        nonlocal count
        while time.monotonic() < until_s:
            reader, writer = await _open(kind, port)
            writer.write(b"\0")
            await reader.readexactly(1)
            writer.close()
            await writer.wait_closed()
            count += 1

    await asyncio.gather(*(one_by_one() for _ in range(at_once)))
    return count


def _measured(kind: str, at_once: int, seconds: float) -> dict[str, float]:
    words = [sys.executable, "-m", "benchmarks.openings", "--serve", kind]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        told: Callable[[], str] = server.stdout.readline
        port = int(told())

        def cpu_s() -> float:
            print(file=server.stdin, flush=True)
            return _cpu_s() + float(told())

        # What is loaded and kept at the first connections is no connection's.
        asyncio.run(_opened(kind, port, at_once, 0.1))
        before_s, began_s = cpu_s(), time.monotonic()
        count = asyncio.run(_opened(kind, port, at_once, seconds))
        rate = count / (time.monotonic() - began_s)
        cost_s = cpu_s() - before_s
        server.kill()
    return {"per_s": rate, "cpu_s_per_1000": cost_s / count * 1000}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="for each measurement (default %(default)s)"
    )
    add_busy(parser)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)

    def run() -> int:
        if arguments.serve:
            asyncio.run(_serve(arguments.serve))
            return 0
        cases = [(kind, at_once) for kind in _kinds() for at_once in AT_ONCE]
        with occupied(arguments.busy):
            rounds = [[_measured(*case, arguments.seconds) for case in cases] for _ in range(ROUNDS)]
        result = {
            f"{kind}_{at_once}_{key}": float(f"{statistics.median(each[at][key] for each in rounds):.4g}")
            for at, (kind, at_once) in enumerate(cases)
            for key in ("per_s", "cpu_s_per_1000")
        }
        show(result, arguments.json)
        return 0

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
