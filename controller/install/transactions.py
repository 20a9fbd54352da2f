"""All rules go into switches by this: stage by stage, each confirmed by every switch before the next is sent.

What an event lets begin or go on is sent together: a switch gets the rules of all these transactions at once,
with one barrier. What must be sent among other messages of an event has a barrier for itself (`send`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from controller.install.outbox import Outbox
from controller.model.journal import Journaled, JournaledDict
from controller.model.messages import InstallRules
from controller.model.rules import Entry, Stages
from controller.state.state import State

_REMEMBERED = 1 << 16
"""Barriers whose transactions are remembered: a switch may send an error after the barrier's reply."""


class NotInstalled(NamedTuple):
    """Why rules are not installed, as a sentence.

    Attributes:
        switch: To blame; several names where several have not confirmed.
        text: The sentence.
        reason: What the switch says where it has refused them; empty where it is lost, or has not confirmed.
    """

    switch: str
    text: str
    reason: str = ""

    @property
    def is_refusal(self) -> bool:
        """Whether the switch has refused them."""
        return bool(self.reason)


class Owner(Protocol):
    """For whom rules are installed; `now` is the time of the event."""

    def owns(self, cookie: int, /) -> bool:
        """Return whether a rule with a cookie is one of its own."""
        ...

    def installed(self, now: float, /) -> None:
        """All switches have confirmed all stages."""
        ...

    def failed(self, failure: NotInstalled, now: float, /) -> None:
        """Not all can be installed; a switch may refuse rules after `installed` too."""
        ...


class _Alone(NamedTuple):
    """Owner of entries that have a barrier for themselves."""

    when_confirmed: Callable[[], None]
    when_failed: Callable[[NotInstalled, float], None]

    def owns(self, _cookie: int) -> bool:
        return True

    def installed(self, _now: float) -> None:
        self.when_confirmed()

    def failed(self, failure: NotInstalled, now: float) -> None:
        self.when_failed(failure, now)


@dataclass(eq=False)
class Transaction(Journaled):
    """Rules that are on their way.

    `awaited` switches have not confirmed the stage that was sent last; its barriers have numbers from `since`
    on.
    """

    number: int
    owner: Owner
    stages: Stages
    awaited: int = 0
    since: int = 0


class Transactions(Journaled):
    """All transactions under way."""

    def __init__(self, state: State, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox
        self._last_number = 0
        self._open: JournaledDict[int, Transaction] = JournaledDict()
        # Switch, and transactions, of the barriers that are awaited.
        self._by_barrier: JournaledDict[int, tuple[str, tuple[int, ...]]] = JournaledDict()
        self._ready: JournaledDict[int, None] = JournaledDict()  # their next stage is to be sent
        self._unsent: JournaledDict[int, None] = JournaledDict()  # their stage is on its way to the switches
        self._deadlines: JournaledDict[int, float] = JournaledDict()  # the earliest first
        self._sent_for: OrderedDict[int, tuple[Transaction, ...]] = OrderedDict()  # by barrier

    def begin(self, owner: Owner, stages: Stages) -> Transaction:
        """Send the first stage with `flush`; each has a time to be confirmed in."""
        transaction = self._new(owner, stages)
        self._ready[transaction.number] = None
        return transaction

    def send(
        self,
        switch: str,
        entries: Sequence[Entry],
        failed: Callable[[NotInstalled, float], None],
        confirmed: Callable[[], None] = lambda: None,
        wipe: bool = False,
    ) -> None:
        """Send entries to a switch now, which may take as long as its connection lasts to confirm them.

        `failed` is called with the reason and the time if it does not confirm them; with `wipe` it loses all
        that it has before.
        """
        transaction = self._new(_Alone(confirmed, failed), [])
        transaction.awaited, transaction.since = 1, self._outbox.next_barrier
        self._put(switch, entries, (transaction,), wipe)

    def _new(self, owner: Owner, stages: Stages) -> Transaction:
        self._last_number += 1
        transaction = self._open[self._last_number] = Transaction(self._last_number, owner, stages)
        return transaction

    def _put(
        self, switch: str, entries: Sequence[Entry], those: tuple[Transaction, ...], wipe: bool = False
    ) -> None:
        barrier = self._outbox.next_barrier
        self._outbox.next_barrier += 1
        datapath_id = self._state.live.datapath_id(switch)
        self._outbox.put(InstallRules(datapath_id, tuple(entries), barrier, wipe))
        self._by_barrier[barrier] = switch, tuple([each.number for each in those])
        self._sent_for[barrier] = those
        if len(self._sent_for) > _REMEMBERED:
            self._sent_for.popitem(last=False)

    def flush(self) -> None:
        """Send the next stages of all transactions that can go on."""
        if not self._ready:
            return
        entries: dict[str, list[Entry]] = {}
        those: dict[str, list[Transaction]] = {}
        for number in self._ready:
            transaction = self._open[number]
            stage, *transaction.stages = transaction.stages
            for switch, rules in stage.items():
                entries.setdefault(switch, []).extend(rules)
                those.setdefault(switch, []).append(transaction)
            transaction.awaited, transaction.since = len(stage), self._outbox.next_barrier
            self._deadlines.pop(number, None)
        self._unsent.set_all(dict.fromkeys(self._ready))
        self._ready.clear()
        for switch, all_rules in entries.items():
            self._put(switch, all_rules, tuple(those[switch]))

    def sent(self, now: float) -> None:
        """Record that the stages begun have been sent: their switches have until the deadline."""
        if self._unsent:
            deadline = now + self._state.settings.confirm_timeout_s
            self._deadlines.set_all(dict.fromkeys(self._unsent, deadline))
            self._unsent.clear()

    def confirm(self, barrier: int, switch: str, now: float) -> None:
        """Record a barrier's reply; the owners of the transactions that are complete with it hear of it."""
        of_switch, numbers = self._by_barrier.get(barrier, ("", ()))
        if of_switch != switch:
            return
        del self._by_barrier[barrier]
        for number in numbers:
            transaction = self._open.get(number)
            if transaction is None or barrier < transaction.since:
                continue
            transaction.awaited -= 1
            if transaction.awaited:
                continue
            if transaction.stages:
                self._ready[number] = None
            else:
                self.cancel(transaction)
                transaction.owner.installed(now)

    def refused(self, barrier: int, cookie: int | None, switch: str, reason: str, now: float) -> bool:
        """Record that a switch did not accept rules; returns whether there was an owner to hear of it.

        Of several that share a barrier it is the one whose rule has the cookie, where that is known. A single
        one hears of it once.
        """
        those = self._sent_for.get(barrier, ())
        if len(those) == 1:
            del self._sent_for[barrier]
        elif cookie is not None:
            those = tuple(each for each in those if each.owner.owns(cookie))
        for each in those:
            self._fail(each, NotInstalled(switch, f"{switch} refused the rules: {reason}", reason), now)
        return bool(those)

    def _fail(self, transaction: Transaction, failure: NotInstalled, now: float) -> None:
        self.cancel(transaction)
        transaction.owner.failed(failure, now)

    def switch_lost(self, switch: str, now: float) -> None:
        """Record that a switch's connection ended: what waits for it will not be confirmed."""
        for transaction in list(self._open.values()):
            waits = switch in self._silent(transaction)
            if waits or any(switch in stage for stage in transaction.stages):
                self._fail(transaction, NotInstalled(switch, f"the connection to {switch} ended"), now)

    def tick(self, now: float) -> None:
        """Give up what switches did not confirm in time."""
        limit_s = self._state.settings.confirm_timeout_s
        overdue = [number for number, deadline in self._deadlines.items() if deadline <= now]
        for transaction in [self._open[number] for number in overdue]:
            if transaction.number in self._open:
                silent = ", ".join(sorted(self._silent(transaction)))
                text = f"{silent} did not confirm the rules within {limit_s:g} s"
                self._fail(transaction, NotInstalled(silent, text), now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return next(iter(self._deadlines.values()), None)

    def cancel(self, transaction: Transaction | None) -> None:
        """Forget a transaction; one that is over already is left as it is."""
        if transaction is None or self._open.pop(transaction.number, None) is None:
            return
        for barrier in self._awaited_of(transaction):
            if not any(number in self._open for number in self._by_barrier[barrier][1]):
                del self._by_barrier[barrier]
        for waiting in (self._ready, self._unsent, self._deadlines):
            waiting.pop(transaction.number, None)

    def _silent(self, transaction: Transaction) -> set[str]:
        """Return the switches that have not confirmed the stage that was sent last."""
        return {self._by_barrier[barrier][0] for barrier in self._awaited_of(transaction)}

    def _awaited_of(self, transaction: Transaction) -> list[int]:
        if not transaction.awaited:
            return []
        return [
            barrier
            for barrier, (_, numbers) in self._by_barrier.items()
            if barrier >= transaction.since and transaction.number in numbers
        ]
