"""What the parts of the core have in common."""

from __future__ import annotations

from typing import NamedTuple

from controller.install.outbox import Outbox
from controller.install.transactions import Transactions
from controller.model.journal import Journaled
from controller.model.messages import RemoveRule
from controller.model.rules import Rule
from controller.state.state import State


class Context(NamedTuple):
    """What all parts work on: network and flows, where messages go, and what installs rules."""

    state: State
    outbox: Outbox
    transactions: Transactions


class Component(Journaled):
    """A part of the core. `_due` is the time at which its `tick` has something to do."""

    def __init__(self, shared: Context) -> None:
        self._state, self._outbox, self._transactions = shared
        self._due: float | None = None

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._due

    def _remove(self, switch: str, rule: Rule) -> None:
        """Remove a rule of a switch; one that is away is given the difference when it returns."""
        live = self._state.live
        if live.is_connected(switch):
            self._outbox.put(RemoveRule(live.datapath_id(switch), rule))

    def _send_frame(self, switch: str, port: int, frame: bytes) -> None:
        """Send a frame to the hosts behind a port."""
        live = self._state.live
        self._outbox.put(live.packet_out(live.datapath_id(switch), port, frame))
