"""A switch that splits a flow over paths and one that joins them, on real Open vSwitch, and a sender."""

from __future__ import annotations

import ctypes
import ipaddress
import json
import math
import socket
import struct
import subprocess
import time
from collections.abc import Sequence

from switch import Port, PrivateInstance
from switch.ppfs import FlowKey

FRAME_BYTES = 590
BURST = 10
CATCH_UP_S = 0.0005
"""One burst: what the machine held up is not to come at once."""
HOST_PORT, FIRST_PATH_PORT = 1, 10
SOURCE_MAC, DESTINATION_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 40000, 5001, socket.IPPROTO_UDP)


def run(command: str) -> str:
    """Run a command and return what it prints; raise CalledProcessError if it fails."""
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

    def arrived(self) -> int:
        """Return the packets that have reached the receiver."""
        return received("h2")

    def over_paths(self) -> list[int]:
        """Return the packets that have reached the joining switch over each path."""
        return [received(f"b{path}") for path in range(self.paths)]

    def megaflows(self) -> int:
        """Return how many megaflows the datapath has."""
        return self.ovs.appctl("dpctl/dump-flows").count("actions:")

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


def sigmas(packets: Sequence[int], shares: Sequence[float]) -> float:
    """Return the largest distance of a path from its share, in standard deviations of the binomial."""
    total = sum(packets)
    return max(
        abs(count - total * share) / math.sqrt(total * share * (1 - share))
        for count, share in zip(packets, shares, strict=True)
    )
