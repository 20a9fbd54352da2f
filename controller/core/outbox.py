"""Where the parts of the core put what they want done, in order."""

from __future__ import annotations

from itertools import count

from controller.core.messages import Answer, InstallRules, LeaseResult, Message, Report
from controller.core.views import FlowView, Snapshot
from controller.errors import RequestError
from controller.rules.model import Entry

__all__ = ["Outbox"]


class Outbox:
    """Collects messages and numbers barriers."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._barriers = count(1)

    def put(self, message: Message) -> None:
        """Add a message."""
        self._messages.append(message)

    def install(self, datapath_id: int, entries: tuple[Entry, ...], wipe: bool = False) -> int:
        """Add entries for a switch and return the number of the barrier that confirms them."""
        barrier = next(self._barriers)
        self.put(InstallRules(datapath_id, entries, barrier, wipe))
        return barrier

    def answer(self, token: int, result: FlowView | Snapshot | LeaseResult | RequestError | None) -> None:
        """Add the answer to an event."""
        self.put(Answer(token, result))

    def report(self, level: str, text: str, **data: object) -> None:
        """Add a line for the log."""
        self.put(Report(level, text, data))

    def take(self) -> list[Message]:
        """Return everything collected since the last time."""
        messages, self._messages = self._messages, []
        return messages
