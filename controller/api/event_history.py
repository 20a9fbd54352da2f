"""What has happened, numbered and kept for a while: clients follow it and resume where they were."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from itertools import islice

HISTORY_LOST = "history_lost"
"""The kind of the event that says that others are missing."""

_CAPACITY = 10_000
_BATCH = 256
"""Events that a follower is given before others have their turn."""


@dataclass(frozen=True)
class ClientEvent:
    """Something that happened.

    Attributes:
        number: Its place, from 1.
        kind: A name of `controller.model.client_events.ClientEventKind`.
        time_s: When, in seconds since 1970.
        text: It as a sentence.
        data: It as fields.
    """

    number: int
    kind: str
    time_s: float
    text: str
    data: Mapping[str, object]


@dataclass(frozen=True)
class HistoryLost:
    """Events between what a follower has seen and the oldest that is kept are gone.

    `missed` is how many; None: it has seen those of another start of the controller.
    """

    missed: int | None


class EventHistory:
    """Keeps the last events; a follower has a place in it and no queue of its own: a slow one costs nothing.

    All methods are called in one asyncio loop.

    Args:
        epoch: Tells the events of this start of the controller from those of others; part of their ids.
        capacity: Events that are kept.
    """

    def __init__(self, epoch: str, capacity: int = _CAPACITY) -> None:
        self._epoch = epoch
        self._events: deque[ClientEvent] = deque(maxlen=capacity)
        self._last = 0
        self._more = asyncio.Event()
        self._closed = False

    def append(self, kind: str, time_s: float, text: str, data: Mapping[str, object]) -> ClientEvent:
        """Add what has happened now."""
        self._last += 1
        event = ClientEvent(self._last, kind, time_s, text, data)
        self._events.append(event)
        self._wake()
        return event

    def close(self) -> None:
        """End all followers."""
        self._closed = True
        self._wake()

    @property
    def last_id(self) -> str:
        """The id of the last event: what to resume after to hear of all later ones."""
        return self._id(self._last)

    def id_of(self, event: ClientEvent) -> str:
        """Return the id of an event."""
        return self._id(event.number)

    async def follow(
        self, last_id: str | None, past: int = 0, until_s: float | None = None
    ) -> AsyncIterator[ClientEvent | HistoryLost]:
        """Yield events as they happen, until the history is closed.

        Args:
            last_id: The last one that the follower has seen; events since then come first.
            past: How many of the last events come first without one.
            until_s: Seconds after which it ends.
        """
        seen = max(0, self._last - past)
        if last_id:
            known = self._number(last_id)
            if known is None:
                yield HistoryLost(None)
                seen = self._last - len(self._events)
            else:
                seen = known
        loop = asyncio.get_running_loop()
        ends_at = None if until_s is None else loop.time() + until_s
        while not self._closed:
            oldest = self._last - len(self._events) + 1
            if seen + 1 < oldest:
                yield HistoryLost(oldest - seen - 1)
                seen = oldest - 1
            for event in list(islice(self._events, seen + 1 - oldest, seen + 1 - oldest + _BATCH)):
                yield event
                seen = event.number
            if seen >= self._last and not await self._wait(self._more, ends_at):
                return

    async def _wait(self, more: asyncio.Event, ends_at: float | None) -> bool:
        """Wait for another event; returns False when the time is over."""
        if self._closed:
            return False
        if ends_at is None:
            await more.wait()
            return True
        try:
            await asyncio.wait_for(more.wait(), max(0.0, ends_at - asyncio.get_running_loop().time()))
        except asyncio.TimeoutError:
            return False
        return True

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    def _id(self, number: int) -> str:
        return f"{self._epoch}-{number}"

    def _number(self, event_id: str) -> int | None:
        """Return the number in an id of this start; None for any other text."""
        epoch, _, number = event_id.rpartition("-")
        if epoch != self._epoch or not (number.isascii() and number.isdigit() and len(number) < 20):
            return None
        return min(int(number), self._last)
