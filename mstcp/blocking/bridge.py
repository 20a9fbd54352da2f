"""What the library's thread and the application's threads share of one connection."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import cast

from mstcp import _core
from mstcp.background import FORKED, BackgroundLoop
from mstcp.blocking.deadline import Deadline, check_timeout
from mstcp.errors import ConnectionClosed
from mstcp.transport import ConnectionTransport

QUEUED_BYTES = 1 << 21
"""What `send` leaves to the background before it waits."""


class Bridge(asyncio.Protocol):
    """What the event loop's thread and the application's threads share of one connection.

    The application's threads drive it themselves (`waiter`, see mstcp/open/handovers.py).
    """

    def __init__(self, background: BackgroundLoop, on_made: Callable[[Bridge], None] | None = None) -> None:
        self.background = background
        self.transport: ConnectionTransport
        self.waiter: _core.Waiter
        self.changed = threading.Condition()
        self.ended = False
        self.error: BaseException | None = None
        self.closed = False
        self._on_made = on_made
        # Told, besides the condition, when there may be bytes or room.
        self.watchers: list[Callable[[], None]] = []

    def tell(self) -> None:
        """Tell those that watch."""
        for watcher in self.watchers:
            watcher()

    # --- in the event loop's thread -------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self.transport = cast(ConnectionTransport, transport)
        self.transport.set_write_buffer_limits(high=QUEUED_BYTES)
        self.background.transports.add(self.transport)
        self.waiter = self.background.handovers.hand_over(self.transport)
        self.transport.shell.on_change = self._changed
        if self._on_made is not None:
            self._on_made(self)

    def _changed(self) -> None:
        if self.watchers:
            with self.changed:
                self.tell()

    def connection_lost(self, exc: BaseException | None) -> None:
        """See `asyncio.BaseProtocol`."""
        with self.changed:
            self.error = exc or ConnectionClosed("the connection is closed")
            self.changed.notify_all()
            self.tell()

    # --- in the application's threads -----------------------------------------------------------------------
    def later(self, function: Callable[[], object]) -> None:
        """Have the event loop's thread run a function, after what was asked for before."""
        if not self.background.forked:
            self.background.loop.call_soon_threadsafe(function)

    def check_open(self) -> None:
        """Raise what keeps this side from using the connection."""
        if self.closed:
            raise ConnectionClosed("the socket was closed")
        if self.background.forked:
            raise ConnectionClosed(FORKED)

    def put(self, piece: bytes, deadline: Deadline) -> None:
        """Queue a piece once there is room."""
        self.check_open()
        now_ns, left_ns = time.monotonic_ns(), deadline.left_ns()
        if not self.waiter.send(now_ns, piece, QUEUED_BYTES, QUEUED_BYTES // 4, left_ns):
            raise self._wait_for_error(deadline)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `receive` would return at once; -1 once closed."""
        return -1 if self.closed or self.background.forked else self.waiter.fileno()

    def receive(self, size: int, deadline: Deadline, *, keeps: bool = False) -> bytes:
        """Return up to `size` bytes as soon as there are some, to be received again if it `keeps` them."""
        self.check_open()
        data = self.waiter.receive(time.monotonic_ns(), size, deadline.left_ns(), keeps)
        if data is None:
            self._check_ended(deadline)
            return b""
        return data

    def receive_into(self, room: memoryview, deadline: Deadline) -> int:
        """Receive as `receive` does, to where the bytes are wanted; return how many."""
        self.check_open()
        count = self.waiter.receive_into(time.monotonic_ns(), room, deadline.left_ns())
        if count is None:
            self._check_ended(deadline)
            return 0
        return count

    def _check_ended(self, deadline: Deadline) -> None:
        """Return if the application ended the direction; raise what ended the connection."""
        if not self.ended:
            raise self._wait_for_error(deadline)
        self.check_open()

    def _wait_for_error(self, deadline: Deadline) -> BaseException:
        """Return why the connection cannot be used, as soon as that is known."""
        with self.changed:
            while self.error is None:
                self.check_open()
                deadline.wait(self.changed)
            self.check_open()
            return self.error

    def end_reading(self) -> None:
        """Have nothing more received than is there already."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()
            self.tell()
        self.waiter.dismiss(True, False)

    def close(self) -> None:
        """Close; threads that wait get ConnectionClosed."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
            self.tell()
        if not self.background.forked:
            self.waiter.dismiss(True, True)
            self.later(self._close)

    def _close(self) -> None:
        # The library's thread carries it on.
        self.transport.shell.attend()
        self.transport.close()


class WithTimeout:
    """What a socket and a listener have in common."""

    _timeout: float | None

    def settimeout(self, timeout: float | None) -> None:
        """Set how many seconds an operation may wait; None: for ever, 0: not at all."""
        check_timeout(timeout)
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Return the timeout in seconds."""
        return self._timeout

    @property
    def timeout(self) -> float | None:
        """The timeout in seconds."""
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        """Have operations wait for ever, or not at all."""
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        """Return whether operations may wait."""
        return self._timeout != 0
