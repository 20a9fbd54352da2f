"""Installs the rules of flows stage by stage, each confirmed by every switch before the next is sent.

What an event lets begin or go on is sent together: a switch gets the rules of all these flows at once, with
one barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.install.outbox import Outbox
from controller.model.journal import Journaled, JournaledDict
from controller.model.rules import Entry, Stages
from controller.state.state import State

__all__ = ["Installation", "Installations"]


@dataclass
class Installation(Journaled):
    """Rules of a flow that are on their way, and the token that waits for them.

    `requested_before_bps` is None for a new flow; else its rates are being changed, and this is what it had
    asked for until now. `awaited` switches have not confirmed the stage that was sent last; its barriers have
    numbers from `since` on.
    """

    flow_id: str
    token: int
    stages: Stages
    requested_before_bps: float | None = None
    awaited: int = 0
    since: int = 0


class Installations(Journaled):
    """All installations under way."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._by_flow: JournaledDict[str, Installation] = JournaledDict()
        self._by_token: JournaledDict[int, str] = JournaledDict()
        # Switch, and flows, of the barriers that are awaited.
        self._by_barrier: JournaledDict[int, tuple[str, tuple[str, ...]]] = JournaledDict()
        self._ready: JournaledDict[str, None] = JournaledDict()  # their next stage is to be sent
        self._unsent: JournaledDict[str, None] = JournaledDict()  # their stage is on its way to the switches
        self._deadlines: JournaledDict[str, float] = JournaledDict()  # the earliest first

    def begin(
        self, flow_id: str, token: int, stages: Stages, requested_before_bps: float | None = None
    ) -> None:
        """Send the first stage with `flush`; a flow has one installation at a time."""
        self._by_flow[flow_id] = Installation(flow_id, token, stages, requested_before_bps)
        self._by_token[token] = flow_id
        self._ready[flow_id] = None

    def confirm(self, barrier: int, switch: str) -> list[Installation]:
        """Take a switch's barrier in; returns the installations that are complete with it."""
        of_switch, flow_ids = self._by_barrier.get(barrier, ("", ()))
        if of_switch != switch:
            return []
        del self._by_barrier[barrier]
        complete = []
        for flow_id in flow_ids:
            installation = self._by_flow.get(flow_id)
            if installation is None or barrier < installation.since:
                continue
            installation.awaited -= 1
            if installation.awaited:
                continue
            if installation.stages:
                self._ready[flow_id] = None
            else:
                complete.append(installation)
                self.cancel(flow_id)
        return complete

    def is_awaited(self, barrier: int, flow_id: str) -> bool:
        """Return whether a barrier is to confirm the stage of a flow that was sent last."""
        return barrier in self._awaited_of(flow_id)

    def silent(self, flow_id: str) -> list[str]:
        """Return the switches that have not confirmed the stage of a flow that was sent last."""
        return sorted({self._by_barrier[barrier][0] for barrier in self._awaited_of(flow_id)})

    def _awaited_of(self, flow_id: str) -> list[int]:
        installation = self._by_flow.get(flow_id)
        if installation is None or not installation.awaited:
            return []
        return [
            barrier
            for barrier, (_, flow_ids) in self._by_barrier.items()
            if barrier >= installation.since and flow_id in flow_ids
        ]

    def flush(self) -> None:
        """Send the next stages of all installations that can go on."""
        if not self._ready:
            return
        entries: dict[str, list[Entry]] = {}
        flow_ids: dict[str, list[str]] = {}
        for flow_id in self._ready:
            installation = self._by_flow[flow_id]
            stage, *installation.stages = installation.stages
            for switch, rules in stage.items():
                entries.setdefault(switch, []).extend(rules)
                flow_ids.setdefault(switch, []).append(flow_id)
            installation.awaited, installation.since = len(stage), self._outbox.next_barrier
            self._deadlines.pop(flow_id, None)
        self._unsent.set_all(dict.fromkeys(self._ready))
        self._ready.clear()
        for switch, all_rules in entries.items():
            datapath_id, owners = self._state.live.datapath_id(switch), tuple(flow_ids[switch])
            barrier = self._outbox.install_for(datapath_id, tuple(all_rules), owners)
            self._by_barrier[barrier] = switch, owners

    def overdue(self, now: float) -> list[Installation]:
        """Return the installations whose switches took too long."""
        overdue = []
        for flow_id, deadline in self._deadlines.items():
            if deadline > now:
                break
            overdue.append(self._by_flow[flow_id])
        return overdue

    def of(self, flow_id: str) -> Installation | None:
        """Return the installation of a flow that is under way."""
        return self._by_flow.get(flow_id)

    def with_token(self, token: int) -> Installation | None:
        """Return the installation that a client waits for."""
        flow_id = self._by_token.get(token)
        return None if flow_id is None else self._by_flow.get(flow_id)

    def cancel(self, flow_id: str) -> Installation | None:
        """Forget an installation and return it."""
        installation = self._by_flow.get(flow_id)
        if installation is None:
            return None
        for barrier in self._awaited_of(flow_id):
            if not any(each in self._by_flow and each != flow_id for each in self._by_barrier[barrier][1]):
                del self._by_barrier[barrier]
        del self._by_flow[flow_id]
        self._by_token.pop(installation.token, None)
        for waiting in (self._ready, self._unsent, self._deadlines):
            waiting.pop(flow_id, None)
        return installation

    def sent(self, now: float) -> None:
        """Take in that the stages begun have been sent: their switches have until the deadline."""
        if self._unsent:
            deadline = now + self._state.settings.confirm_timeout_s
            self._deadlines.set_all(dict.fromkeys(self._unsent, deadline))
            self._unsent.clear()

    def next_deadline(self) -> float | None:
        """Return the time at which the first one is overdue."""
        return next(iter(self._deadlines.values()), None)
