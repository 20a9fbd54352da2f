"""What the library's thread and the application's threads share of one connection."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from mstcp import _core
from mstcp.background import FORKED, BackgroundLoop
from mstcp.blocking.deadline import Deadline, check_timeout
from mstcp.errors import ConnectionClosed, MstcpError
from mstcp.transport import ConnectionTransport

LOGGER = logging.getLogger("mstcp")

RECEIVED_BYTES = 1 << 21
"""What waits for `recv` before no more is taken from the connection, whose window then closes."""
QUEUED_BYTES = 1 << 21
"""What `send` leaves to the background before it waits."""
_JOINED_BYTES = 1 << 14


class Bridge(asyncio.Protocol):
    """What the event loop's thread and the application's threads share of one connection.

    The application's threads drive it themselves (`loan`, see mstcp/loans.py). Over TLS and with records the
    event loop's thread does, and hands over through queues.
    """

    def __init__(self, background: BackgroundLoop, on_made: Callable[[Bridge], None] | None = None) -> None:
        self.background = background
        self.transport: ConnectionTransport
        self.loan: _core.Loan | None = None
        lock = threading.Lock()
        # Readers and writers have separate conditions, so that each is woken by its own events alone.
        self.readable = threading.Condition(lock)
        self.writable = threading.Condition(lock)
        self.chunks: deque[bytes | memoryview] = deque()
        self.chunk_bytes = 0
        self.ended = False
        self.error: BaseException | None = None
        self.closed = False
        self._on_made = on_made
        self._reading_paused = False
        self._writing_paused = False
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._flush_due = False
        # Told, besides the conditions, whenever one of them is.
        self.watchers: list[Callable[[], None]] = []
        # Made when the application asks for a descriptor; threads that drive the connection have their own.
        self._readiness: _core.Readiness | None = None

    def tell(self) -> None:
        """Tell those that watch."""
        self._show_readiness()
        for watcher in self.watchers:
            watcher()

    def _show_readiness(self) -> None:
        if self._readiness is not None:
            is_over = self.ended or self.closed or self.error is not None
            self._readiness.set(bool(self.chunks) or is_over)

    # --- in the event loop's thread -------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self.transport = cast(ConnectionTransport, transport)
        self.transport.set_write_buffer_limits(high=QUEUED_BYTES)
        self.background.transports.add(self.transport)
        self.loan = self.background.loans.lend(self.transport)
        self.transport.shell.on_change = self._changed
        if self._on_made is not None:
            self._on_made(self)

    def _changed(self) -> None:
        if self.watchers:
            with self.readable:
                self.tell()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        with self.readable:
            self.chunks.append(data)
            self.chunk_bytes += len(data)
            if self.chunk_bytes >= RECEIVED_BYTES and not self._reading_paused:
                self._reading_paused = True
                self.transport.pause_reading()
            self.readable.notify()
            self.tell()

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`; the other direction stays open."""
        with self.readable:
            self.ended = True
            self.readable.notify_all()
            self.tell()
        return True

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        with self.writable:
            self._writing_paused = True

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        with self.writable:
            self._writing_paused = False
            self.writable.notify_all()
            self.tell()

    def connection_lost(self, exc: BaseException | None) -> None:
        """See `asyncio.BaseProtocol`."""
        with self.readable:
            self.error = exc or ConnectionClosed("the connection is closed")
            self.readable.notify_all()
            self.writable.notify_all()
            self.tell()

    def _flush(self) -> None:
        with self.writable:
            pieces, self._outbox, self._outbox_bytes = self._outbox, [], 0
            self._flush_due = False
        try:
            for piece in _joined(pieces):
                self.transport.write(piece)
        except MstcpError as error:
            LOGGER.debug("bytes written to a connection that is closed: %s", error)
        with self.writable:
            if not self._writing_paused:
                self.writable.notify_all()
                self.tell()

    def _resume(self) -> None:
        self._reading_paused = False
        self.transport.resume_reading()

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
        if self.loan is not None:
            self.check_open()
            now_ns, left_ns = time.monotonic_ns(), deadline.left_ns()
            if not self.loan.send(now_ns, piece, QUEUED_BYTES, QUEUED_BYTES // 4, left_ns):
                raise self._wait_for_error(deadline)
            return
        with self.writable:
            while True:
                self.check_open()
                if self.error is not None:
                    raise self.error
                if not self._writing_paused and self._outbox_bytes < QUEUED_BYTES:
                    break
                deadline.wait(self.writable)
            self._outbox.append(piece)
            self._outbox_bytes += len(piece)
            if not self._flush_due:
                # In this order Ctrl-C between the two costs no more than a needless call.
                self.later(self._flush)
                self._flush_due = True

    def fileno(self) -> int:
        """Return a descriptor that is readable while `receive` would return at once; -1 once closed."""
        if self.closed or self.background.forked:
            return -1
        if self.loan is not None:
            return self.loan.fileno()
        with self.readable:
            if self._readiness is None:
                self._readiness = _core.Readiness()
                self._show_readiness()
            return self._readiness.fileno()

    def receive(self, size: int, deadline: Deadline, *, keeps: bool = False) -> bytes:
        """Return up to `size` bytes as soon as there are some, to be received again if it `keeps` them."""
        if self.loan is None:
            taken = self._take(size, deadline, keeps=keeps)
            return bytes(taken[0]) if len(taken) == 1 else b"".join(taken)
        self.check_open()
        data = self.loan.receive(time.monotonic_ns(), size, deadline.left_ns(), keeps)
        if data is None:
            self._check_ended(deadline)
            return b""
        return data

    def receive_into(self, room: memoryview, deadline: Deadline) -> int:
        """Receive as `receive` does, to where the bytes are wanted; return how many."""
        if self.loan is None:
            at = 0
            for piece in self._take(len(room), deadline):
                room[at : at + len(piece)] = piece
                at += len(piece)
            return at
        self.check_open()
        count = self.loan.receive_into(time.monotonic_ns(), room, deadline.left_ns())
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
        with self.readable:
            while self.error is None:
                self.check_open()
                deadline.wait(self.readable)
            self.check_open()
            return self.error

    def end_reading(self) -> None:
        """Have nothing more received than is there already."""
        self.eof_received()
        if self.loan is not None:
            self.loan.dismiss(True, False)

    def close(self) -> None:
        """Close; threads that wait get ConnectionClosed."""
        with self.readable:
            self.closed = True
            self.chunks.clear()
            self.readable.notify_all()
            self.writable.notify_all()
            self.tell()
        if not self.background.forked:
            if self.loan is not None:
                self.loan.dismiss(True, True)
            self.later(self._close)

    def _close(self) -> None:
        # The library's thread carries it on.
        self.transport.shell.attend()
        self.transport.close()

    def _take(self, size: int, deadline: Deadline, *, keeps: bool = False) -> list[bytes | memoryview]:
        """Return pieces of up to `size` bytes together as soon as there are some; none at the end."""
        with self.readable:
            while not self.chunks:
                self.check_open()
                if self.ended:
                    return []
                if self.error is not None:
                    raise self.error
                deadline.wait(self.readable)
            self.check_open()
            if keeps:
                return [b"".join(self.chunks)[:size]]
            taken: list[bytes | memoryview] = []
            while self.chunks and size > 0:
                chunk = self.chunks.popleft()
                if len(chunk) > size:
                    view = memoryview(chunk)
                    self.chunks.appendleft(view[size:])
                    chunk = view[:size]
                taken.append(chunk)
                size -= len(chunk)
                self.chunk_bytes -= len(chunk)
            if self._reading_paused and self.chunk_bytes <= RECEIVED_BYTES // 2:
                self.later(self._resume)
            self._show_readiness()
            return taken


def _joined(pieces: list[bytes]) -> list[bytes]:
    """Return the pieces with runs of small ones made one."""
    joined: list[bytes] = []
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _JOINED_BYTES:
            small.append(piece)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined


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
