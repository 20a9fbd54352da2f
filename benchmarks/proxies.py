"""Measures redis through two MSTCP proxies beside two plain TCP relays: python -m benchmarks.proxies.

50 clients send small requests and wait for each answer (redis-benchmark). The relays are asyncio's, as the
proxies are. Everything runs on loopback in a network namespace of its own (as root); it needs redis-server
and redis-benchmark (Debian: redis-server, redis-tools).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.command_line import command_line, show

INSIDE = "MSTCP_PROXIES_INSIDE"
HOST = "127.0.0.1"
REDIS_PORT = 7379
RELAY_PORTS = (7380, 7381)
PROXY_PORTS = (7390, 7391)
LIMIT_S = 60.0
READ_BYTES = 1 << 18


async def relay(port: int, to: int) -> None:
    """Relay TCP connections as they come."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner = await asyncio.open_connection(HOST, to)
            await asyncio.gather(pump(reader, inner[1]), pump(inner[0], writer))
        except OSError:
            writer.close()

    server = await asyncio.start_server(carry, HOST, port)
    await server.serve_forever()


@contextlib.contextmanager
def running(commands: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """Run commands until the block ends; give their process ids."""
    with contextlib.ExitStack() as stack:
        pids = []
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids


def wait_for(port: int) -> None:
    """Wait until redis answers there; RuntimeError if it does not."""
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1) as sock:
            sock.sendall(b"PING\r\n")
            if sock.recv(7) == b"+PONG\r\n":
                return
        time.sleep(0.1)
    raise RuntimeError(f"redis does not answer on port {port}")


def requests_per_s(port: int, count: int) -> float | None:
    """Return how many GETs a second are answered; None if nobody answers."""
    words = ["redis-benchmark", "-h", HOST, "-p", str(port), "-t", "get", "-n", str(count), "--csv"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    rows = [line.split(",") for line in done.stdout.splitlines() if line.startswith('"GET"')]
    return float(rows[0][1].strip('"')) if rows else None


def cpu_s(pids: Sequence[int]) -> float:
    """Return what processes have cost so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(rounds: int, count: int) -> dict[str, float]:
    """Return the medians over the rounds, and the ratios within each."""
    module = [sys.executable, "-m", "benchmarks.proxies", "--relay"]
    proxy = [sys.executable, "-m", "mstcp.tools.cli", "proxy"]
    redis = ["redis-server", "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no"]
    relays = [
        [*module, str(RELAY_PORTS[0]), str(RELAY_PORTS[1])],
        [*module, str(RELAY_PORTS[1]), str(REDIS_PORT)],
    ]
    proxies = [
        [*proxy, "enter", str(PROXY_PORTS[0]), f"{HOST}:{PROXY_PORTS[1]}"],
        [*proxy, "exit", str(PROXY_PORTS[1]), f"{HOST}:{REDIS_PORT}"],
    ]
    rates: dict[str, list[float]] = {"direct": [], "relays": [], "proxies": []}
    costs: dict[str, list[float]] = {"direct": [], "relays": [], "proxies": []}
    with running([redis]), running(relays) as relay_pids, running(proxies) as proxy_pids:
        ends = {
            "direct": (REDIS_PORT, ()),
            "relays": (RELAY_PORTS[0], relay_pids),
            "proxies": (PROXY_PORTS[0], proxy_pids),
        }
        for port, _ in ends.values():
            wait_for(port)
        for _ in range(rounds):
            for kind, (port, pids) in ends.items():
                before_s = cpu_s(pids)
                rates[kind].append(requests_per_s(port, count) or 0.0)
                costs[kind].append((cpu_s(pids) - before_s) / count * 1e6)
    pairs = list(zip(rates["proxies"], rates["relays"], strict=True))
    return {
        **{f"{kind}_per_s": statistics.median(values) for kind, values in rates.items()},
        "relays_cpu_us": statistics.median(costs["relays"]),
        "proxies_cpu_us": statistics.median(costs["proxies"]),
        "ratio": statistics.median(mine / theirs for mine, theirs in pairs),
        "load_average": os.getloadavg()[0],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 7")
    parser.add_argument("--relay", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.relay:
        asyncio.run(relay(*arguments.relay))
        return 0
    missing = [name for name in ("redis-server", "redis-benchmark", "unshare") if shutil.which(name) is None]
    if missing:
        parser.error(f"{', '.join(missing)} not found (Debian: redis-server, redis-tools, util-linux)")
    if os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    if INSIDE not in os.environ:
        words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m"]
        words += ["benchmarks.proxies", *(sys.argv[1:] if argv is None else argv)]
        os.execvpe(words[0], words, {**os.environ, INSIDE: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        result = measure(3 if arguments.quick else 7, 10_000)
    except KeyboardInterrupt:
        return 130
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"benchmarks.proxies: {error}", file=sys.stderr)
        return 1
    show(result, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
