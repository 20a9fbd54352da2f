"""A switch's connection: nobody waits for a switch that does not read, and its end is noticed at once.

os-ken has three threads for each switch and reads a message at a time; here one thread serves all of them
(`openflow.reactor`), and what comes often (barrier replies, packets, echoes) does not go through os-ken.
"""

from __future__ import annotations

import errno
import logging
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Any

from os_ken.base import app_manager  # noqa: F401  # first: os-ken's modules import each other
from os_ken.controller import controller as osken_controller
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER
from os_ken.ofproto import ofproto_parser

from controller.openflow.encoding import OWN_TRANSACTIONS, header
from controller.openflow.screening import is_wanted

__all__ = ["MAX_UNSENT_BYTES", "Connection"]

LOG = logging.getLogger("controller.openflow")

MAX_UNSENT_BYTES = 32 << 20
"""A switch that leaves more unread is disconnected; all rules of some 100,000 flows."""

_READ_BYTES = 1 << 18
_WRITE_BYTES = 1 << 18
_STALLED_S = 5.0
"""A switch that takes none of what is unsent for so long is disconnected."""

_ECHO_INTERVAL_S = 5.0
_MAX_UNANSWERED_ECHOES = 2

_HEADER = struct.Struct("!BBHI")
_ECHO_REQUEST, _ECHO_REPLY = 2, 3
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Take = Callable[["Connection", int, int, bytes], bool]
"""Takes (connection, type, transaction, whole message) and returns whether it was for it, not for os-ken."""


class Connection(osken_controller.Datapath):  # type: ignore[misc]  # os-ken has no type information
    """One connection, from its handshake to its end.

    Args:
        connected: The socket.
        address: Of the switch.
        take: Takes messages before os-ken does.
        want_write: Called, from any thread, when the connection waits until it can send more.
    """

    def __init__(
        self, connected: Any, address: object, take: Take, want_write: Callable[[Connection], None]
    ) -> None:
        self.certified: str | None = None  # the common name of its certificate, where one is asked for
        self._unsent = bytearray()
        self._is_over = False
        self._ends_when_sent = False
        self._lock = threading.Lock()
        self._all_sent = threading.Condition(self._lock)
        self._received = bytearray()
        self._take = take
        self._want_write = want_write
        self._stuck_since: float | None = None
        self._echo_at = 0.0
        self._unanswered_echoes = 0
        super().__init__(connected, address)
        self.xid: int = OWN_TRANSACTIONS
        connected.setblocking(False)

    def greet(self) -> None:
        """Begin the handshake."""
        self.send_msg(self.ofproto_parser.OFPHello(self))

    # Sending, from any thread

    def set_xid(self, msg: Any) -> int:
        """Number a message of os-ken, so that it is taken for none of a barrier's."""
        self.xid = (self.xid + 1) & 0xFFFF_FFFF | OWN_TRANSACTIONS
        msg.set_xid(self.xid)
        return self.xid

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Send bytes, or keep what the switch does not take; False if the connection is over or was ended."""
        wants_write = overflow = False
        with self._lock:
            if self._is_over:
                return False
            if len(self._unsent) + len(buf) > MAX_UNSENT_BYTES:
                overflow = True
            else:
                wants_write = not self._unsent
                sent = self._send_some(buf) if wants_write else 0
                self._unsent += memoryview(buf)[sent:]
                self._ends_when_sent |= close_socket
                wants_write = bool(self._unsent) and wants_write
        if overflow:
            LOG.error("datapath %s left %d bytes unread: it is disconnected", self.id, MAX_UNSENT_BYTES)
            self.close()
        elif wants_write or close_socket:
            self._want_write(self)
        return not overflow

    def _send_some(self, data: bytes | bytearray) -> int:
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
            self._all_sent.wait_for(lambda: self._is_over or not self._unsent, timeout_s)

    def close(self) -> None:
        """End the connection; what is unsent is dropped."""
        with self._lock:
            self._is_over = True
            self._unsent.clear()
            self._all_sent.notify_all()
        super().close()
        self._want_write(self)

    @property
    def is_over(self) -> bool:
        """Whether it has been ended, here or there."""
        return self._is_over

    # For the reactor, from its thread

    def write(self) -> bool:
        """Send what is unsent; returns whether there is more."""
        with self._lock:
            if self._unsent:
                with memoryview(self._unsent) as view:
                    sent = self._send_some(view[:_WRITE_BYTES])  # type: ignore[arg-type]
                if sent:
                    del self._unsent[:sent]
                    self._stuck_since = None
            is_done = not self._unsent
            if is_done:
                self._all_sent.notify_all()
        if is_done and self._ends_when_sent:
            self.close()
        return not is_done

    def read(self) -> bool:
        """Take in what has arrived; returns False at the end of the connection."""
        try:
            while data := self.socket.recv(_READ_BYTES):
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
        return bool(self.state != DEAD_DISPATCHER)

    def _has_more(self) -> bool:
        """Return whether TLS has read more than it has handed over, of which the selector knows nothing."""
        pending = getattr(self.socket, "pending", None)
        return pending is not None and pending() > 0

    def _take_messages(self) -> None:
        received, start = bytes(self._received), 0
        try:
            while len(received) - start >= _HEADER.size and self.state != DEAD_DISPATCHER:
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
            return
        if kind == _ECHO_REPLY:
            self._unanswered_echoes = 0
        if self.id is None or not self._take(self, kind, transaction, whole):
            self._hand_to_osken(version, kind, transaction, whole)

    def _hand_to_osken(self, version: int, kind: int, transaction: int, whole: bytes) -> None:
        """Let os-ken read a message that somebody wants, and give it to its handlers and applications."""
        if not is_wanted(version, kind, whole):
            return
        message = ofproto_parser.msg(self, version, kind, len(whole), transaction, whole)
        if not message or self.ofp_brick is None:
            return
        event = ofp_event.ofp_msg_to_ev(message)
        self.ofp_brick.send_event_to_observers(event, self.state)
        for handler in self.ofp_brick.get_handlers(event):
            if self.state in handler.callers[event.__class__].dispatchers:
                handler(event)

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
            self.xid = (self.xid + 1) & 0xFFFF_FFFF | OWN_TRANSACTIONS
            self.send(header(_ECHO_REQUEST, _HEADER.size, self.xid))
