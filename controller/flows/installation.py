"""Installs the rules of a flow stage by stage, each confirmed by every switch before the next is sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.core.journal import Journaled, JournaledDict
from controller.core.outbox import Outbox
from controller.core.state import State
from controller.rules.model import Stages

__all__ = ["Installation", "Installations"]


@dataclass
class Installation(Journaled):
    """Rules of a flow that are on their way, and the token that waits for them.

    `requested_before_bps` is None for a new flow; else its rates are being changed, and this is what it had
    asked for until now.
    """

    flow_id: str
    token: int
    stages: Stages
    requested_before_bps: float | None = None
    deadline: float | None = None  # from when the stage has been sent
    awaited: JournaledDict[int, str] = field(default_factory=JournaledDict)  # barrier -> switch


class Installations(Journaled):
    """All installations under way."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._by_flow: JournaledDict[str, Installation] = JournaledDict()
        self._by_barrier: JournaledDict[int, str] = JournaledDict()
        self._unsent: tuple[Installation, ...] = ()

    def begin(
        self, flow_id: str, token: int, stages: Stages, requested_before_bps: float | None = None
    ) -> None:
        """Send the first stage; a flow has one installation at a time."""
        installation = Installation(flow_id, token, stages, requested_before_bps)
        self._by_flow[flow_id] = installation
        self._send_stage(installation)

    def confirm(self, barrier: int) -> Installation | None:
        """Take a barrier in; returns the installation that is complete with it."""
        installation = self.awaiting(barrier)
        if installation is None:
            return None
        del installation.awaited[barrier]
        del self._by_barrier[barrier]
        if installation.awaited:
            return None
        if installation.stages:
            self._send_stage(installation)
            return None
        return self.cancel(installation.flow_id)

    def awaiting(self, barrier: int) -> Installation | None:
        """Return the installation that waits for a barrier."""
        flow_id = self._by_barrier.get(barrier)
        return None if flow_id is None else self._by_flow.get(flow_id)

    def overdue(self, now: float) -> list[Installation]:
        """Return the installations whose switches took too long."""
        return [
            installation
            for installation in self._by_flow.values()
            if installation.deadline is not None and installation.deadline <= now
        ]

    def of(self, flow_id: str) -> Installation | None:
        """Return the installation of a flow that is under way."""
        return self._by_flow.get(flow_id)

    def with_token(self, token: int) -> Installation | None:
        """Return the installation that a client waits for."""
        return next((each for each in self._by_flow.values() if each.token == token), None)

    def cancel(self, flow_id: str) -> Installation | None:
        """Forget an installation and return it."""
        installation = self._by_flow.get(flow_id)
        if installation is not None:
            del self._by_flow[flow_id]
            for barrier in installation.awaited:
                del self._by_barrier[barrier]
        return installation

    def sent(self, now: float) -> None:
        """Take in that the stages begun have been sent: their switches have until the deadline."""
        for installation in self._unsent:
            installation.deadline = now + self._state.settings.confirm_timeout_s
        self._unsent = ()

    def next_deadline(self) -> float | None:
        """Return the time at which the first one is overdue."""
        deadlines = (installation.deadline for installation in self._by_flow.values())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def _send_stage(self, installation: Installation) -> None:
        installation.deadline = None
        self._unsent += (installation,)
        stage, *installation.stages = installation.stages
        for switch, entries in stage.items():
            barrier = self._outbox.install(
                self._state.live.datapath_id(switch), entries, installation.flow_id
            )
            installation.awaited[barrier] = switch
            self._by_barrier[barrier] = installation.flow_id
