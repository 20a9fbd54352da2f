"""The hosts: those of the topology file, and others that made themselves known by asking for a neighbour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from controller.model.journal import Journaled, JournaledDict, JournaledSet
from controller.model.neighbour import NeighbourMessage
from controller.state.live_network import LiveNetwork
from topologies.model import IpVersion, ip_version, is_host_address

LEARNED_HOST = "learned_host"
"""Kind of the records of learned hosts; their keys are IP addresses."""

_MAX_LEARNED = 1024
_MAX_LEARNED_A_PORT = 16
"""Hosts learned at most, in all and behind one port, so that a stranger cannot fill the switches' tables, nor
keep others out."""


@dataclass(frozen=True)
class Host:
    """A host by one of its addresses, and the switch port behind which it is.

    One of the file with addresses of both IP versions is two of these. Learned ones are named by their one.
    """

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    learned: bool = False


class Sighting(Enum):
    """What a message says of its sender."""

    NOTHING = "nothing"  # it is none that may be learned
    SYNONYMS = "same"  # a known host, as it is known
    NEW = "new"  # a host that is not known, or a host of the file that has not spoken yet
    OTHER = "other"  # a known host, with another address or at another place
    REFUSED = "refused"  # one too many


class HostTable(Journaled):
    """Finds hosts by name or address, and says what their messages tell.

    A host of the file keeps its address and its place whatever others claim; only its MAC address is
    believed, and only from its own port. A host with several links is known behind the first.
    """

    def __init__(self, live: LiveNetwork, age_s: float = math.inf) -> None:
        self._live = live
        self._age_s = age_s
        self._heard: JournaledDict[str, float] = JournaledDict()  # when, by the address of a learned host
        self._spoken: JournaledSet[str] = JournaledSet()  # addresses of the file that their hosts have used
        self._check_at = math.inf  # not after the first of them has aged
        self._by_name: JournaledDict[str, tuple[Host, ...]] = JournaledDict()  # IPv4 first
        self._by_ip: JournaledDict[str, Host] = JournaledDict()
        network = live.network
        for arc in network.arcs():
            if live.is_host(arc.head) and not live.is_host(arc.tail) and arc.head not in self._by_name:
                mac = network.host_mac(arc.head)
                for ip in network.host_ips(arc.head).values():
                    self._put(Host(arc.head, ip, mac, arc.tail, arc.tail_port))

    def restore(self, records: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """Know the hosts again that were learned before a restart."""
        for ip, record in records.items():
            if ip not in self._by_ip and record["switch"] in self._live.network.switches:
                self._put(Host(ip, ip, record["mac"], record["switch"], record["port"], learned=True))
                self._hear(ip, now)

    def learned_records(self) -> dict[str, dict[str, Any]]:
        """Return the learned hosts as `restore` takes them."""
        return {ip: self.record_of(self._by_ip[ip]) for ip in self._heard}

    def follow(self, ip: str, record: Mapping[str, Any] | None, now: float) -> None:
        """Know a learned host as another replica has written it; None: it is known no more."""
        self.forget(ip)
        if record is not None:
            self.restore({ip: record}, now)

    def follow_ports(self) -> None:
        """Record that ports of the file's hosts have become known."""
        for host in [host for host in self._by_ip.values() if not host.learned]:
            port = self._live.ports[host.switch, host.name]
            if port != host.port:
                self._put(replace(host, port=port))

    def set_age(self, age_s: float) -> None:
        """Set the time after which learned hosts that are silent are forgotten."""
        self._age_s = age_s
        self._check_at = min((heard + age_s for heard in self._heard.values()), default=math.inf)

    def _hear(self, ip: str, now: float) -> None:
        self._heard[ip] = now
        self._check_at = min(self._check_at, now + self._age_s)

    def next_deadline(self) -> float | None:
        """Return the time at which `take_aged` has something to do."""
        return None if self._check_at == math.inf else self._check_at

    def take_aged(self, now: float) -> list[Host]:
        """Forget the learned hosts that have said nothing for long, and return them."""
        if self._check_at > now:
            return []
        aged = [self._by_ip[ip] for ip, heard in self._heard.items() if heard + self._age_s <= now]
        for host in aged:
            self.forget(host.ip)
        self._check_at = min((heard + self._age_s for heard in self._heard.values()), default=math.inf)
        return aged

    @staticmethod
    def record_of(host: Host) -> dict[str, Any]:
        """Return a learned host as `restore` takes it."""
        return {"mac": host.mac, "switch": host.switch, "port": host.port}

    def find(self, name_or_ip: str, version: IpVersion | None = None) -> Host | None:
        """Return the host with this name, by one of its addresses, or with this address.

        Addresses of IPv6 are in their shortest form. Without a version, that of IPv4 comes first.
        """
        for host in self._by_name.get(name_or_ip) or (self._by_ip.get(name_or_ip),):
            if host is not None and (version is None or version == ip_version(host.ip)):
                return host
        return None

    def named(self, name: str) -> tuple[Host, ...]:
        """Return a host by each of its addresses."""
        return self._by_name.get(name, ())

    def has_known_mac(self, host: Host) -> bool:
        """Return whether a host's MAC address is known: it is that of its number, or the host has used it."""
        is_given = self._live.network.knows_mac(host.name, host.switch)
        return host.learned or host.ip in self._spoken or is_given

    def all(self) -> tuple[Host, ...]:
        """Return all hosts by each of their addresses, those of the file first."""
        return tuple(host for hosts in self._by_name.values() for host in hosts)

    def is_reachable(self, host: Host) -> bool:
        """Return whether the host's switch is connected and its port is up."""
        return self._live.port_is_live(self._live.datapath_id(host.switch), host.port)

    def sight(
        self, switch: str, port: int, packet: NeighbourMessage, now: float
    ) -> tuple[Sighting, Host | None]:
        """Return what a message at an edge port says of its sender, and the host as it would be."""
        mac, ip = packet.sender_mac, packet.sender_ip
        if not is_host_address(ip) or int(mac[:2], 16) & 1:  # a group address is nobody's own
            return Sighting.NOTHING, None
        known = self._by_ip.get(ip)
        if known is None:
            behind = len(self.learned_at(switch, port))
            if len(self._heard) >= _MAX_LEARNED or behind >= _MAX_LEARNED_A_PORT:
                return Sighting.REFUSED, None
            return Sighting.NEW, Host(ip, ip, mac, switch, port, learned=True)
        is_there = self._is_at(known, switch, port)
        if is_there and known.mac == mac:
            self._spoken.add(ip)
            if known.learned:
                self._hear(ip, now)
            return Sighting.SYNONYMS, known
        if not known.learned and not is_there:
            return Sighting.NOTHING, None
        changed = replace(known, mac=mac, switch=switch, port=port)
        # A host of the file that has not spoken yet is known by its number only.
        is_first = not known.learned and ip not in self._spoken
        return (Sighting.NEW if is_first else Sighting.OTHER), changed

    def put(self, host: Host, now: float) -> None:
        """Know a host from now on, or where it is and what address it has."""
        if host.learned:
            self._hear(host.ip, now)
        else:
            self._spoken.add(host.ip)
        self._put(host)

    def forget(self, ip: str) -> Host | None:
        """Forget a learned host, and return it."""
        host = self._by_ip.get(ip)
        if host is None or not host.learned:
            return None
        del self._by_ip[ip]
        del self._by_name[host.name]
        del self._heard[ip]
        return host

    def learned_at(self, switch: str, port: int) -> list[Host]:
        """Return the learned hosts behind a port."""
        return [host for host in map(self._by_ip.__getitem__, self._heard) if self._is_at(host, switch, port)]

    def learned_behind(self, switch: str) -> list[Host]:
        """Return the learned hosts behind a switch."""
        return [host for host in map(self._by_ip.__getitem__, self._heard) if host.switch == switch]

    def silent_since(self, ip: str, now: float) -> float:
        """Return for how long a learned host has said nothing; others are never silent."""
        return now - self._heard.get(ip, now)

    def is_sender(self, switch: str, port: int, packet: NeighbourMessage) -> bool:
        """Return whether a message at an edge port is of the host that it says it is of."""
        host = self._by_ip.get(packet.sender_ip)
        return host is not None and host.mac == packet.sender_mac and self._is_at(host, switch, port)

    @staticmethod
    def _is_at(host: Host, switch: str, port: int) -> bool:
        return (host.switch, host.port) == (switch, port)

    def _put(self, host: Host) -> None:
        others = (other for other in self._by_name.get(host.name, ()) if other.ip != host.ip)
        self._by_name[host.name] = tuple(sorted((host, *others), key=lambda each: ip_version(each.ip)))
        self._by_ip[host.ip] = host
