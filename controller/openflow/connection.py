"""A switch's connection: nobody waits for a switch that does not read, and its end is noticed at once.

One thread reads it and others write. OpenSSL's connections may not be used by two threads at once, and
Python's sockets do not see to that: each use of the socket is under the connection's lock.
"""

from __future__ import annotations

import errno
import logging
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from controller.openflow.encoding import OWN_TRANSACTIONS, header

LOG = logging.getLogger("controller.openflow")

MAX_UNSENT_BYTES = 32 << 20
"""A switch that leaves more unread is disconnected; all rules of some 100,000 flows."""

_READ_BYTES = 1 << 18
_WRITE_BYTES = 1 << 18
_STALLED_S = 5.0
"""A switch that takes none of what is unsent for this time is disconnected."""

_ECHO_INTERVAL_S = 5.0
_MAX_UNANSWERED_ECHOES = 2

_HEADER = struct.Struct("!BBHI")
_ECHO_REQUEST, _ECHO_REPLY = 2, 3
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Receive = Callable[["Connection", int, int, int, bytes], None]
"""Takes (connection, version, type, transaction, whole message)."""


class Connection:
    """One connection, from its beginning to its end.

    `receive` takes messages, except echoes. `want_write` is called, from any thread, when the connection
    waits until it can send more; `known` once, when the switch is admitted or it ends.
    """

    def __init__(
        self,
        connected: Any,
        address: object,
        receive: Receive,
        want_write: Callable[[Connection], None],
        certified: str | None = None,
        known: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id: int | None = None
        self.socket = connected
        self.address = address
        self.certified = certified
        self._clock = clock
        self.heard_at = clock()
        self._known: Callable[[], None] | None = known
        self._unsent = bytearray()
        self.is_over = False  # it has been ended, here or there
        self._lock = threading.Lock()
        self._all_sent = threading.Condition(self._lock)
        self._received = bytearray()
        self._receive = receive
        self._want_write = want_write
        self._stuck_since: float | None = None
        self._echo_at = self.heard_at + _ECHO_INTERVAL_S
        self._unanswered_echoes = 0
        connected.setblocking(False)

    def is_known(self) -> None:
        """Count the connection among those of admitted switches."""
        known, self._known = self._known, None
        if known is not None:
            known()

    # Sending, from any thread

    def send(self, data: bytes) -> None:
        """Send bytes, or keep what the switch does not take; nothing where the connection is over."""
        with self._lock:
            if self.is_over or not data:
                return
            overflow = len(self._unsent) + len(data) > MAX_UNSENT_BYTES
            was_empty = not self._unsent
            if not overflow:
                sent = self._send_some(data) if was_empty else 0
                self._unsent += memoryview(data)[sent:]
            wants_write = was_empty and bool(self._unsent)
        if overflow:
            LOG.error("datapath %s left %d bytes unread: it is disconnected", self.id, MAX_UNSENT_BYTES)
            self.close()
        elif wants_write:
            self._want_write(self)

    def _send_some(self, data: bytes | bytearray | memoryview) -> int:
        """Return how much of data the socket has taken."""
        try:
            return int(self.socket.send(data))
        except _WOULD_BLOCK:
            return 0
        except OSError as error:
            # The reader notices the end too, and closes.
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                LOG.warning("datapath %s takes no messages: %s", self.id, error)
            return 0

    def drain(self, timeout_s: float) -> None:
        """Wait until all is sent, but no longer."""
        with self._all_sent:
            self._all_sent.wait_for(lambda: self.is_over or not self._unsent, timeout_s)

    def close(self) -> None:
        """End the connection; what is unsent is dropped."""
        with self._lock:
            self.is_over = True
            self._unsent.clear()
            self._all_sent.notify_all()
        self._want_write(self)

    # For the reactor, from its thread

    def write(self) -> bool:
        """Send what is unsent; returns whether there is more."""
        with self._lock:
            if self._unsent:
                with memoryview(self._unsent) as view:
                    sent = self._send_some(view[:_WRITE_BYTES])
                if sent:
                    del self._unsent[:sent]
                    self._stuck_since = None
            is_done = not self._unsent
            if is_done:
                self._all_sent.notify_all()
        return not is_done

    def read(self) -> bool:
        """Handle what has arrived; returns False at the end of the connection."""
        try:
            while data := self._receive_some():
                self.heard_at = self._clock()
                self._received += data
                self._take_messages()
                if len(data) < _READ_BYTES and not self._has_more():
                    break
            else:
                return False
        except _WOULD_BLOCK:
            pass
        except OSError:
            return False
        return not self.is_over

    def _receive_some(self) -> bytes:
        with self._lock:
            return bytes(self.socket.recv(_READ_BYTES))

    def _has_more(self) -> bool:
        """Return whether TLS has read more than it has handed over, of which the selector knows nothing."""
        with self._lock:
            return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def _take_messages(self) -> None:
        received, start = bytes(self._received), 0
        try:
            while len(received) - start >= _HEADER.size and not self.is_over:
                version, kind, length, transaction = _HEADER.unpack_from(received, start)
                if length < _HEADER.size:
                    LOG.warning("datapath %s sends no OpenFlow: it is disconnected", self.id)
                    self.close()
                    return
                if len(received) - start < length:
                    return
                whole = received[start : start + length]
                start += length
                self._handle(version, kind, transaction, whole)
        finally:
            del self._received[:start]

    def _handle(self, version: int, kind: int, transaction: int, whole: bytes) -> None:
        if kind == _ECHO_REQUEST:
            self.send(header(_ECHO_REPLY, len(whole), transaction) + whole[_HEADER.size :])
        elif kind == _ECHO_REPLY:
            self._unanswered_echoes = 0
        else:
            self._receive(self, version, kind, transaction, whole)

    def ask_for_echo(self) -> None:
        """Ask whether the switch is alive: it says something then (`heard_at`)."""
        self.send(header(_ECHO_REQUEST, _HEADER.size, OWN_TRANSACTIONS))

    def check(self, now: float) -> None:
        """Ask whether the switch is alive, and end the connection of one that does not answer or read."""
        with self._lock:
            if self._unsent and self._stuck_since is None:
                self._stuck_since = now
            is_stuck = self._stuck_since is not None and now - self._stuck_since >= _STALLED_S
        if is_stuck:
            LOG.warning("datapath %s takes no messages: it is disconnected", self.id)
            self.close()
        elif now >= self._echo_at:
            if self._unanswered_echoes > _MAX_UNANSWERED_ECHOES:
                LOG.warning("datapath %s does not answer: it is disconnected", self.id)
                self.close()
                return
            self._echo_at = now + _ECHO_INTERVAL_S
            self._unanswered_echoes += 1
            self.ask_for_echo()
