"""Installs the rules of a flow stage by stage, each confirmed by every switch before the next is sent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from controller.core.outbox import Outbox
from controller.core.state import State
from controller.rules.model import Entry, Stages

__all__ = ["Installation", "Installations"]


@dataclass
class Installation:
    """A flow whose rules are on their way, and the token that waits for it."""

    flow_id: str
    token: int
    stages: deque[dict[str, tuple[Entry, ...]]]
    deadline: float
    awaited: dict[int, str] = field(default_factory=dict)  # barrier -> switch


class Installations:
    """All installations under way."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._by_flow: dict[str, Installation] = {}

    def begin(self, flow_id: str, token: int, stages: Stages, now: float) -> None:
        """Send the first stage."""
        installation = Installation(flow_id, token, deque(stages), now)
        self._by_flow[flow_id] = installation
        self._send_stage(installation, now)

    def confirm(self, barrier: int, now: float) -> Installation | None:
        """Take a barrier in; returns the installation that is complete with it."""
        installation = self.awaiting(barrier)
        if installation is None:
            return None
        del installation.awaited[barrier]
        if installation.awaited:
            return None
        if installation.stages:
            self._send_stage(installation, now)
            return None
        return self.cancel(installation.flow_id)

    def awaiting(self, barrier: int) -> Installation | None:
        """Return the installation that waits for a barrier."""
        return next((inst for inst in self._by_flow.values() if barrier in inst.awaited), None)

    def overdue(self, now: float) -> list[Installation]:
        """Return the installations whose switches took too long."""
        return [installation for installation in self._by_flow.values() if installation.deadline <= now]

    def cancel(self, flow_id: str) -> Installation | None:
        """Forget an installation and return it."""
        return self._by_flow.pop(flow_id, None)

    def next_deadline(self) -> float | None:
        """Return the time at which the first one is overdue."""
        return min((installation.deadline for installation in self._by_flow.values()), default=None)

    def _send_stage(self, installation: Installation, now: float) -> None:
        installation.deadline = now + self._state.settings.confirm_timeout_s
        for switch, entries in installation.stages.popleft().items():
            barrier = self._outbox.install(self._state.live.datapath_id(switch), entries)
            installation.awaited[barrier] = switch
