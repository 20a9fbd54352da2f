"""The network of the topology file, and what of it is there right now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from controller.model.journal import Journaled, JournaledDict, JournaledSet
from controller.model.messages import PacketOut
from controller.model.next_hops import NextHops
from controller.model.state_copy import LiveStatus
from controller.state.least_delay import LeastDelay
from controller.state.unknown_devices import UnknownDevices
from topologies.model import Arc, Network

_Port = tuple[int, int]  # datapath id, port number


def arc_name(tail: str, head: str) -> str:
    """Return the name of one direction of a link, as `S0->S4`."""
    return f"{tail}->{head}"


@lru_cache(maxsize=1 << 16)
def arcs_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the arcs along a path of nodes."""
    return tuple(arc_name(a, b) for a, b in pairwise(path))


class LiveNetwork(Journaled):
    """Follows which switches are connected, which ports are up and which links discovery has seen.

    A link between switches is up while discovery sees both directions and both ports are up; a link to a host
    while the switch is connected and the port is up. What discovery finds beside the file's links is a fault,
    and not used.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.arcs: JournaledDict[str, Arc] = JournaledDict(
            {arc_name(arc.tail, arc.head): arc for arc in network.arcs()}
        )
        self.ports = NextHops({(arc.tail, arc.head): arc.tail_port for arc in network.arcs()})
        self._links = {link.name: arc_name(*link.ends) for link in network.links}
        self._switches = {network.datapath_id(name): name for name in network.switches}
        self._datapath_ids = {name: datapath_id for datapath_id, name in self._switches.items()}
        self._numbers = {name: number for number, name in enumerate(network.switches, 1)}
        self._hosts = frozenset(network.hosts)
        self.ports.tags = {
            (arc.tail, arc.head): vlan for arc in network.arcs() if (vlan := network.vlans.get(arc.head))
        }
        self.ports.number_links(pair for pair in self.ports if self._hosts.isdisjoint(pair))
        self._arc_by_port: JournaledDict[_Port, str] = JournaledDict(
            {
                (self._datapath_ids[arc.tail], arc.tail_port): name
                for name, arc in self.arcs.items()
                if arc.tail not in self._hosts and arc.tail_port
            }
        )
        self._connected: JournaledSet[int] = JournaledSet()
        self._away: JournaledSet[int] = JournaledSet()
        self._live_ports: JournaledDict[int, frozenset[int]] = JournaledDict()  # by datapath id
        self._seen: JournaledSet[str] = JournaledSet()
        self._unknown_devices = UnknownDevices(self._switches)
        self._up: JournaledSet[str] = JournaledSet()
        self._changed: JournaledDict[str, None] = JournaledDict()  # links that went or returned
        self._rebound: JournaledDict[str, None] = JournaledDict()  # switches whose ports are others
        self._arcs_from: dict[str, list[str]] = {node.name: [] for node in network.nodes}
        for name, arc in self.arcs.items():
            self._arcs_from[arc.tail].append(name)
        self._disabled: JournaledSet[str] = JournaledSet()  # links
        self._revisions: JournaledDict[str, int] = JournaledDict()  # of links that were changed
        self.version = 0  # changes whenever the arcs that are up do, or their delays
        self.delays_version = 0
        self.least_delay = self._new_least_delay()

    def _new_least_delay(self) -> LeastDelay:
        """Return paths of least delay by the delays that links have now."""
        between = {
            name: arc
            for name, arc in self.arcs.items()
            if arc.tail not in self._hosts and arc.head not in self._hosts
        }
        made = LeastDelay(self.network.switches, between)
        for name in self._up:
            made.set_up(name, True)
        return made

    def switch_name(self, datapath_id: int) -> str | None:
        """Return the name of a switch; None if the file does not have it."""
        return self._switches.get(datapath_id)

    def datapath_id(self, switch: str) -> int:
        """Return the datapath id of a switch of the file."""
        return self._datapath_ids[switch]

    def is_connected(self, switch: str) -> bool:
        """Return whether a switch of the file is connected."""
        return self._datapath_ids[switch] in self._connected

    def is_connected_id(self, datapath_id: int) -> bool:
        """Return whether the switch with a datapath id is connected."""
        return datapath_id in self._connected

    def arc_at(self, datapath_id: int, port: int) -> Arc | None:
        """Return the arc that leaves a switch by this port; None if the file has none there."""
        name = self._arc_by_port.get((datapath_id, port))
        return None if name is None else self.arcs[name]

    def tag_at(self, datapath_id: int, port: int) -> int | None:
        """Return the VLAN tag of what a switch sends out of a port."""
        arc = self.arc_at(datapath_id, port)
        return None if arc is None else self.ports.tags.get((arc.tail, arc.head))

    def packet_out(self, datapath_id: int, port: int, frame: bytes) -> PacketOut:
        """Return what brings a frame to the hosts behind a port."""
        return PacketOut(datapath_id, port, frame, self.tag_at(datapath_id, port))

    def name_ports(self, datapath_id: int, names: Mapping[int, str]) -> tuple[str, ...]:
        """Record what a switch calls its ports; returns what it lacks of the file, as sentences.

        A port that the file does not name is the one that is called as its neighbour, or as the link.
        """
        switch = self._switches.get(datapath_id)
        numbers = {name: number for number, name in names.items()}
        missing = []
        for arc in self.arcs_from(switch) if switch is not None else ():
            said = self.network.port_name(arc.tail, arc.head)
            if said is not None:
                if said in numbers:
                    self._bind_port(arc.tail, arc.head, numbers[said])
                else:
                    missing.append(f"{switch} has no port called {said!r}, which the topology file names")
            elif not arc.tail_port:
                candidates = (numbers.get(name) for name in (arc.head, f"{arc.tail}-{arc.head}"))
                number = next((number for number in candidates if number is not None), None)
                if number is not None:
                    self._bind_port(arc.tail, arc.head, number)
        return tuple(missing)

    def _bind_port(self, tail: str, head: str, port: int) -> None:
        """Know from now on by which port a switch reaches a neighbour."""
        there, back, datapath_id = arc_name(tail, head), arc_name(head, tail), self._datapath_ids[tail]
        if port != self.ports[tail, head]:
            self._rebound[tail] = None
        self._arc_by_port.pop((datapath_id, self.ports[tail, head]), None)
        self._arc_by_port[datapath_id, port] = there
        self.ports[tail, head] = port
        self.arcs[there] = replace(self.arcs[there], tail_port=port)
        if back in self.arcs:
            self.arcs[back] = replace(self.arcs[back], head_port=port)
        self._unknown_devices.links.pop((datapath_id, port), None)

    def _learn_link(self, tail: _Port, head: _Port) -> bool:
        """Learn the ports of a link from a discovery packet; returns whether there was one to learn."""
        one, other = self._switches.get(tail[0]), self._switches.get(head[0])
        if one is None or other is None or (one, other) not in self.ports:
            return False
        ends = ((one, other, tail), (other, one, head))
        known = [(self.ports[a, b] or port[1]) == port[1] for a, b, port in ends]
        if not all(known) or all(self.ports[a, b] for a, b, _ in ends):
            return False
        for a, b, port in ends:
            if not self.ports[a, b]:
                self._bind_port(a, b, port[1])
        return True

    def switch_number(self, switch: str) -> int:
        """Return the place of a switch in the file, from 1."""
        return self._numbers[switch]

    def is_edge_port(self, datapath_id: int, port: int) -> bool:
        """Return whether a host may be behind a port: neither the file nor discovery has a switch there."""
        arc = self.arc_at(datapath_id, port)
        if arc is not None and arc.head not in self._hosts:
            return False
        return arc is not None or (datapath_id, port) not in self._unknown_devices.links

    def edge_ports(self) -> list[_Port]:
        """Return the ports of connected switches that are up and may have hosts behind them."""
        ports = (port for datapath_id in self._connected for port in self.live_ports_of(datapath_id))
        return sorted(port for port in ports if self.is_edge_port(*port))

    def port_is_live(self, datapath_id: int, port: int) -> bool:
        """Return whether a connected switch's port is up."""
        return port in self._live_ports.get(datapath_id, ())

    def arc_is_up(self, name: str) -> bool:
        """Return whether packets pass this way (see the class)."""
        return name in self._up

    @property
    def is_whole(self) -> bool:
        """Whether packets pass every link of the file both ways."""
        return len(self._up) == len(self.arcs)

    def _refresh(self, arcs: Iterable[Arc | None]) -> None:
        """Find out whether packets pass these arcs, and those back, now that something has changed."""
        for arc in arcs:
            if arc is None:
                continue
            for name in (arc_name(arc.tail, arc.head), arc_name(arc.head, arc.tail)):
                is_up = self._is_up(name)
                if is_up != (name in self._up):
                    (self._up.add if is_up else self._up.discard)(name)
                    self.least_delay.set_up(name, is_up)
                    self._changed[arc.link] = None
                    self.version += 1

    def take_changed_links(self) -> tuple[str, ...]:
        """Return the links that went or returned since the last time."""
        changed = tuple(self._changed)
        self._changed.clear()
        return changed

    def take_rebound(self) -> tuple[str, ...]:
        """Return the switches of which ports have become known, or are others, since the last time."""
        rebound = tuple(self._rebound)
        self._rebound.clear()
        return rebound

    def has_link(self, name: str) -> bool:
        """Return whether the file has a link, named in either direction."""
        try:
            self.network.link(name)
        except KeyError:
            return False
        return True

    def link_is_up(self, link: str) -> bool:
        """Return whether packets pass a link of the file both ways."""
        a, b = link.split("-")
        return arc_name(a, b) in self._up

    def _is_up(self, name: str) -> bool:
        arc = self.arcs[name]
        if arc.link in self._disabled:
            return False
        ends = [(arc.tail, arc.tail_port), (arc.head, arc.head_port)]
        if not all(
            self.port_is_live(self._datapath_ids[node], port)
            for node, port in ends
            if node not in self._hosts
        ):
            return False
        if arc.tail in self._hosts or arc.head in self._hosts:
            return True
        return name in self._seen and arc_name(arc.head, arc.tail) in self._seen

    def is_enabled(self, link: str) -> bool:
        """Return whether a link of the file may be used."""
        return link not in self._disabled

    def revision(self, link: str) -> int:
        """Return how often a link was changed."""
        return self._revisions.get(link, 0)

    def change_link(
        self, link: str, rate_bps: float | None, delay_s: float | None, enabled: bool | None
    ) -> None:
        """Give both directions of a link of the file another rate or delay, or let it be used or not."""
        arcs = [arc for arc in self.arcs.values() if arc.link == link]
        for arc in arcs:
            changed = replace(
                arc,
                rate_bps=arc.rate_bps if rate_bps is None else rate_bps,
                delay_s=arc.delay_s if delay_s is None else delay_s,
            )
            self.arcs[arc_name(arc.tail, arc.head)] = changed
        if delay_s is not None:
            self.delays_version += 1
            self.version += 1  # paths and routes of least delay are others
            self.least_delay = self._new_least_delay()
        if enabled is not None:
            (self._disabled.discard if enabled else self._disabled.add)(link)
        self._revisions[link] = self.revision(link) + 1
        self._refresh(arcs)

    def up_arcs(self) -> Iterator[Arc]:
        """Yield the arcs that are up, in file order."""
        up = self._up
        return (arc for name, arc in self.arcs.items() if name in up)

    def arcs_from(self, node: str) -> tuple[Arc, ...]:
        """Return the arcs that leave a node, in file order."""
        return tuple([self.arcs[name] for name in self._arcs_from[node]])

    def status(self) -> LiveStatus:
        """Return a copy of what is connected, up and seen."""
        return LiveStatus(
            frozenset(self._connected),
            frozenset(self._away),
            dict(self._live_ports),
            frozenset(self._seen),
            tuple(self.arcs.items()),
            frozenset(self._disabled),
        )

    def become(self, status: LiveStatus) -> None:
        """Record what is connected, up and seen, where nothing is yet."""
        for name, arc in status.arcs:
            self.arcs[name] = arc
        self.least_delay = self._new_least_delay()
        self._disabled.add_all(status.disabled)
        self._connected.add_all(status.connected)
        self._away.add_all(status.away)
        self._live_ports.set_all(dict(status.live_ports))
        self._seen.add_all(status.seen)
        self._refresh(self.arcs.values())

    def fail(self, links: Iterable[str], switches: Iterable[str]) -> None:
        """Take links and switches of the file for down."""
        for switch in switches:
            self.disconnect(self._datapath_ids[switch])
        ends = {end for link in links for end in self.network.link(link).ends}
        names = {self.network.link(link).name for link in links}
        for node in ends - self._hosts:
            for arc in self.arcs_from(node):
                if arc.link in names:
                    self.port_down(self._datapath_ids[node], arc.tail_port)

    def delay_s(self, path: tuple[str, ...]) -> float:
        """Return the propagation delay of a path of nodes."""
        return sum([self.arcs[arc].delay_s for arc in arcs_of(path)])

    def is_host(self, node: str) -> bool:
        """Return whether the file has a host of this name."""
        return node in self._hosts

    def lost_links(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the links of a path that are down, by their names in the file."""
        arcs = arcs_of(path)
        if self._up.issuperset(arcs):
            return ()
        return tuple(self.arcs[arc].link for arc in arcs if arc not in self._up)

    def is_away(self, switch: str) -> bool:
        """Return whether a switch's connection ended a moment ago: it is assumed to forward still."""
        return self._datapath_ids[switch] in self._away

    def succeed(self, former: LiveNetwork) -> None:
        """Know what was known of the network as its file was before, as far as that is still in it.

        Its switches count as away until they are announced again.
        """
        known = self._switches.keys()
        common = {
            name: arc
            for name, arc in former.arcs.items()
            if name in self.arcs and self._datapath_ids.get(arc.tail) == former._datapath_ids.get(arc.tail)
        }
        for name, arc in common.items():
            if arc.tail_port and not self.arcs[name].tail_port and arc.tail in self._datapath_ids:
                self._bind_port(arc.tail, arc.head, arc.tail_port)
        self._away.add_all(known & (former._connected | former._away))
        self._live_ports.set_all({each: ports for each, ports in former._live_ports.items() if each in known})
        seen = (arc for name, arc in common.items() if name in former._seen)
        self._seen.add_all(arc_name(arc.tail, arc.head) for arc in seen if self._has_ends_of(arc))
        self._refresh(self.arcs.values())
        self._changed.clear()

    def _has_ends_of(self, other: Arc) -> bool:
        """Return whether an arc leads from and to the same ports as one of another network."""
        arc = self.arcs[arc_name(other.tail, other.head)]
        return (arc.tail_port, arc.head_port) == (other.tail_port, other.head_port)

    def changed_links(self) -> tuple[str, ...]:
        """Return the links that have been given another rate, delay or state."""
        return tuple(self._revisions)

    def assume_all(self) -> None:
        """Assume, after a restart, that all is as the file has it until the switches say otherwise."""
        self._away.add_all(self._switches)
        for switch, datapath_id in self._datapath_ids.items():
            numbers = (arc.tail_port for arc in self.arcs_from(switch))
            self._live_ports[datapath_id] = frozenset(filter(None, numbers))
        self._seen.add_all(
            name
            for name, arc in self.arcs.items()
            if arc.tail not in self._hosts and arc.head not in self._hosts
        )
        self._refresh(self.arcs.values())

    def connect(self, datapath_id: int, live_ports: frozenset[int]) -> bool:
        """Note that a switch is connected; returns False for one that is not in the file, which is a fault.

        What was known of the links of a switch that was away stays, where their ports are up still.
        """
        if datapath_id not in self._switches:
            self._unknown_devices.add_switch(datapath_id)
            return False
        if datapath_id in self._connected:
            self.disconnect(datapath_id)
        for port in self.live_ports_of(datapath_id):
            if port[1] not in live_ports:
                self.port_down(*port)
        self._away.discard(datapath_id)
        self._connected.add(datapath_id)
        self._live_ports[datapath_id] = live_ports
        self._refresh(self.arc_at(datapath_id, port) for port in live_ports)
        return True

    def leave(self, datapath_id: int) -> None:
        """Note that a switch's connection ended: for a while it is assumed to forward as before."""
        self._unknown_devices.switches.discard(datapath_id)
        if datapath_id in self._connected:
            self._connected.discard(datapath_id)
            self._away.add(datapath_id)

    def disconnect(self, datapath_id: int) -> None:
        """Note that a switch is gone: nothing is known of its ports and links any more."""
        self._unknown_devices.switches.discard(datapath_id)
        self._connected.discard(datapath_id)
        self._away.discard(datapath_id)
        for port in self.live_ports_of(datapath_id):
            self.port_down(*port)

    def seen_links(self, datapath_id: int) -> list[tuple[_Port, _Port]]:
        """Return the links of a switch that discovery has seen, as (tail, head), both directions."""
        links = []
        for arc in self.arcs_from(self._switches[datapath_id]):
            here, there = (datapath_id, arc.tail_port), (self._datapath_ids.get(arc.head, 0), arc.head_port)
            if arc_name(arc.tail, arc.head) in self._seen:
                links.append((here, there))
            if arc_name(arc.head, arc.tail) in self._seen:
                links.append((there, here))
        return links

    def live_ports_of(self, datapath_id: int) -> list[_Port]:
        """Return the ports of a switch that are up."""
        return [(datapath_id, number) for number in self._live_ports.get(datapath_id, ())]

    def port_up(self, datapath_id: int, port: int) -> None:
        """Note that a port is up; its link to a switch waits for discovery."""
        if datapath_id in self._connected:
            self._live_ports[datapath_id] = self._live_ports.get(datapath_id, frozenset()) | {port}
            self._refresh((self.arc_at(datapath_id, port),))

    def port_down(self, datapath_id: int, port: int) -> None:
        """Note that a port is down, and forget what discovery saw through it."""
        if self.port_is_live(datapath_id, port):
            self._live_ports[datapath_id] = self._live_ports[datapath_id] - {port}
        arc = self.arc_at(datapath_id, port)
        if arc is not None:
            self._seen.discard_all((arc_name(arc.tail, arc.head), arc_name(arc.head, arc.tail)))
            self._refresh((arc,))
        self._unknown_devices.forget_port((datapath_id, port))

    def is_known(self, tail: _Port, head: _Port) -> bool:
        """Return whether a discovery packet from one port to another is known already."""
        arc = self.arc_at(*tail)
        if arc is not None and self._leads_to(arc, head):
            return arc_name(arc.tail, arc.head) in self._seen
        return self._unknown_devices.links.get(head) == tail

    def discovered(self, tail: _Port, head: _Port) -> str | None:
        """Note a discovery packet from one port to another.

        Returns:
            The fault, as a sentence, if the link is not in the file and was not known yet.
        """
        self._learn_link(tail, head)
        arc = self.arc_at(*tail)
        if arc is None or not self._leads_to(arc, head):
            return self._unknown_devices.add_link(tail, head)
        if self.port_is_live(*tail) and self.port_is_live(*head):
            self._seen.add(arc_name(arc.tail, arc.head))
            self._refresh((arc,))
        return None

    def _leads_to(self, arc: Arc, head: _Port) -> bool:
        return (self._datapath_ids.get(arc.head), arc.head_port) == head

    def lost(self, tail: _Port, head: _Port) -> None:
        """Note that discovery sees a link no more."""
        if self._unknown_devices.links.get(head) == tail:
            del self._unknown_devices.links[head]
        arc = self.arc_at(*tail)
        if arc is not None and self._leads_to(arc, head):
            self._seen.discard(arc_name(arc.tail, arc.head))
            self._refresh((arc,))

    def links_down(self) -> tuple[str, ...]:
        """Return the names of the file's links that are down."""
        return tuple(link for link, arc in self._links.items() if arc not in self._up)

    def faults(self) -> tuple[str, ...]:
        """Return what is connected that the file does not have, as sentences."""
        return self._unknown_devices.faults()
