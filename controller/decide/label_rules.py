"""Keeps the fixed rules of the switches as their ports and hosts are."""

from __future__ import annotations

from controller.compile.labels import delivery_rule, label_rules
from controller.decide.default_routes import DefaultRoutes
from controller.install.outbox import Outbox
from controller.model.journal import Journaled, JournaledDict
from controller.model.messages import RemoveRule
from controller.model.rules import Rule
from controller.state.state import State

__all__ = ["LabelRules"]


class LabelRules(Journaled):
    """Knows which rules for labels each connected switch has.

    Args:
        state: Network and hosts.
        outbox: Where messages go.
        default_routes: Sends what a switch must have.
    """

    def __init__(self, state: State, outbox: Outbox, default_routes: DefaultRoutes) -> None:
        self._state = state
        self._outbox = outbox
        self._default_routes = default_routes
        self._sent: JournaledDict[str, tuple[Rule, ...]] = JournaledDict()

    def connect(self, switch: str) -> None:
        """Know that a switch will be given its rules, with all others."""
        self._sent[switch] = self._wanted(switch)

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        self._sent.pop(switch, None)

    def sent_to(self, switch: str) -> tuple[Rule, ...]:
        """Return the rules that a switch has been sent; none if it is not connected."""
        return self._sent.get(switch, ())

    def update(self, switch: str) -> None:
        """Give a switch other rules, now that its ports or hosts are others."""
        if switch not in self._sent:
            return
        sent, wanted = self._sent[switch], self._wanted(switch)
        self._sent[switch] = wanted
        new = tuple(rule for rule in wanted if rule not in set(sent))
        keys = {(rule.table, rule.priority, rule.match) for rule in wanted}
        for rule in sent:
            if (rule.table, rule.priority, rule.match) not in keys:
                self._outbox.put(RemoveRule(self._state.live.datapath_id(switch), rule))
        if new:
            self._default_routes.send(switch, new)

    def _wanted(self, switch: str) -> tuple[Rule, ...]:
        live, hosts = self._state.live, self._state.hosts
        ways = live.ports
        heads = [arc.head for arc in live.arcs_from(switch) if arc.tail_port]
        ports = {host.ip: (host.mac, host.port) for host in hosts.learned_behind(switch)}
        for head in heads:
            host = hosts.find(head) if live.is_host(head) else None
            if host is not None:
                ports[host.ip] = host.mac, ways[switch, head]
        return (
            *label_rules(switch, [head for head in heads if not live.is_host(head)], ways),
            *(delivery_rule(ip, mac, port, ways) for ip, (mac, port) in ports.items()),
        )
