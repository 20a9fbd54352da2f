"""A switch's connection: nobody waits for a switch that does not read, and its end is noticed at once.

os-ken's own lets the sender wait for a queue of 16 messages, and for the switch behind it; and it notices the
end of a connection only when something is sent.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from os_ken.controller import controller as osken_controller

__all__ = ["MAX_UNSENT_BYTES", "Connection"]

LOG = logging.getLogger("controller.openflow")

MAX_UNSENT_BYTES = 32 << 20
"""A switch that leaves more unread is disconnected; all rules of some 100,000 flows."""

_CHUNK_BYTES = 1 << 16


class Connection(osken_controller.Datapath):  # type: ignore[misc]  # os-ken has no type information
    """One connection, from its handshake to its end."""

    def __init__(self, connected: object, address: object) -> None:
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._is_over = False
        self._arrived = threading.Condition()
        super().__init__(connected, address)

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Queue bytes, at once; returns False if the connection is over or too much is unread."""
        with self._arrived:
            if self._is_over:
                return False
            overflow = self._unsent_bytes + len(buf) > MAX_UNSENT_BYTES
            if not overflow:
                self._unsent.append(bytes(buf))
                self._unsent_bytes += len(buf)
                self._is_over = close_socket
                self._arrived.notify()
        if overflow:
            LOG.error("datapath %s left %d bytes unread: it is disconnected", self.id, MAX_UNSENT_BYTES)
            self.close()
        return not overflow

    def close(self) -> None:
        """End the connection; what is unsent is dropped."""
        with self._arrived:
            self._is_over = True
            self._unsent.clear()
            self._arrived.notify()
        super().close()

    def _send_loop(self) -> None:
        try:
            while (data := self._take()) is not None:
                for start in range(0, len(data), _CHUNK_BYTES):
                    self.socket.sendall(data[start : start + _CHUNK_BYTES])
        except OSError as error:  # a switch that reads nothing for os-ken's socket timeout (5 s) too
            LOG.warning("datapath %s takes no messages: %s", self.id, error)
        finally:
            self.send_q = None  # os-ken's echo requests end by this
            self.close()

    def _take(self) -> bytes | None:
        """Wait for bytes to send; None: the connection is over."""
        with self._arrived:
            while not self._unsent:
                if self._is_over:
                    return None
                self._arrived.wait()
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_bytes = 0
            return data

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            self.close()
