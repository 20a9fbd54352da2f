"""Keeps the default routes of the switches as the network is, and knows who has confirmed them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from controller.compile.classification import classification
from controller.compile.ecmp import ecmp_group
from controller.compile.next_hops import equal_next_hops
from controller.install.outbox import Outbox
from controller.model.faults import FaultKind
from controller.model.journal import Journaled, JournaledDict, JournaledSet
from controller.model.messages import RemoveGroup, RemoveRule, RemoveRules
from controller.model.reconcile import Difference, Installed, Unsettled, difference
from controller.model.rules import (
    ETH_TYPE_IPV4,
    PRIORITY_ROUTE,
    TABLE_DEFAULT,
    Entry,
    Group,
    GroupChange,
    Match,
    Meter,
    Output,
    Rule,
    ToGroup,
    ecmp_group_number,
    host_cookie,
)
from controller.state.hosts import Host
from controller.state.state import State

__all__ = ["DefaultRoutes"]


_PAUSES = 4.0
"""After the routes were computed, so many times as long is for everything else."""


@dataclass
class _Routes:
    """The default routes of one switch: what to do for each host's address, and the groups this takes."""

    actions: dict[str, Output | ToGroup] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)

    def all(self) -> tuple[Rule | Group, ...]:
        """Return everything, groups first."""
        rules = [_default_route_rule(ip, action) for ip, action in self.actions.items()]
        return (*self.groups.values(), *rules)

    def entries(self, beside: _Routes) -> tuple[Entry, ...]:
        """Return what is new or different beside other routes, groups first."""
        groups: list[Entry] = [
            GroupChange(group) if number in beside.groups else group
            for number, group in self.groups.items()
            if beside.groups.get(number) != group
        ]
        rules = [
            _default_route_rule(ip, action)
            for ip, action in self.actions.items()
            if beside.actions.get(ip) != action
        ]
        return (*groups, *rules)


@dataclass(frozen=True)
class _HostRoutes:
    """What each switch does for one host's address, and the groups this takes; never changed."""

    actions: Mapping[str, Output | ToGroup]
    groups: Mapping[str, Group] = field(default_factory=dict)


class DefaultRoutes(Journaled):
    """Sends each switch the difference between the routes it has and those it should have."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._sent: JournaledDict[str, _Routes] = JournaledDict()  # to each connected switch
        self._awaited: JournaledDict[str, int] = JournaledDict()
        self._due: float | None = None
        self._wanted: Mapping[str, _HostRoutes] = {}  # by address, as they were last computed
        self._known: dict[str, tuple[Host, object, _HostRoutes]] = {}  # by host: of what they were made
        self._equal: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
        self._equal_of: int | None = None
        self._refused: JournaledSet[str] = JournaledSet()  # switches that lack some since they refused them
        self._new: JournaledSet[str] = JournaledSet()  # switches that have not got their routes
        self._computing_since: float | None = None
        self._computed_at = -math.inf
        self._pause_s = 0.0
        self.retry: Callable[[str, float], None] = lambda *_: None  # called with a switch that refused some

    def connect(
        self, switch: str, others: tuple[Rule | Group, ...], installed: Installed | None = None
    ) -> None:
        """Give a switch that has just connected what it lacks, and take what it should not have.

        `others` are its groups, then its rules, beside default routes.
        Without knowing what it has, give it all of them in place of any that it had.
        """
        has_routes = installed is not None and any(rule.table == TABLE_DEFAULT for rule in installed.rules)
        # Where none can be in the way, they come with the next refresh, which is for all switches at once.
        routes = self._routes_of(switch, self._compute()) if has_routes else _Routes()
        self._sent[switch] = routes
        self._new.add(switch)
        wanted = self._wanted_of(switch, others)
        if installed is None:
            self._send(switch, wanted, wipe=True)
        else:
            self._send_difference(switch, difference(installed, wanted))

    def repair(
        self, switch: str, others: tuple[Rule | Group, ...], installed: Installed, unsettled: Unsettled
    ) -> tuple[int, int]:
        """Give a connected switch what it lacks, and take what it should not have.

        `others` are its groups, then its rules, beside default routes; what is unsettled is left alone.

        Returns:
            How many rules and groups it lacked, and how many were too many.
        """
        wanted = [entry for entry in self._wanted_of(switch, others) if not unsettled.has(entry)]
        settled = unsettled.without(installed)
        missing = difference(settled, wanted)
        if missing.is_empty and switch not in self._refused:
            return 0, 0
        self._refused.discard(switch)
        self._send_difference(switch, missing)
        there = len(settled.rules) + len(settled.groups) + len(settled.foreign_cookies)
        kept = len(wanted) - len(missing.entries)
        return len(missing.entries), max(0, there - kept)

    def _wanted_of(self, switch: str, others: tuple[Rule | Group, ...]) -> tuple[Rule | Group | Meter, ...]:
        metered = self._state.metered_ports.get(switch, ())
        return (*classification(metered), *others, *self.sent_to(switch))

    def rule_count(self, switch: str) -> int:
        """Return how many rules a switch should have of these and of those that classify packets."""
        sent, metered = self._sent.get(switch), self._state.metered_ports.get(switch, ())
        classifying = sum(isinstance(entry, Rule) for entry in classification(metered))
        return classifying + (0 if sent is None else len(sent.actions))

    def is_settled(self, switch: str) -> bool:
        """Return whether a switch has confirmed all its routes, and no others are about to be computed."""
        return self._due is None and switch not in self._new and switch not in self._awaited

    def _send_difference(self, switch: str, missing: Difference) -> None:
        datapath_id = self._state.live.datapath_id(switch)
        for cookie in missing.removed_first:
            self._outbox.put(RemoveRules(datapath_id, cookie))
        for number in missing.removed_groups_first:
            self._outbox.put(RemoveGroup(datapath_id, number))
        self._send(switch, missing.entries)
        for rule in missing.removed_rules:
            self._outbox.put(RemoveRule(datapath_id, rule))
        for cookie in missing.removed_cookies:
            self._outbox.put(RemoveRules(datapath_id, cookie))
        for number in missing.removed_groups:
            self._outbox.put(RemoveGroup(datapath_id, number))

    def sent_to(self, switch: str) -> tuple[Rule | Group, ...]:
        """Return the routes that a switch has been sent; none if it is not connected."""
        return self._sent[switch].all() if switch in self._sent else ()

    def wipe(self, switch: str) -> None:
        """Remove all rules of a switch, flows' ones too."""
        self._sent.pop(switch, None)
        self._send(switch, (), wipe=True)

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        self._sent.pop(switch, None)
        self._new.discard(switch)
        self._awaited.pop(switch, None)
        self._refused.discard(switch)
        self._state.confirmed.discard(switch)

    def refresh_soon(self, now: float) -> None:
        """Compute the routes again once everything that has happened by now is known.

        In a large network that takes long: then changes wait for each other, so that other things have the
        most of the time.
        """
        self._due = max(now, self._computed_at + self._pause_s)
        self._state.routes_are_due = True

    def sent(self, now: float) -> None:
        """Record that all messages have been sent: so long it took to compute the routes."""
        if self._computing_since is not None:
            self._pause_s = _PAUSES * (now - self._computing_since)
            self._computed_at, self._computing_since = now, None

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._due

    def tick(self, now: float) -> bool:
        """Compute the routes again if that is due, and send what has changed; returns whether it was."""
        if self._due is None or self._due > now:
            return False
        self._due, self._computing_since = None, now
        self._state.routes_are_due = False
        wanted = self._compute()
        changed = {*self._new, *_changed_switches(self._wanted, wanted)}
        self._wanted = wanted
        self._new.clear()
        for switch in changed & self._sent.keys():
            sent, routes = self._sent[switch], self._routes_of(switch, wanted)
            self._sent[switch] = routes
            self._update(switch, sent, routes)
        return True

    def confirm(self, switch: str, barrier: int) -> None:
        """Take a barrier in; only the last one of a switch confirms all its routes."""
        if self._awaited.get(switch) == barrier:
            del self._awaited[switch]
            if switch not in self._refused:
                self._state.confirmed.add(switch)
                if self._state.faults.clear(switch, FaultKind.ROUTES_REFUSED):
                    self._state.faults.clear(switch, FaultKind.TABLE_FULL)  # it had room for all of them

    def owns(self, _cookie: int) -> bool:
        """Return whether a rule is one of these: they are sent by themselves."""
        return True

    def refused(self, switch: str, reason: str, now: float) -> None:
        """Take that a switch did not accept its routes, until `repair` has sent them again."""
        self._refused.add(switch)
        self._state.confirmed.discard(switch)
        text = f"{switch} refused its default routes: {reason}."
        if self._state.faults.add(switch, FaultKind.ROUTES_REFUSED, text):
            self._outbox.report("error", text, switch=switch)
        self.retry(switch, now)

    def _update(self, switch: str, sent: _Routes, routes: _Routes) -> None:
        datapath_id = self._state.live.datapath_id(switch)
        for ip in sent.actions.keys() - routes.actions.keys():
            self._outbox.put(RemoveRules(datapath_id, host_cookie(ip)))
        entries = routes.entries(beside=sent)
        if entries:
            self._send(switch, entries)
        # Last: a group takes the rules that still lead to it along.
        for number in sent.groups.keys() - routes.groups.keys():
            self._outbox.put(RemoveGroup(datapath_id, number))

    def send(self, switch: str, entries: tuple[Entry, ...]) -> None:
        """Give a switch entries that it must have like its routes."""
        self._send(switch, entries)

    def _send(self, switch: str, entries: tuple[Entry, ...], wipe: bool = False) -> None:
        self._state.confirmed.discard(switch)
        self._awaited[switch] = self._outbox.install(
            self._state.live.datapath_id(switch), entries, self, wipe
        )

    @staticmethod
    def _routes_of(switch: str, wanted: Mapping[str, _HostRoutes]) -> _Routes:
        routes = _Routes()
        for ip, of_host in wanted.items():
            if switch in of_host.actions:
                routes.actions[ip] = of_host.actions[switch]
            if switch in of_host.groups:
                group = of_host.groups[switch]
                routes.groups[group.number] = group
        return routes

    def _compute(self) -> dict[str, _HostRoutes]:
        """Return the routes to all reachable hosts, those that have not changed as the same objects."""
        hosts = [host for host in self._state.hosts.all() if self._state.hosts.is_reachable(host)]
        is_ecmp = self._state.settings.default_routing == "ecmp"
        make = self._equal_routes if is_ecmp else self._shortest_routes
        known = {host.name: make(host) for host in hosts}
        self._known = known
        return {host.ip: known[host.name][2] for host in hosts}

    def _shortest_routes(self, host: Host) -> tuple[Host, object, _HostRoutes]:
        live, hops = self._state.live, self._state.live.least_delay.hops(host.switch)
        known = self._known.get(host.name)
        if known is not None and known[0] == host and known[1] is hops:
            return known
        actions: dict[str, Output | ToGroup] = {
            switch: live.ports.action(switch, neighbour) for switch, neighbour in hops.items()
        }
        actions[host.switch] = Output(host.port)
        return host, hops, _HostRoutes(actions)

    def _equal_routes(self, host: Host) -> tuple[Host, object, _HostRoutes]:
        live = self._state.live
        known = self._known.get(host.name)
        if known is not None and known[:2] == (host, live.version):
            return known
        if self._equal_of != live.version:
            hosts = live.network.hosts
            arcs = [arc for arc in live.up_arcs() if arc.tail not in hosts and arc.head not in hosts]
            roots = {switch: switch for switch in live.network.switches}
            self._equal, self._equal_of = equal_next_hops(arcs, roots), live.version
        number = ecmp_group_number(live.switch_number(host.switch))
        actions: dict[str, Output | ToGroup] = {host.switch: Output(host.port)}
        groups: dict[str, Group] = {}
        for switch, neighbours in self._equal[host.switch].items():
            if len(neighbours) == 1:
                actions[switch] = live.ports.action(switch, neighbours[0])
            else:
                outputs = [Output(live.ports[switch, neighbour]) for neighbour in neighbours]
                groups[switch] = ecmp_group(number, switch, outputs)
                actions[switch] = ToGroup(number)
        return host, live.version, _HostRoutes(actions, groups)


def _changed_switches(before: Mapping[str, _HostRoutes], after: Mapping[str, _HostRoutes]) -> set[str]:
    """Return the switches whose routes differ."""
    changed: set[str] = set()
    nothing = _HostRoutes({})
    for ip in before.keys() | after.keys():
        old, new = before.get(ip, nothing), after.get(ip, nothing)
        if old is not new:
            changed |= {switch for switch, _ in old.actions.items() ^ new.actions.items()}
            changed |= {
                switch
                for switch in old.groups.keys() | new.groups.keys()
                if old.groups.get(switch) != new.groups.get(switch)
            }
    return changed


@lru_cache(maxsize=1 << 16)
def _default_route_rule(destination_ip: str, action: Output | ToGroup) -> Rule:
    """Return the rule for all IP packets to a host."""
    match = Match(eth_type=ETH_TYPE_IPV4, destination_ip=destination_ip)
    return Rule(TABLE_DEFAULT, PRIORITY_ROUTE, match, action, host_cookie(destination_ip))
