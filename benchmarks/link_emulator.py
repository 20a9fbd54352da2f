"""How precise and how costly the link emulator is: `python -m benchmarks.link_emulator` (as root).

Runs in namespaces of its own and prints a table: ping over 2 x 5 ms, TCP over a link of 10 Mbit/s, and
streams of 590-byte frames over one and over eleven wires. Lateness is that of the busiest direction, `core`
the share of a core that the emulator takes. Sender and emulator share the machine: run it on an idle one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
from typing import Any

from benchmarks.command_line import command_line
from topologies.link_emulator import LinkEmulator

INSIDE = "--inside"
FRAME_BYTES = 590
# min/avg/max/mdev of an earlier, smaller relay at SCHED_FIFO 50 on two cores.
PING_REFERENCE = "10.06/10.10/11.04/0.06"


def run(*command: str) -> str:
    """Run a command and return what it prints; its failure ends the benchmark."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def host(name: str, address: str) -> str:
    """Make a namespace joined to this one, offloads off; return the interface of this side."""
    outer = f"to-{name}"
    run("ip", "netns", "add", name)
    run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "up")
    run("ip", "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off")
    return outer


def row(what: str, result: str, emulator: LinkEmulator, before: dict[str, Any]) -> None:
    """Print one line of the table, with the emulator's figures since the report `before`."""
    after = emulator.stats()
    late = max(after["directions"], key=lambda entry: entry["packets"])["lateness_us"]
    cores = (after["cpu_s"] - before["cpu_s"]) / (after["time_s"] - before["time_s"])
    lost = sum(entry["dropped_receive"] + entry["dropped_send"] for entry in after["directions"])
    figures = "/".join(f"{late[key]:.0f}" for key in ("mean", "p50", "p99", "max"))
    print(f"{what:34} {result:34} {figures:>22} {100 * cores:6.1f} % {lost:6}", flush=True)


def ping(emulator: LinkEmulator, wire: str, count: int) -> None:
    """Ping from h1 to h2 over 5 ms each way."""
    emulator.set(wire, {"delay_us": 5000}, {"delay_us": 5000})
    run("ip", "netns", "exec", "h1", "ping", "-q", "-c", "1", "10.9.0.2")  # so that the addresses are known
    before = emulator.stats()
    output = run("ip", "netns", "exec", "h1", "ping", "-q", "-c", str(count), "-i", "0.02", "10.9.0.2")
    rtt = re.search(r"= ([\d./]+) ms", output)
    row("ping, 2 x 5 ms", f"{rtt[1] if rtt else output} ms", emulator, before)


def tcp(emulator: LinkEmulator, wire: str, seconds: int) -> None:
    """Send by TCP (reno) from h1 to h2 over 10 Mbit/s."""
    shape = {"rate_bps": 10e6, "delay_us": 5000, "queue_packets": 100}
    emulator.set(wire, shape, shape)
    before = emulator.stats()
    server = subprocess.Popen(
        ["ip", "netns", "exec", "h2", "iperf3", "-s", "-1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.5)
    client = ["iperf3", "-c", "10.9.0.2", "-t", str(seconds), "-C", "reno", "-J"]
    result = json.loads(run("ip", "netns", "exec", "h1", *client))
    server.wait()
    rate = result["end"]["sum_received"]["bits_per_second"]
    row("TCP, 10 Mbit/s", f"{rate / 1e6:.2f} Mbit/s goodput", emulator, before)


def stream(emulator: LinkEmulator, wires: int, packets_per_s: int, seconds: float) -> None:
    """Send frames at a steady rate over `wires` wires of 80 Mbit/s and 1 ms."""
    sockets = []
    for number in range(wires):
        for side in "ab":
            run("ip", "link", "add", f"r{side}{number}", "type", "veth", "peer", "name", f"e{side}{number}")
            run("ip", "link", "set", f"e{side}{number}", "up")
        shape = {"rate_bps": 80e6 if wires > 1 else 400e6, "delay_us": 1000}
        emulator.add(f"w{number}", f"ra{number}", f"rb{number}", shape, shape)
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind((f"ea{number}", 0))
        sockets.append(sender)
    frame = bytes.fromhex("020000000002020000000001") + b"\x88\xb5" + bytes(FRAME_BYTES - 14)
    before = emulator.stats()
    sent, start = 0, time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        for _ in range(int(elapsed * packets_per_s) - sent):
            sockets[sent % wires].send(frame)
            sent += 1
        time.sleep(0.0002)
    time.sleep(0.1)
    row(f"{wires} wires, {packets_per_s} packets/s", f"{sent / elapsed:.0f} packets/s sent", emulator, before)
    for number, sender in enumerate(sockets):
        sender.close()
        emulator.remove(f"w{number}")
        for side in "ab":
            run("ip", "link", "del", f"r{side}{number}")


def measure(seconds: int, realtime_priority: int) -> None:
    """Print the table."""
    run("ip", "link", "set", "lo", "up")
    run("mount", "-t", "tmpfs", "none", "/run")
    a, b = host("h1", "10.9.0.1"), host("h2", "10.9.0.2")
    with LinkEmulator(realtime_priority=realtime_priority) as emulator:
        print(f"real time: {emulator.stats()['realtime']}; reference for ping: {PING_REFERENCE} ms")
        print(f"{'':34} {'':34} {'late us mean/50/99/max':>22} {'core':>8} {'missed':>6}")
        emulator.add("w", a, b)
        ping(emulator, "w", 50 * seconds)
        tcp(emulator, "w", seconds)
        emulator.remove("w")
        for wires, packets_per_s in ((1, 1_000), (1, 10_000), (1, 40_000), (11, 10_000), (11, 55_000)):
            stream(emulator, wires, packets_per_s, seconds)


def main() -> None:
    """Start again in namespaces of its own, and measure there."""
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="length of each measurement (default 5)")
    parser.add_argument(
        "--realtime-priority", type=int, default=50, help="of the emulator; 0: none (default 50)"
    )
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        measure(arguments.seconds, arguments.realtime_priority)
        return
    if os.geteuid() != 0:
        sys.exit("benchmarks.link_emulator: network namespaces need root: run it as root")
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    again = [sys.executable, "-m", "benchmarks.link_emulator", *sys.argv[1:], INSIDE]
    sys.exit(subprocess.run([*namespaces, *again], check=False).returncode)


if __name__ == "__main__":
    main()
