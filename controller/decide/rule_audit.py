"""Compares what switches have with what they should have, and repairs the difference.

The counters that are read anyway say how many rules a switch has. Where that is not what it should be, and
nothing is on its way to the switch, it is asked for all of them; what lacks is sent, what is too much goes.
"""

from __future__ import annotations

from typing import NamedTuple

from controller.decide.component import Component, Context
from controller.decide.manager import FlowManager
from controller.decide.switch_rules import SwitchRules
from controller.model.client_events import ClientEventKind
from controller.model.faults import FaultKind
from controller.model.installed import Installed
from controller.model.journal import JournaledDict
from controller.model.messages import ReadInstalled

_TIMEOUT_S = 30.0
"""A switch that has not said what it has after this time is asked again."""

_FIRST_RETRY_S = 2.0
_LAST_RETRY_S = 60.0
"""Pause after a repair; after another one of the same switch soon after it, twice as long, and so on."""

_MAX_DISTURBED = 5
"""Where rules were on their way this many times in a row, counts or readings are compared all the same."""


class _Question(NamedTuple):
    """A switch was asked which rules it has: when, after how many changes sent to it, and how often in a row.

    `surplus` is how many rules more than expected it has counted, where that is why it was asked.
    """

    asked_at: float
    changes: int
    attempts: int
    surplus: int


class RuleAudit(Component):
    """Asks, compares and repairs."""

    def __init__(self, shared: Context, rules: SwitchRules, flows: FlowManager) -> None:
        super().__init__(shared)
        self._rules = rules
        self._flows = flows
        # By switch: changes sent when its counters were asked for; None: some rules were on their way.
        self._quiet_at: JournaledDict[str, int | None] = JournaledDict()
        self._disturbed: JournaledDict[str, int] = JournaledDict()  # how often in a row
        self._asked: JournaledDict[str, _Question] = JournaledDict()
        self._surplus: JournaledDict[str, int] = JournaledDict()  # rules that it counts and does not tell
        self._pause_s: JournaledDict[str, float] = JournaledDict()
        self._not_before: JournaledDict[str, float] = JournaledDict()
        self._retry_at: JournaledDict[str, float] = JournaledDict()

    def switch_left(self, switch: str) -> None:
        """Forget a switch; it is compared when it connects."""
        known = (self._quiet_at, self._disturbed, self._asked, self._surplus)
        for each in (*known, self._pause_s, self._not_before, self._retry_at):
            each.pop(switch, None)

    def counters_asked(self, switch: str) -> None:
        """Note that the question how many rules a switch has is on its way."""
        is_settled = self._rules.is_settled(switch) and not self._flows.is_unsettled(switch)
        self._quiet_at[switch] = self._changes(switch) if is_settled else None

    def counted(self, switch: str, rules: int | None, now: float) -> None:
        """Take how many rules a switch has; where it is not what it should be, ask for all of them."""
        quiet_at = self._quiet_at.pop(switch, None)
        if rules is None:
            return
        if quiet_at is None or quiet_at != self._changes(switch):
            self._disturbed[switch] = self._disturbed.get(switch, 0) + 1
            if self._disturbed[switch] % _MAX_DISTURBED == 0:
                self._ask(switch, now, attempts=_MAX_DISTURBED)
            return
        self._disturbed.pop(switch, None)
        surplus = rules - self._rules.count(switch)
        if surplus != self._surplus.get(switch, 0):
            self._ask(switch, now, surplus)

    def refused(self, switch: str, now: float) -> None:
        """Take that a switch did not accept all that it should have: it is tried again."""
        self._retry_at[switch] = self._pause(switch, now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return min(self._retry_at.values(), default=None)

    def tick(self, now: float) -> None:
        """Ask the switches that are to be tried again."""
        for switch in [switch for switch, due in self._retry_at.items() if due <= now]:
            del self._retry_at[switch]
            self._ask(switch, now)

    def read(self, switch: str, installed: Installed, now: float) -> None:
        """Compare what a switch has with what it should have, and repair it."""
        question = self._asked.pop(switch, None)
        if question is None:
            return
        if question.changes != self._changes(switch) and question.attempts < _MAX_DISTURBED:
            self._ask(switch, now, question.surplus, question.attempts + 1)
            return
        missing, extra = self._rules.repair(switch, installed, self._flows.unsettled())
        if not missing and not extra:
            self._surplus[switch] = question.surplus
            return
        self._not_before[switch] = self._pause(switch, now)
        text = f"{switch} had not the rules that it should have: {missing} were missing, {extra} too many"
        facts = {"switch": switch, "missing": missing, "extra": extra}
        if self._state.faults.get(switch, FaultKind.RULES_REFUSED) is None:
            self._outbox.tell(ClientEventKind.RULES_REPAIRED, text, facts, "warning")

    def _ask(self, switch: str, now: float, surplus: int = 0, attempts: int = 1) -> None:
        asked = self._asked.get(switch)
        if not self._state.live.is_connected(switch) or self._not_before.get(switch, now) > now:
            return
        if asked is not None and now - asked.asked_at < _TIMEOUT_S:
            return
        self._asked[switch] = _Question(now, self._changes(switch), attempts, surplus)
        self._outbox.put(ReadInstalled(self._state.live.datapath_id(switch)))

    def _pause(self, switch: str, now: float) -> float:
        """Return when a switch may be repaired again."""
        until = self._not_before.get(switch)
        is_again = until is not None and now < until + self._pause_s.get(switch, 0.0)
        pause_s = min(_LAST_RETRY_S, 2 * self._pause_s[switch]) if is_again else _FIRST_RETRY_S
        self._pause_s[switch] = pause_s
        return now + pause_s

    def _changes(self, switch: str) -> int:
        return self._outbox.changes[self._state.live.datapath_id(switch)]
