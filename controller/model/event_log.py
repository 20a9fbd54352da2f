"""The log of events in the store: what clients are told is written with the records that it speaks of.

Events of one turn of the loop share a record. The records take turns in a number of slots, so the oldest
events make room for new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.model.client_events import ClientEvent
from controller.model.messages import Message, Report
from controller.model.records import RecordChange

EVENT = "event"
"""Kind of the records."""

_SLOTS = 1000
_MAX_TOGETHER = 100
"""Events of a record, at most: those that are kept are no fewer than `_SLOTS` less this."""


class EventLog:
    """Numbers events; `last` is the number of the last one that the store has."""

    def __init__(self) -> None:
        self.last = 0

    def numbered(self, messages: Iterable[Message], time_s: float) -> list[ClientEvent]:
        """Return what clients are to be told, with the numbers that it has once the store has it."""
        told = ((each, each.kind) for each in messages if isinstance(each, Report) and each.kind is not None)
        return [
            ClientEvent(number, kind.value, time_s, each.text, each.data)
            for number, (each, kind) in enumerate(told, self.last + 1)
        ]

    @staticmethod
    def records(told: Sequence[ClientEvent]) -> list[RecordChange]:
        """Return the records of events, whose numbers follow each other."""
        chunks = (told[start : start + _MAX_TOGETHER] for start in range(0, len(told), _MAX_TOGETHER))
        return [
            RecordChange(
                EVENT,
                str(chunk[0].number % _SLOTS),
                {
                    "number": chunk[0].number,
                    "told": [[each.kind, each.time_s, each.text, each.data] for each in chunk],
                },
            )
            for chunk in chunks
        ]

    def follow(self, changes: Iterable[RecordChange]) -> list[ClientEvent]:
        """Return the events of records that this log has not, in order, and have them from now on."""
        told = []
        for change in changes:
            record = change.value if change.kind == EVENT else None
            for number, fields in enumerate(record["told"], record["number"]) if record else ():
                if number > self.last:
                    self.last = number
                    told.append(ClientEvent(number, *fields))
        return told

    def took(self, told: Sequence[ClientEvent]) -> None:
        """Record that the store has these."""
        if told:
            self.last = told[-1].number
