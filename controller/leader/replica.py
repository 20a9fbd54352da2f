"""A core that follows the store while another replica leads, and decides while this one does."""

from __future__ import annotations

from collections.abc import Callable

from controller.core import Core
from controller.errors import NotLeading
from controller.model import events
from controller.model.messages import Abandoned, Message, Reply, Report

_READS = (events.ViewRequested, events.FlowsRequested, events.CopyRequested)
"""What a replica that follows answers too, from what it knows."""


class Replica:
    """What the loop runs where there are replicas; the core is another one each time it begins to follow.

    `deciding_epoch` returns the epoch in which this replica leads and its lease cannot have ended, or 0.
    """

    def __init__(self, new_core: Callable[[], Core], deciding_epoch: Callable[[float], int]) -> None:
        self._new_core = new_core
        self._deciding_epoch = deciding_epoch
        self._core = new_core()
        self._epoch = 0
        self._configuration: events.ConfigurationChanged | None = None  # the last one

    def handle(self, event: events.Event, now: float) -> list[Message]:
        """Take an event in; while another replica leads, questions are answered and wishes refused."""
        if isinstance(event, events.LeadershipGained):
            return self._lead(event.epoch, now)
        if isinstance(event, events.LeadershipLost):
            return self._stop(event)
        if isinstance(event, events.RecordsRead):
            self._core = self._new_core()
        if isinstance(event, events.RecordsRead | events.RecordsChanged):
            self._core.follow(event.changes, now)
            return []
        if isinstance(event, events.ConfigurationChanged):
            self._configuration = event
        if self.epoch(now) or isinstance(event, _READS):
            return self._core.handle(event, now)
        if isinstance(event, events.ConfigurationChanged):
            return [Reply(event.token, None)]  # it counts once this replica leads
        each = event.events if isinstance(event, events.Together) else (event,)
        tokens = (getattr(one, "token", None) for one in each)
        return [Reply(token, NotLeading()) for token in tokens if token is not None]

    def epoch(self, now: float) -> int:
        """Return the epoch in which the core decides, and writes; 0 once that may have ended.

        This replica may lead again before the core has heard that it did not: what the core knows is of the
        epoch before, and nothing of it may be written in the new one.
        """
        if self._epoch != self._deciding_epoch(now):
            self._epoch = 0
        return self._epoch

    def sent(self, now: float) -> None:
        """Record that the messages of the last event have been sent."""
        self._core.sent(now)

    def next_deadline(self) -> float | None:
        """Return the time at which a `TimePassed` is due; nothing is due while another replica leads."""
        return self._core.next_deadline() if self._epoch else None

    def _lead(self, epoch: int, now: float) -> list[Message]:
        self._epoch = epoch
        messages = self._core.lead(now)
        if self._configuration is not None:
            messages += self._core.handle(self._configuration, now)
        return messages

    def _stop(self, event: events.LeadershipLost) -> list[Message]:
        self._epoch = 0
        reason = f"this replica decides no more: {event.reason}"
        return [Report("warning", reason), Abandoned(reason)]
