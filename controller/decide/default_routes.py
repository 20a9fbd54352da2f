"""Default routes on demand: a switch gets a route when a host behind it first asks for or sends to another.

A route that is not used goes by itself. Each is a label, so no switch on the way has a rule for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from controller.compile.default_routes import ELSEWHERE, Route, equal_paths, route_over
from controller.decide.component import Component, Context
from controller.decide.switch_rules import SwitchRules
from controller.model.client_events import ClientEventKind
from controller.model.installed import Installed
from controller.model.journal import JournaledDict
from controller.model.messages import RemoveGroup
from controller.model.rules import Entry, Group, GroupChange, Output, Rule, ecmp_group_number
from controller.state.hosts import Host

_ROUTES_A_TURN = 500
"""Routes that are computed again in one event, or all of one host: others wait for it no longer."""


_TOLD_INTERVAL_S = 60.0


class DefaultRoutes(Component):
    """Knows which switches have routes to which hosts, and keeps them as the network is."""

    def __init__(self, shared: Context, rules: SwitchRules) -> None:
        super().__init__(shared)
        self._rules = rules
        # Which switches need routes to a host's address, or elsewhere.
        self._users: JournaledDict[str, JournaledDict[str, None]] = JournaledDict()
        # By switch and address, or number, what connected switches have been sent.
        self._routes: JournaledDict[str, JournaledDict[str, Route]] = JournaledDict()
        self._groups: JournaledDict[str, JournaledDict[int, Group]] = JournaledDict()
        # By address: of what its routes were computed.
        self._computed: JournaledDict[str, tuple[Host | None, object]] = JournaledDict()
        self._told_at: JournaledDict[tuple[str, int], float] = JournaledDict()  # of packets for nobody
        self._todo: JournaledDict[str, None] = JournaledDict()

    # Demand

    def arrived(self, switch: str, port: int, destination: str, frame: bytes, now: float) -> None:
        """Give a switch the route for a packet that it had none for, and deliver that packet."""
        host = self._host(destination)
        if self._find(destination) is None:
            self._tell_unknown(switch, port, destination, now)
        if host is None or (host.switch, host.port) == (switch, port):
            return
        self.ask(switch, host.ip)
        if switch == host.switch or host.ip in self._routes.get(switch, ()):
            addressed = bytes.fromhex(host.mac.replace(":", "")) + frame[6:]
            self._send_frame(host.switch, host.port, addressed)

    def _tell_unknown(self, switch: str, port: int, ip: str, now: float) -> None:
        """Tell that packets are dropped that are for nobody, once a minute for a port."""
        if self._told_at.get((switch, port), -math.inf) + _TOLD_INTERVAL_S > now:
            return
        self._told_at[switch, port] = now
        text = f"packets from {switch} port {port} to {ip} are dropped: no host has that address"
        facts = {"switch": switch, "port": port, "ip": ip}
        self._outbox.tell(ClientEventKind.DESTINATION_UNKNOWN, text, facts, "warning")

    def ask(self, switch: str, ip: str) -> None:
        """Give a switch the route to a host, from now on as long as it is used."""
        if switch not in self._users.get(ip, ()):
            entries: dict[str, list[Entry]] = {}
            self._add(switch, ip, entries)
            self._send(entries)

    def _add(self, switch: str, ip: str, entries: dict[str, list[Entry]]) -> None:
        users, pending = self._users.setdefault(ip, JournaledDict()), [switch]
        while pending:
            switch = pending.pop()
            if switch not in users:
                users[switch] = None
                pending += self._renew(switch, ip, entries)

    def expired(self, datapath_id: int, ip: str) -> None:
        """Record that a switch has removed a route that was not used; it stays where labels of others end."""
        switch = self._state.live.switch_name(datapath_id)
        if switch is None or ip not in self._routes.get(switch, ()):
            return
        for rule in self._routes[switch].pop(ip).rules(ip):
            self._remove(switch, rule)
        del self._users[ip][switch]
        others = [self._routes[other][ip] for other in self._users[ip] if ip in self._routes.get(other, ())]
        if any(switch in route.relays for route in others):
            self.ask(switch, ip)
        else:
            self._send({switch: ()})

    # What switches have

    def connect(self, switch: str, installed: Installed | None) -> None:
        """Know which routes a switch should have that has just connected: those that it has are in use."""
        self._routes[switch], self._groups[switch] = JournaledDict(), JournaledDict()
        for rule in installed.rules if installed is not None else ():
            ip = rule.match.destination_ip if rule.idle_s else None
            if ip is not None and self._host(ip) is not None:
                self._users.setdefault(ip, JournaledDict())[switch] = None
        if self._state.live.network.gateway is not None:
            self._users.setdefault(ELSEWHERE, JournaledDict())[switch] = None
        entries: dict[str, list[Entry]] = {}
        for ip, users in list(self._users.items()):
            for relay in self._renew(switch, ip, entries) if switch in users else ():
                self._add(relay, ip, entries)
        entries.pop(switch, None)  # they are sent with all others
        self._send(entries)

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        self._routes.pop(switch, None)
        self._groups.pop(switch, None)

    def sent_to(self, switch: str) -> tuple[Rule | Group, ...]:
        """Return what a switch has been sent, groups first; nothing if it is not connected."""
        rules = (rule for ip, route in self._routes.get(switch, {}).items() for rule in route.rules(ip))
        return (*self._groups.get(switch, {}).values(), *rules)

    def count(self, switch: str) -> int:
        """Return how many rules a switch has been sent."""
        return sum(len(route.macs) or 2 for route in self._routes.get(switch, {}).values())

    # Changes

    def refresh_soon(self, now: float, everything: bool = False) -> None:
        """Compute the routes again once all that has happened by now is known.

        With `everything` those too for which the network is as it was: ports have other numbers.
        """
        if everything:
            self._computed.clear()
        self._todo.set_all(dict.fromkeys(self._users))
        self._due = now

    def tick(self, now: float) -> bool:
        """Compute some routes again if that is due, and send what has changed; returns whether it was."""
        if self._due is None or self._due > now:
            return False
        entries: dict[str, list[Entry]] = {}
        turn = 0
        for ip in list(self._todo):
            del self._todo[ip]
            if self._has_changed(ip):
                turn += len(self._users[ip])
                for switch in list(self._users[ip]):
                    for relay in self._renew(switch, ip, entries):
                        self._add(relay, ip, entries)
            if self._find(ip) is None:
                del self._users[ip], self._computed[ip]
            if turn >= _ROUTES_A_TURN:
                break
        self._send(entries)
        self._due = now if self._todo else None
        return True

    def _has_changed(self, ip: str) -> bool:
        """Return whether a host or the paths to it are others than when its routes were computed."""
        host = self._host(ip)
        basis = host, None if host is None else self._tree(host.switch)
        before = self._computed.get(ip)
        self._computed[ip] = basis
        return before is None or before[0] != basis[0] or before[1] is not basis[1]

    def _renew(self, switch: str, ip: str, entries: dict[str, list[Entry]]) -> tuple[str, ...]:
        """Add what a switch must be given for its route to a host; returns which others need one too."""
        if switch not in self._routes:
            return ()
        routes, route = self._routes[switch], self._route(switch, ip)
        before, given = routes.get(ip), entries.setdefault(switch, [])
        sent = () if before is None else before.rules(ip)
        wanted = () if route is None else route.rules(ip)
        matches = [rule.match for rule in wanted]
        for rule in sent:
            if rule.match not in matches:
                self._remove(switch, rule)
        if route is None:
            routes.pop(ip, None)  # its group goes with `_send`
            return ()
        group, groups = route.group, self._groups[switch]
        if group is not None and groups.get(group.number) != group:
            given.append(GroupChange(group) if group.number in groups else group)
            groups[group.number] = group
        given += [rule for rule in wanted if rule not in sent]
        routes[ip] = route
        return route.relays

    def _send(self, entries: Mapping[str, Sequence[Entry]]) -> None:
        """Send entries to their switches, and remove the groups that these need no more."""
        for switch, given in entries.items():
            datapath_id, groups = self._state.live.datapath_id(switch), self._groups[switch]
            if given:
                self._transactions.send(switch, given, self._rules.failed)
            used = (
                {each.group.number for each in self._routes[switch].values() if each.group}
                if groups
                else set()
            )
            for number in groups.keys() - used:
                del groups[number]
                self._outbox.put(RemoveGroup(datapath_id, number))

    def _route(self, switch: str, ip: str) -> Route | None:
        """Return a switch's route to a host behind another one, or elsewhere; None where there is no way."""
        host, live = self._host(ip), self._state.live
        if host is None:
            return None
        if host.switch == switch:
            tag = live.tag_at(live.datapath_id(switch), host.port)
            delivered = Route(Output(host.port, destination_mac=host.mac, tag=tag))
            return delivered.to_gateway(host.mac, live.ports) if ip == ELSEWHERE else None
        if self._state.settings.default_routing == "ecmp":
            nearer = live.least_delay.nearer(host.switch)
            paths = equal_paths(switch, host.switch, nearer, live.ports) if switch in nearer else {}
        else:
            path = live.least_delay.path(switch, host.switch)
            paths = {} if path is None else {path: 1}
        number = ecmp_group_number(live.switch_number(host.switch))
        if not paths:
            return None
        route = route_over(paths, host.switch, live.ports, number)
        return route.to_gateway(host.mac, live.ports) if ip == ELSEWHERE else route

    def _find(self, ip: str) -> Host | None:
        gateway = self._state.live.network.gateway
        return self._state.hosts.find(gateway if ip == ELSEWHERE and gateway is not None else ip)

    def _host(self, ip: str) -> Host | None:
        host = self._find(ip)
        return host if host is not None and self._state.hosts.is_reachable(host) else None

    def _tree(self, root: str) -> object:
        """Return the paths to a switch; the same object as before where nothing has changed."""
        least_delay = self._state.live.least_delay
        is_ecmp = self._state.settings.default_routing == "ecmp"
        return least_delay.nearer(root) if is_ecmp else least_delay.hops(root)
