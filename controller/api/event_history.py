"""What has happened, kept for a while: clients follow it and resume where they were, at any replica."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import islice

from controller.model.client_events import ClientEvent

HISTORY_LOST = "history_lost"
"""The kind of the event that says that others are missing."""

_CAPACITY = 10_000
_BATCH = 256
"""Events that a follower is given before others have their turn."""


@dataclass(frozen=True)
class HistoryLost:
    """Events between what a follower has seen and the oldest that is kept are gone.

    `missed` is how many; None: it has seen those of another store.
    """

    missed: int | None


class EventHistory:
    """Keeps the last events; a follower has a place in it and no queue of its own: a slow one costs nothing.

    All methods are called in one asyncio loop. `store` is a part of the events' ids.
    """

    def __init__(self, store: str, capacity: int = _CAPACITY) -> None:
        self._store = store
        self._events: deque[ClientEvent] = deque(maxlen=capacity)
        self._last = 0
        self._more = asyncio.Event()
        self._closed = False

    def append(self, event: ClientEvent) -> None:
        """Add what has happened now; one that is there already changes nothing."""
        if event.number <= self._last:
            return
        if event.number != self._last + 1:
            self._events.clear()  # what is kept has no gaps
        self._last = event.number
        self._events.append(event)
        self._wake()

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
        seen = self._last - min(past, len(self._events))
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
            start = max(0, seen + 1 - oldest)
            for event in list(islice(self._events, start, start + _BATCH)):
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
        return f"{self._store}-{number}"

    def _number(self, event_id: str) -> int | None:
        """Return the number in an id of this store, which may come yet; None for any other text."""
        store, _, number = event_id.rpartition("-")
        if store != self._store or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        return int(number)
