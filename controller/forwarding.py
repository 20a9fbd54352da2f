"""Keeps the default routes of the switches as the network is, and knows who has confirmed them."""

from __future__ import annotations

from controller.messages import RemoveRules
from controller.outbox import Outbox
from controller.routes import next_hops
from controller.rules import Rule, classification_rules, default_route_rule, host_cookie
from controller.state import State

__all__ = ["Forwarding"]


class Forwarding:
    """Sends each switch the difference between the routes it has and those it should have."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        # The port towards each host's address, for each connected switch, as last sent.
        self._sent: dict[str, dict[str, int]] = {}
        self._awaited: dict[str, int] = {}
        self._due: float | None = None

    def connect(self, switch: str, pinned: tuple[Rule, ...]) -> None:
        """Give a switch that has just connected all its rules, in place of any it had."""
        routes = self._desired().get(switch, {})
        rules = tuple(default_route_rule(ip, port) for ip, port in routes.items())
        self._sent[switch] = routes
        self._send(switch, classification_rules() + rules + pinned, wipe=True)

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        self._sent.pop(switch, None)
        self._awaited.pop(switch, None)
        self._state.confirmed.discard(switch)
        self._state.refusals.pop(switch, None)

    def refresh_soon(self, now: float) -> None:
        """Compute the routes anew once everything that has happened by now is known."""
        self._due = now

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._due

    def tick(self, now: float) -> None:
        """Compute the routes anew if that is due, and send what has changed."""
        if self._due is None or self._due > now:
            return
        self._due = None
        desired = self._desired()
        for switch, sent in self._sent.items():
            routes = desired.get(switch, {})
            changed = {ip: port for ip, port in routes.items() if sent.get(ip) != port}
            for ip in sent.keys() - routes.keys():
                self._outbox.put(RemoveRules(self._state.live.datapath_id(switch), host_cookie(ip)))
            self._sent[switch] = routes
            if changed:
                self._send(switch, tuple(default_route_rule(ip, port) for ip, port in changed.items()))

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

    def _send(self, switch: str, rules: tuple[Rule, ...], wipe: bool = False) -> None:
        self._state.confirmed.discard(switch)
        self._awaited[switch] = self._outbox.install(self._state.live.datapath_id(switch), rules, wipe)

    def _desired(self) -> dict[str, dict[str, int]]:
        """Return the port towards each reachable host's address, for each switch."""
        live = self._state.live
        hosts = [host for host in self._state.hosts.all() if self._state.hosts.is_reachable(host)]
        arcs = [arc for arc in live.up_arcs() if not live.is_host(arc.tail) and not live.is_host(arc.head)]
        hops = next_hops(arcs, {host.name: host.switch for host in hosts})
        desired: dict[str, dict[str, int]] = {}
        for host in hosts:
            desired.setdefault(host.switch, {})[host.ip] = host.port
            for switch, neighbour in hops[host.name].items():
                desired.setdefault(switch, {})[host.ip] = live.ports[switch, neighbour]
        return desired
