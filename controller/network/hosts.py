"""The hosts: those of the topology file, and others that made themselves known by ARP."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace

from controller.core.journal import JournaledDict
from controller.network.arp import ArpPacket
from controller.network.live_network import LiveNetwork
from topologies.model import DATA_NETWORK

__all__ = ["Host", "HostTable"]

_MAX_LEARNED = 1024
"""Hosts learned at most, so that a stranger cannot fill the switches' tables."""


@dataclass(frozen=True)
class Host:
    """A host and the switch port behind which it is."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    learned: bool = False


class HostTable:
    """Finds hosts by name or address and learns from their ARP packets.

    A host of the file keeps its address and its place whatever others claim; only its MAC address is
    believed, and only from its own port. A host with several links is known behind the first.
    """

    def __init__(self, live: LiveNetwork) -> None:
        self._live = live
        self._by_name: JournaledDict[str, Host] = JournaledDict()
        self._by_ip: JournaledDict[str, Host] = JournaledDict()
        network = live.network
        for arc in network.arcs():
            if live.is_host(arc.head) and not live.is_host(arc.tail) and arc.head not in self._by_name:
                ip, mac = network.host_ip(arc.head), network.host_mac(arc.head)
                self._put(Host(arc.head, ip, mac, arc.tail, arc.tail_port))

    def find(self, name_or_ip: str) -> Host | None:
        """Return the host with this name or IPv4 address."""
        return self._by_name.get(name_or_ip) or self._by_ip.get(name_or_ip)

    def all(self) -> tuple[Host, ...]:
        """Return all hosts, those of the file first."""
        return tuple(self._by_name.values())

    def is_reachable(self, host: Host) -> bool:
        """Return whether the host's switch is connected and its port is up."""
        return self._live.port_is_live(self._live.datapath_id(host.switch), host.port)

    def learn(self, switch: str, port: int, packet: ArpPacket) -> Host | None:
        """Take in what an ARP packet at an edge port says of its sender.

        Returns:
            The host, if something about it is new.
        """
        address = ipaddress.IPv4Address(packet.sender_ip)
        if address not in DATA_NETWORK or address in (DATA_NETWORK[0], DATA_NETWORK[-1]):
            return None
        if int(packet.sender_mac[:2], 16) & 1:  # a group address is nobody's own
            return None
        known = self._by_ip.get(packet.sender_ip)
        if known is None:
            learned = sum(host.learned for host in self._by_name.values())
            if learned >= _MAX_LEARNED:
                return None
            name = packet.sender_ip
            return self._put(Host(name, packet.sender_ip, packet.sender_mac, switch, port, learned=True))
        place = (known.switch, known.port) == (switch, port)
        if known.mac == packet.sender_mac and place:
            return None
        if known.learned or place:
            return self._put(replace(known, mac=packet.sender_mac, switch=switch, port=port))
        return None

    def _put(self, host: Host) -> Host:
        self._by_name[host.name] = host
        self._by_ip[host.ip] = host
        return host
