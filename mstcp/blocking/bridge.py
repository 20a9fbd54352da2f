"""What the library's thread and the application's threads share of one connection."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from mstcp.background import FORKED, BackgroundLoop
from mstcp.errors import ConnectionClosed, MstcpError
from mstcp.transport import ConnectionTransport

LOGGER = logging.getLogger("mstcp")

RECEIVED_BYTES = 1 << 21
"""What waits for `recv` before no more is taken from the connection, whose window then closes."""
QUEUED_BYTES = 1 << 21
"""What `send` leaves to the background before it waits."""
_JOINED_BYTES = 1 << 14


class Deadline:
    """What is left of a timeout; None: for ever."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout
        self._at_once = timeout == 0

    def wait(self, changed: threading.Condition) -> None:
        """Wait for a change, as long as there is time."""
        if self._end is None:
            changed.wait()
            return
        left = self._end - time.monotonic()
        if left <= 0:
            if self._at_once:
                raise BlockingIOError("the operation would have to wait, and the timeout is 0")
            raise TimeoutError("timed out")
        changed.wait(left)


class Bridge(asyncio.Protocol):
    """What the event loop's thread and the application's threads share of one connection."""

    def __init__(self, background: BackgroundLoop, on_made: Callable[[Bridge], None] | None = None) -> None:
        self.background = background
        self.transport: ConnectionTransport
        lock = threading.Lock()
        # Readers and writers wait apart, so that each is woken by its own news alone.
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
        if self._on_made is not None:
            self._on_made(self)

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

    def take(self, size: int, deadline: Deadline) -> list[bytes | memoryview]:
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
        if timeout is not None and timeout < 0:
            raise ValueError(f"the timeout must not be negative: {timeout}")
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Return the timeout in seconds."""
        return self._timeout
