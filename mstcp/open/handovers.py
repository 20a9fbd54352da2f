"""Which connections threads drive at the moment, and when the library's loop has them back."""

from __future__ import annotations

import asyncio
import itertools
import time
import weakref
from collections.abc import Callable

from mstcp import _core
from mstcp.transport import ConnectionTransport

IDLE_S = 0.005
"""The loop takes over a connection that no thread has used for this time."""
_POLL_S = 50e-6
"""The interval between its looks grows by this much for each connection."""


class Handovers:
    """The connections of one event loop that threads may drive. All methods belong to the loop's thread.

    A thread that waits polls the sockets of its connection itself, which spares a wake-up and a copy for all
    that comes. The loop is asked to stand by with the first such wait. What happens while no thread waits or
    calls is the loop's: acknowledgements, timers, lost streams.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waker = _core.LoopWaker()
        self._numbers = itertools.count()
        self._all: weakref.WeakValueDictionary[int, ConnectionTransport] = weakref.WeakValueDictionary()
        self._waiters: weakref.WeakKeyDictionary[ConnectionTransport, _core.Waiter] = (
            weakref.WeakKeyDictionary()
        )
        # Those that threads have used recently: nobody else may hold them.
        self._out: dict[int, ConnectionTransport] = {}
        self._timer: asyncio.TimerHandle | None = None
        loop.add_reader(self._waker.fileno(), self._on_wake)

    def hand_over(self, transport: ConnectionTransport) -> _core.Waiter:
        """Return what threads drive a connection by."""
        number = next(self._numbers)
        waiter = transport.shell.hand_over(self._waker, number)
        self._all[number] = transport
        self._waiters[transport] = waiter
        return waiter

    def _on_wake(self) -> None:
        for number in self._waker.take():
            if (transport := self._all.get(number)) is not None:
                self._answer(number, transport)

    def _answer(self, number: int, transport: ConnectionTransport) -> None:
        waiter = self._waiters[transport]
        stand_by, attend, watch = waiter.requests()
        if stand_by:
            _guarded(transport, transport.shell.stand_by)
        if attend:
            _guarded(transport, transport.shell.attend)
        if (stand_by or watch) and waiter.is_out:
            self._out[number] = transport
            if self._timer is None:
                self._timer = self._loop.call_later(IDLE_S, self._take_idle_back)

    def _take_idle_back(self) -> None:
        self._timer = None
        now_ns, idle_ns = time.monotonic_ns(), round(IDLE_S * 1e9)
        for number, transport in list(self._out.items()):
            use = self._waiters[transport].look(now_ns, idle_ns)
            if use != "recent":
                del self._out[number]
            if use == "idle":
                _guarded(transport, transport.shell.take_back)
        if self._out:
            self._timer = self._loop.call_later(max(IDLE_S, _POLL_S * len(self._out)), self._take_idle_back)


def _guarded(transport: ConnectionTransport, act: Callable[[], None]) -> None:
    """Act on a connection; what fails ends it alone, and the others of the loop go on."""
    try:
        act()
    except Exception as error:
        transport.shell.fail_inside(error)
