"""What follows from a replica's standing, for the store, its core and its switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from controller.leader.machine import Action, ActionKind, LeaderMachine, Standing
from controller.model.events import Event, LeadershipGained, LeadershipLost, RecordsChanged, RecordsRead
from controller.model.records import Holder, Records, Update, changes_of

_FOLLOWING = (Standing.FOLLOWER, Standing.CANDIDATE)


class Operations(Protocol):
    """What an elector has done for it; answers come later, as calls of its methods."""

    def claim(self) -> None:
        """Take a lease, and by it the leader's key."""

    def renew(self, lease: int) -> None:
        """Renew the lease by which this replica leads."""

    def depose(self, epoch: int) -> None:
        """Remove the leader's key if it is of this epoch."""

    def lead(self, epoch: int) -> None:
        """Be the switches' master with this epoch, and hear no more of records: they are this replica's."""

    def follow(self) -> None:
        """Be no switch's master; read all that the store has, and follow it from there."""


class Elector:
    """Does what the state machine says; called by one thread."""

    def __init__(self, machine: LeaderMachine, operations: Operations, post: Callable[[Event], None]) -> None:
        self.machine = machine
        self._operations = operations
        self._post = post

    def read(self, records: Records, holder: Holder | None, now: float) -> None:
        """Take all that the store has; updates follow from there."""
        self._post(RecordsRead(changes_of(records)))
        if self.machine.standing is Standing.FENCED:
            self.do(self.machine.begun_again(holder, now))
        else:
            self.do(self.machine.holder_seen(holder, now))

    def updated(self, update: Update, now: float) -> None:
        """Take what the store's watch says."""
        if update.changes and self.machine.standing in _FOLLOWING:
            self._post(RecordsChanged(update.changes))
        if update.is_of_holder:
            self.do(self.machine.holder_seen(update.holder, now))

    def do(self, actions: list[Action]) -> None:
        """Carry out what the machine has answered."""
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        operations = self._operations
        if action.kind is ActionKind.CLAIM:
            operations.claim()
        elif action.kind is ActionKind.RENEW:
            operations.renew(self.machine.lease)
        elif action.kind is ActionKind.DEPOSE:
            operations.depose(action.epoch)
        elif action.kind is ActionKind.LEAD:
            self._post(LeadershipGained(action.epoch))  # before what switches say to their master
            operations.lead(action.epoch)
        else:
            self._post(LeadershipLost(action.reason))
            operations.follow()
