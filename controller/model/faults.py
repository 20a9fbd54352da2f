"""What is wrong and lasts: said in the health until it is over, and in the log when it begins."""

from __future__ import annotations

import math
from enum import Enum

from controller.model.journal import Journaled, JournaledDict

_MAX_FAULTS = 1024


class FaultKind(Enum):
    """Kinds of faults; a subject has one of a kind at a time."""

    HELD = "another controller decides for a switch"
    RULES_REFUSED = "a switch refused default routes"
    TABLE_FULL = "a switch has no room for more rules"
    MESSAGES_REFUSED = "a switch answers messages with errors"
    ADDRESS_CLAIMED = "another host claims the address of one that answers"
    HOSTS_REFUSED = "more hosts are behind a port than are learned"


class Faults(Journaled):
    """Sentences, by what they are about; those that have a time end by themselves."""

    def __init__(self) -> None:
        self._texts: JournaledDict[tuple[str, FaultKind], str] = JournaledDict()
        self._until: JournaledDict[tuple[str, FaultKind], float] = JournaledDict()

    def add(self, subject: str, kind: FaultKind, text: str, until: float = math.inf) -> bool:
        """Note a fault, or that it goes on; returns whether it is new."""
        key = subject, kind
        is_new = key not in self._texts
        if is_new and len(self._texts) >= _MAX_FAULTS:
            return False
        self._texts[key] = text
        if until < math.inf:
            self._until[key] = until
        return is_new

    def clear(self, subject: str, kind: FaultKind) -> bool:
        """Note that a fault is over; returns whether there was one."""
        self._until.pop((subject, kind), None)
        return self._texts.pop((subject, kind), None) is not None

    def clear_all(self, subject: str) -> None:
        """Note that all faults of a subject are over."""
        for kind in FaultKind:
            self.clear(subject, kind)

    def get(self, subject: str, kind: FaultKind) -> str | None:
        """Return a fault as a sentence; None if there is none."""
        return self._texts.get((subject, kind))

    def subjects(self, kind: FaultKind) -> frozenset[str]:
        """Return what has a fault of a kind."""
        return frozenset(subject for subject, each in self._texts if each is kind)

    def texts(self) -> tuple[str, ...]:
        """Return all as sentences."""
        return tuple(self._texts.values())

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` has something to do."""
        return min(self._until.values(), default=None)

    def expire(self, now: float) -> None:
        """End the faults whose time is over."""
        for key in [key for key, until in self._until.items() if until <= now]:
            self.clear(*key)
