"""Packets that the machine lost where no link would: in packet sockets and in the queues behind veths.

Open vSwitch's userspace datapath reads each port by a packet socket, or by AF_XDP. When it comes too late the
socket or the ring is full and the kernel drops what arrives, which a TCP takes for congestion of a network
that has none.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from topologies.interface_names import InterfaceNames
from topologies.model import Network

_SOCKET = re.compile(r"^p_\S+\s+(?:[A-Z-]+\s+)?\d+\s+\d+\s+\S*?:(\S+)\s.*\bskmem:\([^)]*\bd(\d+)\)")
_RECEIVE_DROP, _TRANSMIT_DROP = 3, 11
"""Columns of /proc/net/dev behind the interface's name (proc(5))."""


def parse_packet_sockets(text: str) -> Counter[str]:
    """Return how many packets the sockets of each interface have dropped, as `ss -0HOnm` tells it."""
    drops: Counter[str] = Counter()
    for line in text.splitlines():
        if match := _SOCKET.match(line.strip()):
            drops[match[1]] += int(match[2])
    return drops


def parse_devices(text: str) -> dict[str, tuple[int, int]]:
    """Return the packets that each interface has dropped in receiving and in sending, from /proc/net/dev."""
    devices = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.strip().partition(":")
        columns = rest.split()
        devices[name] = int(columns[_RECEIVE_DROP]), int(columns[_TRANSMIT_DROP])
    return devices


def read_packet_sockets() -> str:
    """Return what `ss` says of the packet sockets of this network namespace."""
    done = subprocess.run(["ss", "-0HOnm"], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def read_devices() -> str:
    """Return the counters of this network namespace's interfaces."""
    return Path("/proc/thread-self/net/dev").read_text()


class MachineDrops:
    """Counts from when it is made. Bridges and wires are in the namespace of the caller.

    The link emulator's sockets are left out: it counts itself what they drop. Where ports are read by AF_XDP,
    a full ring shows as drops of the port itself.
    """

    def __init__(
        self,
        network: Network,
        names: InterfaceNames,
        sockets: Callable[[], str] = read_packet_sockets,
        devices: Callable[[], str] = read_devices,
        *,
        has_af_xdp: bool = False,
    ) -> None:
        self._has_af_xdp = has_af_xdp
        self._sockets = sockets
        self._devices = devices
        hosts = set(network.hosts)
        self._ports = {
            names.port(arc.tail, arc.tail_port): f"at port {arc.tail_port} of {arc.tail}"
            for arc in network.arcs()
            if arc.tail not in hosts
        }
        self._relays = {
            relay: (f"on link {link.name} beside {end}", end in hosts)
            for index, link in enumerate(network.links)
            for relay, end in zip(names.wire(index), link.ends, strict=True)
        }
        self._before = self._read()

    def since_start(self) -> dict[str, int]:
        """Return the packets lost at each place that lost any."""
        return dict(self._read() - self._before)

    def _read(self) -> Counter[str]:
        lost: Counter[str] = Counter()
        for interface, drops in parse_packet_sockets(self._sockets()).items():
            if interface in self._ports:
                lost[self._ports[interface]] += drops
        for interface, (receiving, sending) in parse_devices(self._devices()).items():
            # A veth counts as sent in vain what the queue behind its peer had no room for; of packets from
            # hosts, whose interfaces are elsewhere, the receiving end counts the same.
            if interface in self._ports:
                lost[self._ports[interface]] += sending + (receiving if self._has_af_xdp else 0)
            elif interface in self._relays:
                place, is_from_host = self._relays[interface]
                lost[place] += sending + (receiving if is_from_host else 0)
        return lost
