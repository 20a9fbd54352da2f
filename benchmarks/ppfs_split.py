"""How exact per-packet splitting is and what it costs: `python -m benchmarks.ppfs_split` (as root).

Runs in namespaces of its own: a sender, a switch that splits over up to 16 paths, a switch that joins them
and a receiver, all on the userspace datapath. Every row sends packets at a steady rate and prints the shares
that were asked for and those that came, the largest distance of a path in standard deviations of the
binomial, megaflows, packets lost, and the share of a core that Open vSwitch takes. Sender and switches share
the machine: run it on an idle one. `--docs` renews the tables of docs/ppfs.md.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import ipaddress
import json
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from benchmarks.command_line import command_line
from benchmarks.pages import renew
from switch import Port, PrivateInstance
from switch.ppfs import FlowKey, Splitter

INSIDE = "--inside"
FRAME_BYTES = 590
BURST = 10
CATCH_UP_S = 0.0005
"""One burst: what the machine held up is not to come at once."""
HOST_PORT, FIRST_PATH_PORT = 1, 10
SOURCE_MAC, DESTINATION_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 40000, 5001, socket.IPPROTO_UDP)
SHARES = ([0.5, 0.5], [0.85, 0.15], [0.2, 0.3, 0.5], [0.05, 0.08, 0.1, 0.12, 0.13, 0.15, 0.17, 0.2])
GROUPS = {
    "dp_hash": "selection_method=dp_hash",
    "hash": "selection_method=hash,fields(ip_src,ip_dst,udp_src,udp_dst)",
}
"""Selection methods of select groups, for `ovs-ofctl add-group`; OpenFlow 1.3 always gets dp_hash."""
Mode = Literal["auto", "native", "generic"]


def run(command: str) -> str:
    """Run a command and return what it prints; its failure ends the benchmark."""
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def stamps(paths: int) -> list[str]:
    """Return the Ethernet source address of each path."""
    return [f"0a:50:50:00:01:{path:02x}" for path in range(paths)]


def received(interface: str) -> int:
    """Return the packets that an interface has received."""
    packets: int = json.loads(run(f"ip -s -j link show dev {interface}"))[0]["stats64"]["rx"]["packets"]
    return packets


def udp_frame(flow: FlowKey, size: int = FRAME_BYTES) -> bytes:
    """Return an Ethernet frame of a UDP flow, without checksums."""
    addresses = [bytes.fromhex(mac.replace(":", "")) for mac in (DESTINATION_MAC, SOURCE_MAC)]
    ends = [ipaddress.ip_address(address).packed for address in (flow.source_ip, flow.destination_ip)]
    if len(ends[0]) == 16:
        ip = struct.pack("!HIHBB16s16s", 0x86DD, 6 << 28, size - 54, flow.protocol, 64, *ends)
    else:
        ip = struct.pack("!HBBHHHBBH4s4s", 0x0800, 0x45, 0, size - 14, 0, 0, 64, flow.protocol, 0, *ends)
    udp = struct.pack("!HHHH", flow.source_port, flow.destination_port, size - 12 - len(ip), 0)
    return b"".join([*addresses, ip, udp]).ljust(size, b"\0")


class Split:
    """A splitting switch S0, `paths` wires, and a joining switch S1; `h1` and `h2` are the hosts' ends.

    Args:
        ovs: the instance that gets the switches.
        paths: between them.
    """

    def __init__(self, ovs: PrivateInstance, paths: int) -> None:
        self.ovs = ovs
        self.paths = paths
        wires = [("h1", "in"), ("out", "h2"), *((f"a{path}", f"b{path}") for path in range(paths))]
        for one, other in wires:
            run(f"ip link add {one} type veth peer name {other}")
            for end in (one, other):
                # Neighbour discovery of the ends would be packets, and megaflows, that nobody sent.
                run(f"ip link set {end} addrgenmode none up")
        for name, identifier, host, side in (("S0", 1, "in", "a"), ("S1", 2, "out", "b")):
            ports = [Port(f"{side}{path}", FIRST_PATH_PORT + path) for path in range(paths)]
            ovs.add_bridge(name, datapath_id=identifier, ports=[Port(host, HOST_PORT), *ports])
        ovs.vsctl("set", "bridge", "S0", "protocols=OpenFlow13,OpenFlow15")
        for path, stamp in enumerate(stamps(paths)):
            port = FIRST_PATH_PORT + path
            back = f"set_field:{SOURCE_MAC}->eth_src,output:{HOST_PORT}"
            ovs.ofctl("add-flow", "S0", f"priority=200,ip,eth_src={stamp},actions=output:{port}")
            ovs.ofctl("add-flow", "S1", f"priority=200,ip,eth_src={stamp},actions={back}")
        # Packets of the flow that have no stamp take the first path; so do those that go back.
        ports_match = f"tp_src={FLOW.source_port},tp_dst={FLOW.destination_port}"
        ovs.ofctl("add-flow", "S0", f"priority=100,udp,{ports_match},actions=output:{FIRST_PATH_PORT}")
        ovs.ofctl("add-flow", "S0", f"priority=50,in_port={FIRST_PATH_PORT},actions=output:{HOST_PORT}")
        ovs.ofctl("add-flow", "S1", f"priority=50,in_port={HOST_PORT},actions=output:{FIRST_PATH_PORT}")
        ovs.ofctl("add-flow", "S1", f"priority=50,in_port={FIRST_PATH_PORT},actions=output:{HOST_PORT}")

    def split_by_group(self, method: str, shares: Sequence[float]) -> None:
        """Have Open vSwitch choose the path, by a select group of weighted buckets ."""
        buckets = ",".join(
            f"bucket=weight:{round(1000 * share)},"
            f"actions=set_field:{stamp}->eth_src,output:{FIRST_PATH_PORT + path}"
            for path, (share, stamp) in enumerate(zip(shares, stamps(len(shares)), strict=True))
        )
        group = f"group_id=1,type=select,{method},{buckets}"
        command = ["ovs-ofctl", "--protocols=OpenFlow15", "add-group", "S0", group]
        subprocess.run(command, check=True, env={**os.environ, **self.ovs.environment})
        self.ovs.ofctl("add-flow", "S0", f"priority=300,udp,in_port={HOST_PORT},actions=group:1")

    def arrived(self) -> int:
        """Return the packets that have reached the receiver."""
        return received("h2")

    def over_paths(self) -> list[int]:
        """Return the packets that have reached the joining switch over each path."""
        return [received(f"b{path}") for path in range(self.paths)]

    def megaflows(self) -> int:
        """Return how many megaflows the datapath has."""
        return self.ovs.appctl("dpctl/dump-flows").count("actions:")

    def forwarder_s(self) -> float:
        """Return the CPU time of ovs-vswitchd."""
        process = (self.ovs.run_dir / "ovs-vswitchd.pid").read_text().strip()
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Remove switches and wires."""
        self.ovs.remove_bridge("S0", "S1")
        for end in ("h1", "out", *(f"a{path}" for path in range(self.paths))):
            run(f"ip link del {end}")


class _Buffer(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """`struct msghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint32),
        ("buffers", ctypes.POINTER(_Buffer)),
        ("buffer_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (("header", _Header), ("sent", ctypes.c_uint32))


def send(interface: str, frames: Sequence[bytes], count: int, packets_per_s: float) -> tuple[float, float]:
    """Send frames, one after the other and again, in bursts at a steady rate.

    Returns the seconds it took, and the longest for which a burst was held up.

    A sender that was held up makes up for one burst of it at most: the rate is not to be exceeded.

    Args:
        interface: over which they go.
        frames: with their Ethernet headers.
        count: how many, a multiple of the burst.
        packets_per_s: the rate.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    bursts = [_burst(frames, first) for first in range(0, math.lcm(len(frames), BURST), BURST)]
    interval = BURST / packets_per_s
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        due = start = time.monotonic()
        held_s = 0.0
        for number in range(count // BURST):
            time.sleep(max(0.0, due - time.monotonic()))
            sent = libc.sendmmsg(sender.fileno(), bursts[number % len(bursts)], BURST, 0)
            if sent != BURST:
                raise OSError(ctypes.get_errno(), f"{interface} took {sent} of {BURST} frames")
            now = time.monotonic()
            held_s = max(held_s, now - due)
            due = max(due + interval, now - CATCH_UP_S)
        return time.monotonic() - start, held_s


def _burst(frames: Sequence[bytes], first: int) -> ctypes.Array[_Message]:
    messages = (_Message * BURST)()
    for number, message in enumerate(messages, first):
        frame = frames[number % len(frames)]
        message.header.buffers = ctypes.pointer(_Buffer(frame, len(frame)))
        message.header.buffer_count = 1
    return messages


@dataclass(frozen=True)
class Outcome:
    """What became of the packets of one row.

    Attributes:
        packets: over each path, as the joining switch's ports counted them.
        counted: packets over each path as the splitter counted them; None without one.
        lost: packets that were sent and did not arrive.
        megaflows: in the datapath, right after the last packet.
        packets_per_s: the rate at which they were sent.
        cores: CPU time of Open vSwitch, as a share of one core.
        held_s: the longest for which the machine held the sender up: beyond 6 ms Open vSwitch loses packets
            if it was held up as well.
    """

    packets: list[int]
    counted: list[int] | None
    lost: int
    megaflows: int
    packets_per_s: float
    cores: float
    held_s: float


def sigmas(packets: Sequence[int], shares: Sequence[float]) -> float:
    """Return the largest distance of a path from its share, in standard deviations of the binomial."""
    total = sum(packets)
    return max(
        abs(count - total * share) / math.sqrt(total * share * (1 - share))
        for count, share in zip(packets, shares, strict=True)
    )


def measure(
    how: str,
    shares: Sequence[float],
    count: int,
    packets_per_s: float,
    *,
    connections: int = 1,
    realtime_priority: int | None = None,
) -> Outcome:
    """Send packets through a split and return what became of them.

    Args:
        how: mode of the splitter, or a name in `GROUPS` for a select group in its place.
        shares: of the paths.
        count: packets to send.
        packets_per_s: at this rate.
        connections: over which the packets are spread evenly; the splitter splits the first alone.
        realtime_priority: of ovs-vswitchd.
    """
    ports = range(FLOW.source_port, FLOW.source_port + connections)
    frames = [udp_frame(replace(FLOW, source_port=port)) for port in ports]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ovs = PrivateInstance(folder, datapath="netdev", realtime_priority=realtime_priority)
        network = Split(stack.enter_context(ovs), len(shares))
        stack.callback(network.close)
        splitter = None
        if how in GROUPS:
            network.split_by_group(GROUPS[how], shares)
        else:
            splitter = stack.enter_context(Splitter("in", cast(Mode, how)))
            splitter.set(FLOW, shares, stamps(len(shares)))
        cpu_s = network.forwarder_s()
        took_s, held_s = send("h1", frames, count, packets_per_s)
        cpu_s = network.forwarder_s() - cpu_s
        megaflows = network.megaflows()
        time.sleep(0.2)
        arrived, packets = network.arrived(), network.over_paths()
        counted = None if splitter is None else [packets for packets, _ in splitter.counters(FLOW)]
    return Outcome(packets, counted, count - arrived, megaflows, count / took_s, cpu_s / took_s, held_s)


def row(what: str, shares: Sequence[float], outcome: Outcome) -> None:
    """Print one line of the table."""
    asked = " ".join(f"{share:.2f}" for share in shares)
    came = " ".join(f"{count / sum(outcome.packets):.4f}" for count in outcome.packets)
    figures = f"{sigmas(outcome.packets, shares):6.1f} {outcome.megaflows:9} {outcome.lost:6}"
    cost = f"{outcome.packets_per_s:9.0f} {100 * outcome.cores:5.0f} % {1e3 * outcome.held_s:7.1f}"
    print(f"{what:32} {asked:>40} {came:>56} {figures} {cost}", flush=True)


def page_line(what: str, connections: int, shares: Sequence[float], outcome: Outcome) -> str:
    """Return the line of docs/ppfs.md."""
    asked = " ".join(f"{share:.2f}" for share in shares)
    came = " ".join(f"{count / sum(outcome.packets):.4f}" for count in outcome.packets)
    distance = f"{sigmas(outcome.packets, shares):.1f}"
    return (
        f"| {what} | {connections} | {asked} | {came} | {distance} | {outcome.megaflows} | {outcome.lost} |"
    )


def measure_all(arguments: argparse.Namespace) -> None:
    """Print the table, and renew that of docs/ppfs.md if asked to."""
    page = [
        "| mechanism | connections | asked | came | distance | megaflows | lost |",
        "|---|---|---|---|---|---|---|",
    ]
    run("ip link set lo up")
    priority = arguments.realtime_priority or None
    if priority:
        # The sender too, or else it is late; what it starts is not.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    print(
        f"{'':32} {'asked':>40} {'came':>56} {'sigma':>6} megaflows {'lost':>6} packets/s {'core':>7} held ms"
    )
    for mode in arguments.modes.split(","):
        for shares in SHARES:
            outcome = measure(mode, shares, arguments.packets, arguments.rate, realtime_priority=priority)
            row(f"splitter, {mode}", shares, outcome)
            page.append(page_line(f"splitter, {mode}", 1, shares, outcome))
    for method in GROUPS if arguments.groups else ():
        for connections in (1, 2000):
            for shares in SHARES[:2]:
                outcome = measure(
                    method, shares, 20_000, 5_000, connections=connections, realtime_priority=priority
                )
                row(f"group {method}, {connections} connections", shares, outcome)
                page.append(page_line(f"select group, {method}", connections, shares, outcome))
    if arguments.docs:
        renew("ppfs.md", "split", page)


def main() -> None:
    """Start again in namespaces of its own, and measure there."""
    parser = command_line(__doc__)
    parser.add_argument("--packets", type=int, default=200_000, help="of each row (default 200000)")
    parser.add_argument("--rate", type=float, default=20_000, help="packets a second (default 20000)")
    parser.add_argument("--modes", default="generic,native", help="of the splitter (default generic,native)")
    parser.add_argument(
        "--groups", action=argparse.BooleanOptionalAction, default=True, help="select groups beside it"
    )
    parser.add_argument(
        "--realtime-priority", type=int, default=50, help="of switch and sender; 0: none (default 50)"
    )
    parser.add_argument("--docs", action="store_true", help="renew the table of docs/ppfs.md")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        measure_all(arguments)
        return
    if os.geteuid() != 0:
        sys.exit("benchmarks.ppfs_split: network namespaces need root: run it as root")
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    again = [sys.executable, "-m", "benchmarks.ppfs_split", *sys.argv[1:], INSIDE]
    sys.exit(subprocess.run([*namespaces, *again], check=False).returncode)


if __name__ == "__main__":
    main()
