"""What the rules of a switch have counted: asked when a client wants to know, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.decide.component import Component, Context
from controller.model.counters import RuleCount
from controller.model.journal import JournaledDict
from controller.model.messages import ReadInstalled, Result
from controller.model.rules import RuleKey

_MIN_INTERVAL_S = 1.0
"""A switch is asked no more often, however many clients want to know."""

_TIMEOUT_S = 1.0
"""After this time, a client is answered without counters."""

_MAX_AT_ONCE = 4
"""Switches that are asked at the same time, at most; those beyond wait for their turn."""

Counts = Mapping[RuleKey, RuleCount]


class RuleCounters(Component):
    """Answers clients that look at a switch's rules.

    `view` makes the answer, from the switch's name and what its rules have counted.
    """

    def __init__(self, shared: Context, view: Callable[[str, Counts], Result]) -> None:
        super().__init__(shared)
        self._view = view
        self._waiting: JournaledDict[int, tuple[int, ...]] = JournaledDict()  # tokens by datapath id
        self._until: JournaledDict[int, float] = JournaledDict()  # by datapath id, the earliest first
        self._asked: JournaledDict[int, None] = JournaledDict()  # those that have not answered yet
        self._read: JournaledDict[int, tuple[float, Counts]] = JournaledDict()  # the earliest first

    def request(self, token: int, switch: str, now: float) -> None:
        """Answer a client, once the switch has said what it has counted."""
        live = self._state.live
        if switch not in live.network.switches or not live.is_connected(switch):
            self._outbox.answer(token, self._view(switch, {}))
            return
        datapath_id = live.datapath_id(switch)
        if datapath_id in self._read:
            self._outbox.answer(token, self._view(switch, self._read[datapath_id][1]))
            return
        self._waiting[datapath_id] = (*self._waiting.get(datapath_id, ()), token)
        self._until.setdefault(datapath_id, now + _TIMEOUT_S)
        self._ask()

    def take(self, datapath_id: int, counts: Counts, now: float) -> None:
        """Record what a switch has counted, for any asker."""
        if datapath_id in self._asked:
            self._read[datapath_id] = now + _MIN_INTERVAL_S, counts
            self._answer(datapath_id, counts)

    def stop(self) -> None:
        """Answer all that wait without counters."""
        for datapath_id in list(self._waiting):
            self._answer(datapath_id, {})

    def switch_left(self, datapath_id: int) -> None:
        """Record that a switch's connection ended: it will not answer."""
        self._read.pop(datapath_id, None)
        self._answer(datapath_id, {})

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        ends = [fresh_until for fresh_until, _ in self._read.values()]
        return min((*ends, *self._until.values()), default=None)

    def tick(self, now: float) -> None:
        """Answer those that have waited for long, and forget what is old."""
        for datapath_id in [each for each, (fresh_until, _) in self._read.items() if fresh_until <= now]:
            del self._read[datapath_id]
        for datapath_id in [each for each, until in self._until.items() if until <= now]:
            self._answer(datapath_id, {})

    def _ask(self) -> None:
        for datapath_id in self._waiting:
            if len(self._asked) >= _MAX_AT_ONCE:
                return
            if datapath_id not in self._asked:
                self._asked[datapath_id] = None
                self._outbox.put(ReadInstalled(datapath_id))

    def _answer(self, datapath_id: int, counts: Counts) -> None:
        self._asked.pop(datapath_id, None)
        self._until.pop(datapath_id, None)
        name = self._state.live.switch_name(datapath_id)
        tokens = self._waiting.pop(datapath_id, ())
        if tokens and name is not None:
            answer = self._view(name, counts)
            for token in tokens:
                self._outbox.answer(token, answer)
        self._ask()
