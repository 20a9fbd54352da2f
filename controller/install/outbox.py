"""Where the parts of the core put what they want done, in order."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Protocol

from controller.model.client_events import ClientEventKind
from controller.model.messages import (
    Answer,
    InstallRules,
    Message,
    RemoveGroup,
    RemoveRule,
    RemoveRules,
    Report,
    Result,
)
from controller.model.records import Change
from controller.model.rules import Entry


class Refusable(Protocol):
    """For whom a switch was given something that it may refuse, even after it has confirmed it."""

    def owns(self, cookie: int, /) -> bool:
        """Return whether a rule with a cookie is one of its own."""
        ...

    def refused(self, switch: str, reason: str, now: float, /) -> None:
        """Record that a switch did not accept what it was given."""
        ...


_CHANGES = (InstallRules, RemoveRules, RemoveRule, RemoveGroup)

_REMEMBERED = 1 << 16
"""Barriers whose owners are remembered: a switch may send an error after the barrier's reply."""


class Outbox:
    """Collects messages, numbers barriers, and remembers for whom each was sent."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.next_barrier = 1  # its number
        self.changes: Counter[int] = Counter()  # how many messages have changed rules, by datapath id
        self._owners: OrderedDict[int, tuple[Refusable, ...]] = OrderedDict()

    def put(self, message: Message) -> None:
        """Add a message."""
        if isinstance(message, _CHANGES):
            self.changes[message.datapath_id] += 1
        self._messages.append(message)

    def install(
        self, datapath_id: int, entries: tuple[Entry, ...], owner: Refusable, wipe: bool = False
    ) -> int:
        """Add entries for a switch and return the number of the barrier that confirms them."""
        return self.install_for(datapath_id, entries, (owner,), wipe)

    def install_for(
        self, datapath_id: int, entries: tuple[Entry, ...], owners: tuple[Refusable, ...], wipe: bool = False
    ) -> int:
        """Add entries of several owners for a switch, as `install`."""
        barrier = self.next_barrier
        self.next_barrier += 1
        self._owners[barrier] = owners
        if len(self._owners) > _REMEMBERED:
            self._owners.popitem(last=False)
        self.put(InstallRules(datapath_id, entries, barrier, wipe))
        return barrier

    def take_owners(self, barrier: int, cookie: int | None) -> tuple[Refusable, ...]:
        """Return for whom refused rules were sent; none if a single one has been told.

        Of several it is the one whose rule has the cookie, where that is known.
        """
        owners = self._owners.get(barrier, ())
        if len(owners) == 1:
            del self._owners[barrier]
        elif cookie is not None:
            owners = tuple(owner for owner in owners if owner.owns(cookie))
        return owners

    def answer(self, token: int, result: Result) -> None:
        """Add the answer to an event."""
        self.put(Answer(token, result))

    def store(self, kind: str, key: str, value: Mapping[str, object] | None) -> None:
        """Add a record's new value (None: it goes); it is written before any other message is carried out."""
        self.put(Change(kind, key, value))

    def report(self, level: str, text: str, **data: object) -> None:
        """Add a line for the log."""
        self.put(Report(level, text, data))

    def tell(self, kind: ClientEventKind, text: str, data: Mapping[str, object], level: str = "info") -> None:
        """Add what clients are told of; it is a line for the log too."""
        self.put(Report(level, text, data, kind))

    def take(self) -> list[Message]:
        """Return everything collected since the last time."""
        messages, self._messages = self._messages, []
        return messages
