"""ARP and IPv6's neighbour discovery: learns where hosts are, answers for them, and asks where in doubt.

A host that is known is believed against others that claim its address: its old place is asked first, and only
when it has not answered does the host count as moved. One that nobody knows, or that has gone from its place,
is asked for at all ports that hosts may be behind. The controller's own questions say nothing of anybody's
address.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.decide.component import Component, Context
from controller.decide.default_routes import DefaultRoutes
from controller.decide.switch_rules import SwitchRules
from controller.model import host_frames
from controller.model.client_events import ClientEventKind
from controller.model.faults import FaultKind
from controller.model.journal import JournaledDict
from controller.model.neighbour import NeighbourMessage
from controller.state.hosts import LEARNED_HOST, Host, Sighting
from topologies.model import is_host_address

_TIMEOUT_S = 1.0
"""Time for a host to answer."""

_SILENT_S = 30.0
"""A learned host that has said nothing for this time is asked when somebody asks for it."""

_MAX_PENDING = 256
"""Claims, questions and searches under way, of each; what comes beyond is not taken up."""

_MAX_WAITING = 8
"""Hosts that are answered when a search has found what they ask for."""

_SEARCH_PACKETS_PER_S = 1000.0
_FAULT_S = 60.0


@dataclass(frozen=True)
class _Claim:
    """Somebody who says that he is a known host, which has until a time to answer from its own place."""

    wanted: Host
    until: float


@dataclass(frozen=True)
class _Search:
    """An address that is asked for everywhere, and the requests to answer: switch, port, packet."""

    until: float
    waiting: tuple[tuple[str, int, NeighbourMessage], ...]


class Neighbours(Component):
    """Handles what hosts say of addresses, and ask for."""

    def __init__(self, shared: Context, default_routes: DefaultRoutes, rules: SwitchRules) -> None:
        super().__init__(shared)
        self._default_routes = default_routes
        self._rules = rules
        self._claims: JournaledDict[str, _Claim] = JournaledDict()  # by address, as all of these
        self._asked: JournaledDict[str, float] = JournaledDict()  # learned hosts, until when they may answer
        self._searches: JournaledDict[str, _Search] = JournaledDict()
        self._probed: JournaledDict[str, tuple[str, int, float]] = JournaledDict()  # by whom, until when
        self._search_from = 0.0  # no earlier, so that searches do not fill the network

    def arrived(self, switch: str, port: int, packet: NeighbourMessage, frame: bytes, now: float) -> None:
        """Learn from a message at a port that hosts may be behind, and answer it."""
        self._learn(switch, port, packet, now)
        if packet.is_probe:
            self._pass_probe(switch, port, packet, frame, now)
        elif packet.answers_probe:
            self._pass_defence(switch, port, packet, frame, now)
        elif packet.target_ip != packet.sender_ip and is_host_address(packet.target_ip):
            self._answer(switch, port, packet, frame, now)

    def port_came_up(self, switch: str, port: int, now: float) -> None:
        """Ask the learned hosts behind a port whether they are there still."""
        for host in self._state.hosts.learned_at(switch, port):
            self._ask(host, now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        if not (self._asked or self._claims or self._searches or self._probed):
            return None
        untils = list(self._asked.values())
        untils += [claim.until for claim in self._claims.values()]
        untils += [search.until for search in self._searches.values()]
        untils += [until for _, _, until in self._probed.values()]
        return min(untils, default=None)

    def tick(self, now: float) -> None:
        """Decide what nobody has answered."""
        for ip in [ip for ip, claim in self._claims.items() if claim.until <= now]:
            self._put(self._claims.pop(ip).wanted, now)
        for ip in [ip for ip, until in self._asked.items() if until <= now]:
            del self._asked[ip]
            if (host := self._state.hosts.forget(ip)) is not None:
                self._forgotten(host, "does not answer any more", now)
        for ip in [ip for ip, search in self._searches.items() if search.until <= now]:
            del self._searches[ip]
        for ip in [ip for ip, (_, _, until) in self._probed.items() if until <= now]:
            del self._probed[ip]
        for host in self._state.hosts.take_aged(now):
            self._forgotten(host, "has said nothing for long", now)

    # Learning

    def _learn(self, switch: str, port: int, packet: NeighbourMessage, now: float) -> None:
        sighting, host = self._state.hosts.sight(switch, port, packet, now)
        if sighting is Sighting.REFUSED:
            text = f"{packet.sender_ip} behind {switch} port {port} is not learned: there are too many hosts"
            subject = f"{switch} port {port}"
            if self._state.faults.add(subject, FaultKind.HOSTS_REFUSED, f"{text}.", now + _FAULT_S):
                self._outbox.report("warning", text, switch=switch, port=port, ip=packet.sender_ip)
        if host is None:
            return
        if sighting is Sighting.SYNONYMS:
            self._asked.pop(host.ip, None)
            claim = self._claims.pop(host.ip, None)
            if claim is not None:
                self._tell_conflict(host, claim.wanted, now)
        elif sighting is Sighting.NEW:
            self._put(host, now)
        elif host.ip not in self._claims and len(self._claims) < _MAX_PENDING:
            known = self._state.hosts.find(host.ip)
            if known is None or not self._state.hosts.is_reachable(known):
                self._put(host, now)
            else:
                self._claims[host.ip] = _Claim(host, now + _TIMEOUT_S)
                self._probe(known)

    def _put(self, host: Host, now: float) -> None:
        """Know a host, or where it is now, from now on."""
        before = self._state.hosts.find(host.ip)
        self._state.hosts.put(host, now)
        if host.learned:
            self._outbox.store(LEARNED_HOST, host.ip, self._state.hosts.record_of(host))
        has_moved = before is not None and (before.switch, before.port) != (host.switch, host.port)
        kind = ClientEventKind.HOST_MOVED if has_moved else ClientEventKind.HOST_LEARNED
        text = f"host {host.name} {'moved to' if has_moved else 'is at'} {host.switch} port {host.port}"
        self._outbox.tell(kind, text, self._facts(host))
        self._follow(host if before is None else before, now)
        self._follow(host, now)
        search = self._searches.pop(host.ip, None)
        for switch, port, request in search.waiting if search is not None else ():
            self._reply(switch, port, request, host)

    def _forgotten(self, host: Host, why: str, now: float) -> None:
        self._outbox.store(LEARNED_HOST, host.ip, None)
        self._outbox.tell(
            ClientEventKind.HOST_LOST, f"host {host.name} {why}: it is forgotten", self._facts(host)
        )
        self._follow(host, now)

    def _follow(self, host: Host, now: float) -> None:
        """Give switches other rules, now that a host has come, moved or gone."""
        self._rules.update(host.switch)
        self._default_routes.refresh_soon(now)

    def _tell_conflict(self, host: Host, claimed: Host, now: float) -> None:
        text = (
            f"host {host.name} answers at {host.switch} port {host.port}, and its address is claimed from "
            f"{claimed.switch} port {claimed.port} by {claimed.mac}"
        )
        if self._state.faults.add(host.name, FaultKind.ADDRESS_CLAIMED, f"{text}.", now + _FAULT_S):
            facts = self._facts(host) | {"claimed_from": claimed.switch, "claimed_port": claimed.port}
            self._outbox.tell(ClientEventKind.HOST_CONFLICT, text, facts, "warning")

    @staticmethod
    def _facts(host: Host) -> dict[str, object]:
        return {"host": host.name, "ip": host.ip, "mac": host.mac, "switch": host.switch, "port": host.port}

    # Answering

    def _answer(self, switch: str, port: int, packet: NeighbourMessage, frame: bytes, now: float) -> None:
        hosts = self._state.hosts
        target = hosts.find(packet.target_ip)
        if target is None or not hosts.is_reachable(target):
            if packet.is_request and (target is None or target.learned):
                self._search(packet.target_ip, (switch, port, packet), now)
        elif packet.is_request and hosts.has_known_mac(target):
            self._reply(switch, port, packet, target)
            if hosts.silent_since(target.ip, now) > _SILENT_S:
                self._ask(target, now)
        elif packet.is_request or hosts.is_sender(switch, port, packet):
            # A question for a host whose address is not known goes to that host alone; its answer, back.
            self._route_both(switch, packet.sender_ip, target)
            self._send_frame(target.switch, target.port, frame)

    def _reply(self, switch: str, port: int, request: NeighbourMessage, host: Host) -> None:
        """Answer for a host, once both switches have routes."""
        self._route_both(switch, request.sender_ip, host)
        self._send_frame(switch, port, host_frames.reply(request, host.mac))

    def _route_both(self, switch: str, sender_ip: str, host: Host) -> None:
        self._default_routes.ask(switch, host.ip)
        if self._state.hosts.find(sender_ip) is not None:
            self._default_routes.ask(host.switch, sender_ip)

    def _pass_probe(self, switch: str, port: int, packet: NeighbourMessage, frame: bytes, now: float) -> None:
        """Let a host that wants an address ask the one that has it: nobody answers for one that is gone."""
        target = self._state.hosts.find(packet.target_ip)
        if target is None or (target.switch, target.port) == (switch, port):
            return
        if self._state.hosts.is_reachable(target) and len(self._probed) < _MAX_PENDING:
            self._probed[target.ip] = switch, port, now + _TIMEOUT_S
            self._send_frame(target.switch, target.port, frame)

    def _pass_defence(
        self, switch: str, port: int, packet: NeighbourMessage, frame: bytes, now: float
    ) -> None:
        """Bring the answer to a probe to the host that has sent it."""
        prober = self._probed.get(packet.sender_ip)
        if prober is not None and prober[2] > now and self._state.hosts.is_sender(switch, port, packet):
            self._send_frame(prober[0], prober[1], frame)

    # Asking

    def _ask(self, host: Host, now: float) -> None:
        """Ask a learned host whether it is there; without an answer it is forgotten."""
        if host.learned and host.ip not in self._asked and len(self._asked) < _MAX_PENDING:
            self._asked[host.ip] = now + _TIMEOUT_S
            self._probe(host)

    def _probe(self, host: Host) -> None:
        self._send_frame(host.switch, host.port, host_frames.probe(host.ip, host.mac))

    def _search(self, ip: str, request: tuple[str, int, NeighbourMessage], now: float) -> None:
        """Ask for an address at all ports towards hosts, to answer the request when it is found."""
        search = self._searches.get(ip)
        if search is not None:
            if len(search.waiting) < _MAX_WAITING:
                self._searches[ip] = _Search(search.until, (*search.waiting, request))
            return
        if now < self._search_from or len(self._searches) >= _MAX_PENDING:
            return
        ports = self._state.live.edge_ports()
        self._searches[ip] = _Search(now + _TIMEOUT_S, (request,))
        self._search_from = now + len(ports) / _SEARCH_PACKETS_PER_S
        question = host_frames.probe(ip)
        for datapath_id, port in ports:
            self._outbox.put(self._state.live.packet_out(datapath_id, port, question))
