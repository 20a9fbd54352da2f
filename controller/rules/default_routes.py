"""Keeps the default routes of the switches as the network is, and knows who has confirmed them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from controller.core.journal import Journaled, JournaledDict
from controller.core.messages import RemoveGroup, RemoveRule, RemoveRules
from controller.core.outbox import DEFAULT_ROUTES, Outbox
from controller.core.state import State
from controller.network.hosts import Host
from controller.rules.classification import classification_rules
from controller.rules.ecmp import ecmp_group
from controller.rules.model import (
    ETH_TYPE_IPV4,
    PRIORITY_ROUTE,
    TABLE_DEFAULT,
    Entry,
    Group,
    GroupChange,
    Match,
    Output,
    Rule,
    ToGroup,
    ecmp_group_number,
    host_cookie,
)
from controller.rules.next_hops import equal_next_hops
from controller.rules.reconcile import Installed, difference

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


class DefaultRoutes(Journaled):
    """Sends each switch the difference between the routes it has and those it should have."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._sent: JournaledDict[str, _Routes] = JournaledDict()  # to each connected switch
        self._awaited: JournaledDict[str, int] = JournaledDict()
        self._due: float | None = None
        self._known: tuple[int, tuple[Host, ...], dict[str, _Routes]] | None = None
        self._computing_since: float | None = None
        self._computed_at = -math.inf
        self._pause_s = 0.0

    def connect(
        self, switch: str, pinned: tuple[Rule | Group, ...], installed: Installed | None = None
    ) -> None:
        """Give a switch that has just connected what it lacks, and take what it should not have.

        Without knowing what it has, give it all of them in place of any that it had.
        """
        has_routes = installed is not None and any(rule.table == TABLE_DEFAULT for rule in installed.rules)
        # Where none can be in the way, they come with the next refresh, which is for all switches at once.
        routes = self._desired().get(switch, _Routes()) if has_routes else _Routes()
        self._sent[switch] = routes
        wanted = (*classification_rules(), *routes.all(), *pinned)
        if installed is None:
            self._send(switch, wanted, wipe=True)
            return
        datapath_id, missing = self._state.live.datapath_id(switch), difference(installed, wanted)
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
        self._awaited.pop(switch, None)
        self._state.confirmed.discard(switch)
        self._state.refusals.pop(switch, None)

    def refresh_soon(self, now: float) -> None:
        """Compute the routes again once everything that has happened by now is known.

        In a large network that takes long: then changes wait for each other, so that other things have the
        most of the time.
        """
        self._due = max(now, self._computed_at + self._pause_s)

    def sent(self, now: float) -> None:
        """Take in that all messages have been sent: so long it took to compute the routes."""
        if self._computing_since is not None:
            self._pause_s = _PAUSES * (now - self._computing_since)
            self._computed_at, self._computing_since = now, None

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._due

    def tick(self, now: float) -> None:
        """Compute the routes again if that is due, and send what has changed."""
        if self._due is None or self._due > now:
            return
        self._due, self._computing_since = None, now
        desired = self._desired()
        for switch, sent in self._sent.items():
            routes = desired.get(switch, _Routes())
            self._sent[switch] = routes
            self._update(switch, sent, routes)

    def confirm(self, switch: str, barrier: int) -> None:
        """Take a barrier in; only the last one of a switch confirms all its routes."""
        if self._awaited.get(switch) == barrier:
            del self._awaited[switch]
            if switch not in self._state.refusals:
                self._state.confirmed.add(switch)

    def refuse(self, switch: str, barrier: int, reason: str) -> None:
        """Take in that a switch did not accept its routes."""
        self._state.confirmed.discard(switch)
        self._state.refusals[switch] = f"{switch} refused its default routes: {reason}."
        self._outbox.report("error", f"{switch} refused rules: {reason}", switch=switch, barrier=barrier)

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

    def _send(self, switch: str, entries: tuple[Entry, ...], wipe: bool = False) -> None:
        self._state.confirmed.discard(switch)
        self._awaited[switch] = self._outbox.install(
            self._state.live.datapath_id(switch), entries, DEFAULT_ROUTES, wipe
        )

    def _desired(self) -> dict[str, _Routes]:
        """Return the routes to all reachable hosts, for each switch; not to be changed."""
        live = self._state.live
        hosts = tuple(host for host in self._state.hosts.all() if self._state.hosts.is_reachable(host))
        if self._known is not None and self._known[:2] == (live.version, hosts):
            return self._known[2]
        hops = self._hops({host.name: host.switch for host in hosts})
        desired: dict[str, _Routes] = {}
        for host in hosts:
            desired.setdefault(host.switch, _Routes()).actions[host.ip] = _output(host.port)
            for switch, neighbours in hops[host.name].items():
                routes = desired.setdefault(switch, _Routes())
                outputs = [_output(live.ports[switch, neighbour]) for neighbour in neighbours]
                if len(outputs) == 1:
                    routes.actions[host.ip] = outputs[0]
                    continue
                number = ecmp_group_number(live.switch_number(host.switch))
                routes.groups[number] = ecmp_group(number, switch, outputs)
                routes.actions[host.ip] = ToGroup(number)
        self._known = live.version, hosts, desired
        return desired

    def _hops(self, attachments: dict[str, str]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the neighbours that each switch may choose from, for each host."""
        live = self._state.live
        if self._state.settings.default_routing == "ecmp":
            hosts = live.network.hosts
            arcs = [arc for arc in live.up_arcs() if arc.tail not in hosts and arc.head not in hosts]
            return equal_next_hops(arcs, attachments)
        hops = {root: live.least_delay.hops(root).items() for root in set(attachments.values())}
        return {
            host: {switch: (neighbour,) for switch, neighbour in hops[root]}
            for host, root in attachments.items()
        }


@lru_cache(maxsize=1 << 12)
def _output(port: int) -> Output:
    return Output(port)


@lru_cache(maxsize=1 << 16)
def _default_route_rule(destination_ip: str, action: Output | ToGroup) -> Rule:
    """Return the rule for all IP packets to a host."""
    match = Match(eth_type=ETH_TYPE_IPV4, destination_ip=destination_ip)
    return Rule(TABLE_DEFAULT, PRIORITY_ROUTE, match, action, host_cookie(destination_ip))
