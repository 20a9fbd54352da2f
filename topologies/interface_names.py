"""Names of interfaces: those of Mininet where they fit into Linux's 15 characters, else shortened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from topologies.model import Network

MAX_LENGTH = 15
"""IFNAMSIZ - 1 of the kernel."""
RESERVED = frozenset({"lo", "mgmt", "all", "default", "ovs-netdev", "ovs-system", "bonding_masters"})
"""Names that are taken in every namespace, by the management network, or by Open vSwitch."""


class InterfaceNames:
    """Names for everything that one network needs, each of them unique.

    Args:
        network: the network.
    """

    def __init__(self, network: Network) -> None:
        self._taken = set(RESERVED)
        self._bridges = {switch: self._unique(switch, "") for switch in network.switches}
        ports: dict[str, int] = dict.fromkeys((node.name for node in network.nodes), 0)
        self._ports: dict[tuple[str, int], str] = {}
        hosts = set(network.hosts)
        for end in (end for link in network.links for end in link.ends):
            ports[end] += 1
            # Mininet numbers the interfaces of hosts from 0 and those of switches by their ports, from 1.
            number = ports[end] - 1 if end in hosts else ports[end]
            self._ports[end, ports[end]] = self._unique(end, f"-eth{number}")
        self._management = {host: self._unique(host, "-m") for host in network.hosts}
        self._wires = [
            (self._unique(f"wire{i}", "a"), self._unique(f"wire{i}", "b")) for i in range(len(network.links))
        ]

    def bridge(self, switch: str) -> str:
        """Return the bridge of a switch: the switch's name where that serves."""
        return self._bridges[switch]

    def port(self, node: str, port: int) -> str:
        """Return the interface of a node's port (numbered from 1, as in `topologies.model`)."""
        return self._ports[node, port]

    def management(self, host: str) -> str:
        """Return the interface at the management bridge that leads to a host."""
        return self._management[host]

    def wire(self, index: int) -> tuple[str, str]:
        """Return the two interfaces between which the link emulator carries a link."""
        return self._wires[index]

    def _unique(self, base: str, suffix: str) -> str:
        for candidate in _candidates(base, suffix):
            if candidate not in self._taken:
                self._taken.add(candidate)
                return candidate
        raise AssertionError("unreachable: there are more candidates than names")


def _candidates(base: str, suffix: str) -> Iterable[str]:
    if len(base) + len(suffix) <= MAX_LENGTH:
        yield base + suffix
    for attempt in range(1 << 16):
        digest = hashlib.blake2s(f"{base}/{attempt}".encode(), digest_size=2).hexdigest()
        yield base[: MAX_LENGTH - len(suffix) - len(digest)] + digest + suffix
