"""Where the parts of the core put what they want done, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from controller.model.client_events import ClientEventKind
from controller.model.messages import (
    InstallRules,
    Message,
    RemoveGroup,
    RemoveMeter,
    RemoveRule,
    RemoveRules,
    Reply,
    Report,
    Result,
)
from controller.model.records import RecordChange

_CHANGES = (InstallRules, RemoveRules, RemoveRule, RemoveGroup, RemoveMeter)


class Outbox:
    """Collects messages; what installs rules comes from `Transactions` alone."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.next_barrier = 1  # its number
        self.changes: Counter[int] = Counter()  # how many messages have changed rules, by datapath id

    def put(self, message: Message) -> None:
        """Add a message."""
        if isinstance(message, _CHANGES):
            self.changes[message.datapath_id] += 1
        self._messages.append(message)

    def answer(self, token: int, result: Result) -> None:
        """Add the answer to an event."""
        self.put(Reply(token, result))

    def store(self, kind: str, key: str, value: Mapping[str, object] | None) -> None:
        """Add a record's new value (None: it goes); it is written before any other message is carried out."""
        self.put(RecordChange(kind, key, value))

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
