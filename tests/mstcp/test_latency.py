"""Requests and answers over a short path and a long or dead one, in virtual time, beside TCP on the short.

In the kernel `-m tests.mstcp.test_latency far` answers, and `near KIND NUMBER` asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time

import pytest

import mstcp
from benchmarks.transport.addresses import FAR
from benchmarks.transport.kernel_links import KernelLinks
from benchmarks.transport.network import Network
from benchmarks.unequal.grid import Path
from benchmarks.unequal.peer import PORTS, connect
from tests.virtual_kernel import run_in_virtual_kernel

MESSAGE = bytes(100)
REQUESTS = 200
PAUSE_S = 0.03


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            writer.write(await reader.readexactly(len(MESSAGE)))
    writer.close()


async def far() -> None:
    await asyncio.start_server(answer, FAR, PORTS["tcp0"])
    await mstcp.start_server(answer, FAR, PORTS["mstcp"])
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def near(kind: str, number: int) -> None:
    """Write how long each answer took, in ms; the first since the call that connects."""
    took_ms = []
    began_s = time.monotonic()
    reader, writer = await connect(kind, number)
    for _ in range(REQUESTS):
        writer.write(MESSAGE)
        await reader.readexactly(len(MESSAGE))
        took_ms.append(1e3 * (time.monotonic() - began_s))
        await asyncio.sleep(PAUSE_S)
        began_s = time.monotonic()
    writer.close()
    sys.stdout.write(json.dumps(took_ms))


def latencies_ms(delays_ms: list[float], kinds: list[str], is_second_dead: bool = False) -> list[list[float]]:
    """Return how long the answers take, by kind of connection."""
    shapes = [Path(100, delay_ms).shape(1000) for delay_ms in delays_ms]
    program = [sys.executable, "-m", "tests.mstcp.test_latency"]
    with contextlib.closing(Network(KernelLinks(), shapes)) as network:
        if is_second_dead:
            change = ["tc", "qdisc", "change", "dev", "w1b", "root", "netem", "loss", "100%"]
            subprocess.run(change, check=True)
        server = subprocess.Popen(network.command(1, [*program, "far"]), stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()
        told = [
            subprocess.check_output(network.command(0, [*program, "near", kind, str(number)]))
            for number, kind in enumerate(kinds)  # each has source ports of its own
        ]
        server.kill()
        server.communicate()
    return [json.loads(took_ms) for took_ms in told]


@pytest.mark.parametrize("delays_ms", [(5, 50), (50, 5), (5, 200)])
def test_answers_come_within_the_latency_of_the_better_path(delays_ms: tuple[float, float]) -> None:
    better = f"tcp{delays_ms.index(min(delays_ms))}"
    took_ms = run_in_virtual_kernel(latencies_ms, delays_ms, ["mstcp", better])
    ours_ms, tcp_ms = (statistics.quantiles(one, n=10)[-1] for one in took_ms)  # nine of ten
    assert ours_ms <= 1.05 * tcp_ms, (ours_ms, tcp_ms)


def test_a_dead_second_path_delays_nothing() -> None:
    took_ms = run_in_virtual_kernel(latencies_ms, [5, 5], ["mstcp", "tcp0"], True)
    (ours_ms, ours_later_ms), (tcp_ms, tcp_later_ms) = ((one[0], max(one[1:])) for one in took_ms)
    assert ours_ms <= 1.05 * tcp_ms, (ours_ms, tcp_ms)
    assert ours_later_ms <= 1.05 * tcp_later_ms, (ours_later_ms, tcp_later_ms)


if __name__ == "__main__":
    asyncio.run(far() if sys.argv[1] == "far" else near(sys.argv[2], int(sys.argv[3])))
