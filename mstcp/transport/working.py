"""Worker threads of the core that send and read large frames in the event loop's stead."""

from __future__ import annotations

import atexit
import os
import time

from mstcp import _core
from mstcp.transport.lending import Lending
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import State

FIRST_BYTES = 16 << 20
"""A connection has no workers that has carried less."""


class Working:
    """Lets workers have the sockets while that pays, and is told by them what the protocol waits for.

    Args:
        state: Of the connection.
        sender: Holds the protocol back.
        receiver: Gives the protocol what workers have read.
        lending: Stands by meanwhile.
    """

    def __init__(self, state: State, sender: Sender, receiver: Receiver, lending: Lending) -> None:
        self._state = state
        self._sender = sender
        self._receiver = receiver
        self._lending = lending
        self._left_bytes = FIRST_BYTES
        self._bell: _core.Bell | None = None
        self._loan: _core.Loan | None = None

    def on_large(self, count: int) -> None:
        """Note that so many bytes were sent or read by the loop at once."""
        if self._loan is None:
            self._left_bytes -= count
            if self._left_bytes > 0 or self._state.is_closed or self._lending.is_lent_to_threads:
                return
            self._begin()
        if self._loan is not None and not self._state.is_lent and self._loan.hire(time.monotonic_ns()):
            self._lending.stand_by()
            self.rearm()

    def _begin(self) -> None:
        try:
            self._bell = _core.Bell()
        except OSError:  # no descriptor is left: the connection goes on as it did
            self._left_bytes = FIRST_BYTES
            return
        self._loan = self._lending.lend_to_workers(self._bell)
        self._state.loop.add_reader(self._bell.fileno(), self._on_bell)
        self._state.on_awaited = self.rearm
        self._state.on_end = self._end

    def _end(self) -> None:
        if self._bell is not None:
            self._state.loop.remove_reader(self._bell.fileno())

    def _on_bell(self) -> None:
        assert self._bell is not None and self._loan is not None
        self._bell.take()
        self._loan.requests()
        self._lending.attend()
        if not self._state.is_closed:
            self._receiver.deliver()
        if not self._state.is_closed:
            self._sender.pump()
            self.rearm()

    def rearm(self) -> None:
        """Have workers tell of the next bytes, and of room if the protocol waits for it."""
        if self._loan is not None and self._state.is_lent and not self._state.is_closed:
            room = self._sender.low_water if self._sender.is_paused else None
            self._loan.await_for_loop(not self._receiver.delivery.is_paused, room)


# A copy of the process would lack threads that its connections count on. They begin again where needed.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_core.end_workers,
        after_in_parent=_core.allow_workers,
        after_in_child=_core.allow_workers,
    )
atexit.register(_core.end_workers)
