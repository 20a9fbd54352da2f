"""Transfers in a virtual kernel: `-m benchmarks.kernel_tcp.guest WANTED TOLD` runs there, a line for each.

An MPTCP sender of two interfaces, a TCP sender for each bottleneck, a router that shapes, one that delays
packets, a receiver. The way back takes as long as a whole round trip.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

IPPROTO_MPTCP = 262
FRAME_BYTES = 1514
PORT = 5001


@dataclass(frozen=True)
class Order:
    """One run: MPTCP with two subflows, or one TCP, which may compete with a TCP of Reno on each bottleneck.

    Rates are in bit/s, times in seconds; `late` of all packets come `late_s` later, `loss` of them are lost
    each way.
    """

    control: str
    seed: int
    kind: str = "mptcp"
    bottlenecks: int = 1
    competes: bool = True
    rate_bps: float = 20e6
    round_trip_s: float = 0.02
    queue_packets: int = 50
    late: float = 0.0
    late_s: float = 0.015
    loss: float = 0.0
    scheduler: str = "default"
    sysctls: tuple[str, ...] = ()
    warm_up_s: float = 5.0
    seconds: float = 20.0


def main(wanted: Path, told: Path) -> None:
    """Make all transfers, in the kernel."""
    with told.open("a") as file:
        for line in wanted.read_text().splitlines():
            order = Order(**json.loads(line))
            with network(order):
                print(json.dumps(transfer(order)), file=file, flush=True)


def _run(*lines: str) -> None:
    for line in lines:
        subprocess.run(line.split(), check=True, stdout=subprocess.DEVNULL)


def _ns(name: str, *lines: str) -> None:
    _run(*(f"ip netns exec {name} {line}" for line in lines))


def _join(a: str, b: str, number: int) -> None:
    """Join two namespaces by the network 10.0.NUMBER.0/24: `a` has .1 and `b` .2, without offloads."""
    _run(f"ip link add e{number} netns {a} type veth peer name e{number} netns {b}")
    for host, name in ((1, a), (2, b)):
        interface = f"e{number}"
        _ns(name, f"ip addr add 10.0.{number}.{host}/24 dev {interface}", f"ip link set {interface} up")
        _ns(name, f"ethtool -K {interface} tx off gro off")


@contextlib.contextmanager
def network(order: Order) -> Iterator[None]:
    """Build m (MPTCP), t0 and t1 (TCP), r (shapes), d (delays) and b (receives)."""
    names = ["m", *(f"t{index}" for index in range(order.bottlenecks)), "r", "d", "b"]
    for name in names:
        _run(f"ip netns add {name}")
        settings = ["ipv4.ip_forward=1", "ipv4.tcp_no_metrics_save=1", *order.sysctls]
        _ns(name, *(f"sysctl -qw net.{setting}" for setting in settings))
    try:
        _senders(order)
        for index in range(order.bottlenecks):
            _bottleneck(order, index)
        yield
    finally:
        for name in names:
            _run(f"ip netns del {name}")


def _senders(order: Order) -> None:
    for number in (1, 2):
        _join("m", "r", number)
    for index in range(order.bottlenecks):
        _join(f"t{index}", "r", 3 + index)
        _ns(f"t{index}", f"ip route add default via 10.0.{3 + index}.2")
    _ns(
        "m",
        "ip mptcp limits set subflow 2 add_addr_accepted 2",
        f"sysctl -qw net.mptcp.scheduler={order.scheduler}",
    )
    _ns("m", "ip route add 10.0.20.0/24 via 10.0.1.2", "ip route add 10.0.21.0/24 via 10.0.2.2")
    if order.bottlenecks == 1:
        _ns("m", "ip rule add from 10.0.2.1 table 2", "ip route add default via 10.0.2.2 table 2")
        _ns("m", "ip mptcp endpoint add 10.0.2.1 dev e2 subflow")


def _bottleneck(order: Order, index: int) -> None:
    there, last = 10 + index, 20 + index
    _join("r", "d", there)
    _join("d", "b", last)
    _ns("r", f"ip route add 10.0.{last}.0/24 via 10.0.{there}.2")
    for number in (1 + index, 3 + index) if order.bottlenecks > 1 else (1, 2, 3):
        _ns("d", f"ip route add 10.0.{number}.0/24 via 10.0.{there}.1")
        _ns("b", f"ip route add 10.0.{number}.0/24 via 10.0.{last}.1")
    waiting_bytes = order.queue_packets * FRAME_BYTES
    _ns(
        "r",
        f"tc qdisc add dev e{there} root tbf rate {order.rate_bps:.0f}bit burst 1600 limit {waiting_bytes}",
    )
    loss = f"loss {100 * order.loss:g}%" if order.loss else ""
    back = f"delay {order.round_trip_s * 1e3}ms {loss}"
    late = f"delay {order.late_s * 1e3}ms reorder {100 * (1 - order.late):g}%" if order.late else loss
    for host, changes in (("b", back), ("d", late)):
        if changes:
            _ns(host, f"tc qdisc add dev e{last} root netem {changes} limit 10000")
    if index:
        _ns("b", "ip mptcp limits set subflow 2", f"ip mptcp endpoint add 10.0.{last}.2 dev e{last} signal")


def transfer(order: Order) -> dict[str, object]:
    """Return goodputs in bit/s (MPTCP, each TCP) and MPTCP's sockets at the end."""
    draws = random.Random(order.seed)
    ends = [("m", order.kind, order.control, "10.0.20.2")]
    if order.competes:
        ends += [(f"t{index}", "tcp", "reno", f"10.0.{20 + index}.2") for index in range(order.bottlenecks)]
    until_s = str(order.warm_up_s + order.seconds + 1)
    with contextlib.ExitStack() as ending:

        def start(host: str, *words: str) -> subprocess.Popen[str]:
            command = ["ip", "netns", "exec", host, sys.executable, "-m", __spec__.name, *words]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ending.callback(process.wait)
            ending.callback(process.kill)
            return process

        kinds = [kind for _, kind, _, _ in ends]
        sink = start("b", "sink", str(order.warm_up_s), str(order.seconds), *kinds)
        assert sink.stdout is not None
        sink.stdout.readline()
        for number, (host, kind, control, address) in enumerate(ends):
            late_s = str(draws.random())
            start(host, "source", kind, control, address, str(PORT + number), late_s, until_s)
        time.sleep(order.warm_up_s + order.seconds)
        subflows = _sockets("m")
        counted = json.loads(sink.stdout.readline())
    return {"goodput_bps": [8 * size / order.seconds for size in counted], "subflows": subflows}


def _sockets(host: str) -> list[str]:
    words = ["ip", "netns", "exec", host, "ss", "-tinHO", "dport", ">=", f":{PORT}"]
    return sorted(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines())


def _socket(kind: str) -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if kind == "mptcp" else 0)


def sink(warm_up_s: str, seconds: str, *kinds: str) -> None:
    """Receive one connection on each port; tell what each brought from one time to another."""
    counted = [0 for _ in kinds]

    def receive(number: int, listener: socket.socket) -> None:
        peer, _ = listener.accept()
        while data := peer.recv(1 << 16):
            counted[number] += len(data)

    for number, kind in enumerate(kinds):
        listener = _socket(kind)
        listener.bind(("", PORT + number))
        listener.listen()
        threading.Thread(target=receive, args=(number, listener), daemon=True).start()
    print("ready", flush=True)
    time.sleep(float(warm_up_s))
    before = list(counted)
    time.sleep(float(seconds))
    print(json.dumps([now - then for now, then in zip(counted, before, strict=True)]), flush=True)
    time.sleep(10)


def source(kind: str, control: str, address: str, port: str, late_s: str, until_s: str) -> None:
    """Send as much as goes."""
    end_s = time.monotonic() + float(until_s)
    time.sleep(float(late_s))
    with _socket(kind) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sock.connect((address, int(port)))
        while time.monotonic() < end_s:
            sock.sendall(bytes(1 << 15))


ROLES: dict[str, Callable[..., None]] = {"sink": sink, "source": source}


def _called(words: Sequence[str]) -> None:
    if words[0] in ROLES:
        ROLES[words[0]](*words[1:])
    else:
        main(Path(words[0]), Path(words[1]))


if __name__ == "__main__":
    _called(sys.argv[1:])
