"""Which rules each connected switch should have, and whether it has confirmed them.

The fixed ones depend on its own ports and hosts alone: they are sent when it connects.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.compile.classification import classification
from controller.compile.labels import host_rules, label_rules, tag_rules
from controller.decide.component import Component, Context
from controller.decide.rule_difference import RuleDifference, rule_difference
from controller.install.transactions import NotInstalled
from controller.model.faults import FaultKind
from controller.model.installed import Installed, Unsettled
from controller.model.journal import JournaledDict, JournaledSet
from controller.model.rules import Entry, Group, Meter, Rule


class SwitchRules(Component):
    """Sends each switch the difference between the rules it has and those it should have.

    `beside` returns what a switch should have beside its fixed rules, groups first, `count_beside` how many
    of that are rules; `retry` is called with a switch that refused some.
    """

    def __init__(
        self,
        shared: Context,
        beside: Callable[[str], tuple[Rule | Group | Meter, ...]],
        count_beside: Callable[[str], int],
        retry: Callable[[str, float], None],
    ) -> None:
        super().__init__(shared)
        self._beside = beside
        self._count_beside = count_beside
        self._retry = retry
        self._labels: JournaledDict[str, tuple[Rule, ...]] = JournaledDict()  # of each connected switch
        self._awaited: JournaledDict[str, int] = JournaledDict()  # how many transactions, by switch
        self._refused: JournaledSet[str] = JournaledSet()  # switches that lack some since they refused them

    def connect(self, switch: str, installed: Installed | None) -> None:
        """Give a switch that has just connected what it lacks, and remove what it should not have.

        Without knowing what it has, replace all of it.
        """
        self._labels[switch] = self._label_rules(switch)
        wanted = self.wanted(switch)
        if installed is None:
            self.send(switch, wanted, wipe=True)
        else:
            datapath_id = self._state.live.datapath_id(switch)
            self._send_difference(switch, rule_difference(datapath_id, installed, wanted))

    def repair(self, switch: str, installed: Installed, unsettled: Unsettled) -> tuple[int, int]:
        """Give a connected switch what it lacks, and remove what it should not have.

        What is unsettled is left alone.

        Returns:
            How many rules and groups it lacked, and how many were too many.
        """
        wanted = [entry for entry in self.wanted(switch) if not unsettled.has(entry)]
        settled = unsettled.without(installed)
        missing = rule_difference(self._state.live.datapath_id(switch), settled, wanted)
        if not any(missing) and switch not in self._refused:
            return 0, 0
        self._refused.discard(switch)
        self._send_difference(switch, missing)
        there = len(settled.rules) + len(settled.groups) + len(settled.foreign_cookies)
        kept = len(wanted) - len(missing.entries)
        return len(missing.entries), max(0, there - kept)

    def wanted(self, switch: str) -> tuple[Rule | Group | Meter, ...]:
        """Return all that a connected switch should have, in an order in which it can be installed."""
        return (*self._classification(switch), *self._beside(switch), *self._labels.get(switch, ()))

    def count(self, switch: str) -> int:
        """Return how many rules a switch should have."""
        classifying = sum(isinstance(entry, Rule) for entry in self._classification(switch))
        return classifying + len(self._labels.get(switch, ())) + self._count_beside(switch)

    def _classification(self, switch: str) -> tuple[Meter | Rule, ...]:
        relays_dhcp = bool(self._state.live.network.dhcp_servers)
        return classification(self._state.metered_ports.get(switch, ()), relays_dhcp)

    def update(self, switch: str) -> None:
        """Give a switch other fixed rules, now that its ports or hosts are others."""
        if switch not in self._labels:
            return
        sent, wanted = self._labels[switch], self._label_rules(switch)
        self._labels[switch] = wanted
        new = tuple(rule for rule in wanted if rule not in set(sent))
        keys = {rule.key for rule in wanted}
        for rule in sent:
            if rule.key not in keys:
                self._remove(switch, rule)
        if new:
            self.send(switch, new)

    def _label_rules(self, switch: str) -> tuple[Rule, ...]:
        live, hosts = self._state.live, self._state.hosts
        next_hops = live.ports
        heads = [arc.head for arc in live.arcs_from(switch) if arc.tail_port]
        rules = label_rules(switch, [head for head in heads if not live.is_host(head)], next_hops)
        ports = [(host, host.port) for host in hosts.learned_behind(switch)]
        ports += [(host, next_hops[switch, head]) for head in heads for host in hosts.named(head)]
        for host, port in ports:
            tag = live.tag_at(live.datapath_id(switch), port)
            rules += host_rules(host.ip, host.mac, port, tag, next_hops)
        for head in heads:
            if (tag := next_hops.tags.get((switch, head))) is not None:
                rules += tag_rules(next_hops[switch, head], tag)
        return tuple(rules)

    def is_settled(self, switch: str) -> bool:
        """Return whether a switch has confirmed all that it was sent."""
        return switch not in self._awaited

    def _send_difference(self, switch: str, missing: RuleDifference) -> None:
        for message in missing.first:
            self._outbox.put(message)
        self.send(switch, missing.entries)
        for message in missing.then:
            self._outbox.put(message)

    def wipe(self, switch: str) -> None:
        """Remove all rules of a switch, flows' ones too."""
        self._labels.pop(switch, None)
        self.send(switch, (), wipe=True)

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        self._labels.pop(switch, None)
        self._awaited.pop(switch, None)
        self._refused.discard(switch)
        self._state.confirmed.discard(switch)

    def send(self, switch: str, entries: tuple[Entry, ...], wipe: bool = False) -> None:
        """Give a switch entries without which it is not ready."""
        self._state.confirmed.discard(switch)
        self._awaited[switch] = self._awaited.get(switch, 0) + 1
        self._transactions.send(switch, entries, self._fixed_failed, lambda: self._settled(switch), wipe=wipe)

    def _fixed_failed(self, failure: NotInstalled, now: float) -> None:
        self.failed(failure, now)
        self._settled(failure.switch)

    def _settled(self, switch: str) -> None:
        """Record that a transaction of a switch is over; with the last of them it has all its rules."""
        left = self._awaited.pop(switch, 0) - 1
        if left > 0:
            self._awaited[switch] = left
        elif switch not in self._refused and self._state.live.is_connected(switch):
            self._state.confirmed.add(switch)
            if self._state.faults.clear(switch, FaultKind.RULES_REFUSED):
                self._state.faults.clear(switch, FaultKind.TABLE_FULL)  # it had room for all of them

    def failed(self, failure: NotInstalled, now: float) -> None:
        """Record that a switch did not accept its rules, until `repair` has sent them again."""
        switch = failure.switch
        if not failure.is_refusal:
            return  # it will be given what it lacks when it connects
        self._refused.add(switch)
        self._state.confirmed.discard(switch)
        if self._state.faults.add(switch, FaultKind.RULES_REFUSED, f"{failure.text}."):
            self._outbox.report("error", f"{failure.text}.", switch=switch)
        self._retry(switch, now)
