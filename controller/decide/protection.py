"""Keeps the groups of ports and their bypasses as the network is.

Each port towards another switch has its group from the switch's connecting on. The bypasses come later, some
at a time, once the network has been quiet for a moment: nothing that a client waits for waits for them.
Bypasses are best effort. What is promised to flows holds for the paths that they were given; on a bypass they
share what is left with others, for the time that re-planning takes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import islice, pairwise

from controller.compile.bypass import port_group, relay_rules, relays
from controller.decide.component import Component, Context
from controller.install.transactions import NotInstalled
from controller.model.journal import JournaledDict, JournaledSet
from controller.model.labels import MAX_BRANCHES
from controller.model.rules import Entry, Group, GroupChange, Rule
from controller.state.least_delay import path_over
from controller.state.live_network import arc_name
from topologies.model import Arc

_QUIET_S = 0.3
"""Changes of the network within this time of the first one are handled together."""

_INTERVAL_S = 0.02
_MAX_ARCS_A_TIME = 32

_ROUND_S = 0.005
"""Length of one round of the search: other events wait no longer for it."""

_PAUSES = 9.0
"""After some were found, this many times as long is for everything else: a tenth of the time is for them."""


class Protection(Component):
    """Finds bypasses, and gives them to the switches."""

    def __init__(self, shared: Context) -> None:
        super().__init__(shared)
        live = self._state.live
        switches = set(live.network.switches) if self._state.settings.fast_failover else set()
        between = {
            name: arc for name, arc in live.arcs.items() if arc.tail in switches and arc.head in switches
        }
        self._leaving: dict[str, list[str]] = {switch: [] for switch in switches}
        for name, arc in between.items():
            self._leaving[arc.tail].append(name)
        # A port that only discovery will tell has no group by which rules could name it before.
        self._arcs = {
            name: arc
            for name, arc in between.items()
            if arc.tail_port or live.network.port_name(arc.tail, arc.head) is not None
        }
        live.ports.guarded = frozenset((arc.tail, arc.head) for arc in self._arcs.values())
        self._bypasses: JournaledDict[str, tuple[str, ...]] = JournaledDict()  # by arc
        self._users: JournaledDict[str, JournaledDict[str, None]] = JournaledDict()  # arcs by arc of a bypass
        # Where labels of bypasses end on the way: by arc, and by switch, the branches that stand for them.
        self._branches: JournaledDict[str, tuple[int, ...]] = JournaledDict()
        self._relays: JournaledDict[str, JournaledDict[int, Rule]] = JournaledDict()
        self._todo: JournaledDict[str, None] = JournaledDict()
        self._has_returned = False  # a link: it may be the way for all that have none
        self._unable: JournaledSet[str] = JournaledSet()
        self._finding_since: float | None = None
        self._arcs_a_time = _MAX_ARCS_A_TIME

    def find_all(self) -> None:
        """Find all bypasses at once: after a restart, before switches connect, which have them."""
        self._todo.clear()
        for name in self._arcs:
            self._renew(name, {})

    def groups(self, switch: str) -> tuple[Group, ...]:
        """Return the groups that a switch should have."""
        guarded = [self._arcs[name] for name in self._leaving.get(switch, ()) if name in self._arcs]
        return tuple(self._group(arc) for arc in guarded)

    def rules(self, switch: str) -> tuple[Rule, ...]:
        """Return the rules that a switch should have where labels of bypasses end."""
        relayed = self._relays.get(switch)
        return () if relayed is None else tuple(relayed.values())

    def _failed(self, failure: NotInstalled, _now: float) -> None:
        """Record that a switch did not accept its bypasses: it does without."""
        if failure.is_refusal and failure.switch not in self._unable:
            self._unable.add(failure.switch)
            text = f"{failure.switch} cannot turn to bypasses by itself: {failure.reason}"
            self._outbox.report("warning", text, switch=failure.switch)

    def links_changed(self, links: Collection[str], now: float) -> None:
        """Record that links went or returned."""
        for link in links:
            a, b = link.split("-")
            for name in (arc_name(a, b), arc_name(b, a)):
                if self._state.live.arc_is_up(name):
                    self._has_returned |= name in self._arcs and len(self._bypasses) < len(self._arcs)
                else:
                    for user in self._users.get(name, ()):
                        self._todo[user] = None
        if self._todo or self._has_returned:
            self._due = now + _QUIET_S

    def sent(self, now: float) -> None:
        """Record that all messages have been sent, and how long the last bypasses took to find."""
        if self._finding_since is None:
            return
        took_s, self._finding_since = now - self._finding_since, None
        if self._due is not None:
            self._due = max(self._due, now + _PAUSES * took_s)
        fitting = 2.0 if took_s < _ROUND_S / 2 else _ROUND_S / took_s
        self._arcs_a_time = min(_MAX_ARCS_A_TIME, max(1, int(self._arcs_a_time * fitting)))

    def tick(self, now: float) -> None:
        """Find the next bypasses and send them."""
        if self._due is None or self._due > now:
            return
        self._finding_since = now
        if self._has_returned:
            self._has_returned = False
            for name in self._arcs.keys() - self._bypasses.keys() - self._todo.keys():
                self._todo[name] = None
        entries: dict[str, list[Entry]] = {}
        for name in list(islice(self._todo, self._arcs_a_time)):
            del self._todo[name]
            if self._state.live.arc_is_up(name):
                self._renew(name, entries)
        for switch, those in entries.items():
            if self._state.live.is_connected(switch):
                self._transactions.send(switch, those, self._failed)
        self._due = now + _INTERVAL_S if self._todo else None

    def _renew(self, name: str, entries: dict[str, list[Entry]]) -> None:
        """Find the bypass of an arc, and note what switches are to be given if it is another than before."""
        arc, before = self._arcs[name], self._bypasses.get(name)
        nodes = self._quick(arc) or self._search(arc)
        if before == nodes:
            return
        if before is not None:
            del self._bypasses[name]
            for step in pairwise(before):
                self._users[arc_name(*step)].pop(name, None)
            self._free_branches(name, before)
        if nodes is not None and self._take_branches(name, nodes, entries):
            self._bypasses[name] = nodes
            for step in pairwise(nodes):
                self._users.setdefault(arc_name(*step), JournaledDict())[name] = None
        entries.setdefault(arc.tail, []).append(GroupChange(self._group(arc)))

    def _take_branches(self, name: str, nodes: tuple[str, ...], entries: dict[str, list[Entry]]) -> bool:
        """Give a bypass its rules where its labels end on the way; returns False if a switch has no room."""
        places = relays(nodes, self._state.live.ports)
        used = [self._relays.setdefault(place, JournaledDict()) for place in places]
        free = [next((k for k in range(1, MAX_BRANCHES + 1) if k not in each), None) for each in used]
        branches = tuple(each for each in free if each is not None)
        if len(branches) < len(places):
            return False
        rules = relay_rules(nodes, self._state.live.ports, branches)
        for place, those, branch, rule in zip(places, used, branches, rules, strict=True):
            those[branch] = rule
            entries.setdefault(place, []).append(rule)
        if branches:
            self._branches[name] = branches
        return True

    def _free_branches(self, name: str, nodes: tuple[str, ...]) -> None:
        branches = self._branches.pop(name, ())
        for place, branch in zip(relays(nodes, self._state.live.ports), branches, strict=True):
            self._remove(place, self._relays[place].pop(branch))

    def _group(self, arc: Arc) -> Group:
        able = arc.tail not in self._unable
        bypass = self._bypasses.get(arc_name(arc.tail, arc.head)) if able else None
        ports = self._state.live.ports
        branches = self._branches.get(arc_name(arc.tail, arc.head), ())
        return port_group(ports[arc.tail, arc.head], bypass, ports, branches)

    def _quick(self, around: Arc) -> tuple[str, ...] | None:
        """Return the best way by a neighbour whose own path of least delay is not over the link, or None.

        The trees of those paths are there already (RFC 5286, loop-free alternates).
        """
        nearest, best_ns = self._state.live.least_delay, math.inf
        distances, hops = nearest.distances(around.head), nearest.hops(around.head)
        best: list[tuple[str, ...]] = []
        for arc in self._up_from(around.tail):
            node = arc.head
            if node == around.head or node not in distances:
                continue
            delay_ns = round(arc.delay_s * 1e9) + distances[node][0]
            if delay_ns > best_ns:
                continue
            while node not in (around.tail, around.head):
                node = hops[node]
            if node == around.head:
                best = [*(best if delay_ns == best_ns else ()), nearest.path(arc.head, around.head) or ()]
                best_ns = delay_ns
        return (around.tail, *min(best)) if best else None

    def _search(self, around: Arc) -> tuple[str, ...] | None:
        """Return the path of least delay between the ends of a link without it."""

        def others(switch: str) -> Iterator[Arc]:
            return (arc for arc in self._up_from(switch) if arc.link != around.link)

        return path_over(around.tail, around.head, others)

    def _up_from(self, switch: str) -> Iterator[Arc]:
        live = self._state.live
        return (live.arcs[name] for name in self._leaving[switch] if live.arc_is_up(name))
