"""When to ask which switch for its counters: evenly spread, and bounded by the messages that it takes."""

from __future__ import annotations

from controller.model.journal import Journaled, JournaledDict

_FIRST_COST = 4.0
"""Messages that a switch is assumed to take until it has been asked: two requests and an answer to each."""


class CounterPolling(Journaled):
    """Says whose turn it is; a switch that has not answered is not asked again.

    With n switches one is asked every `interval_s` / n seconds, or so rarely that requests and answers come
    to no more than `messages_per_s`: in a large network each is asked less often. The times it is given never
    go back. With an interval of 0 none is asked.
    """

    def __init__(self, interval_s: float, messages_per_s: float) -> None:
        self._interval_s = interval_s
        self._messages_per_s = messages_per_s
        self._turns: JournaledDict[int, float] = JournaledDict()  # by datapath id: messages; next turn first
        self._asked: JournaledDict[int, None] = JournaledDict()  # those that have not answered yet
        self._due: float | None = None

    def set_pace(self, interval_s: float, messages_per_s: float) -> None:
        """Set the interval and the most messages per second."""
        self._interval_s, self._messages_per_s = interval_s, messages_per_s

    def add(self, datapath_id: int, now: float) -> None:
        """Begin to ask a switch."""
        self._turns[datapath_id] = _FIRST_COST
        self._asked.pop(datapath_id, None)
        if self._due is None:
            self._due = now

    def remove(self, datapath_id: int) -> None:
        """Ask a switch no more."""
        self._turns.pop(datapath_id, None)
        self._asked.pop(datapath_id, None)

    def answered(self, datapath_id: int, messages: int) -> None:
        """Record that a switch has answered, and how many messages that took."""
        if datapath_id in self._turns:
            excess = messages - self._turns[datapath_id]
            if excess > 0 and self._due is not None:
                self._due += excess / self._messages_per_s  # they were not waited for in advance
            self._turns[datapath_id] = float(messages)
            self._asked.pop(datapath_id, None)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._due if self._turns and self._interval_s > 0 else None

    def tick(self, now: float) -> int | None:
        """Return the switch to ask now; what a stall has missed is not made up for."""
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return None
        datapath_id = next((each for each in self._turns if each not in self._asked), None)
        gap_s = self._interval_s / len(self._turns)
        if datapath_id is not None:
            messages = self._turns.pop(datapath_id)
            self._turns[datapath_id] = messages  # the last in the order
            self._asked[datapath_id] = None
            gap_s = max(gap_s, messages / self._messages_per_s)
        # From the deadline on, so that intervals are even where the timer is a little late.
        self._due = deadline + gap_s if deadline + gap_s > now else now + gap_s
        return datapath_id
