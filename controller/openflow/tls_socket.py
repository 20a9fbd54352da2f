"""A TLS connection that one thread reads and others write.

OpenSSL's connections may not be used by two threads at once, and Python's sockets do not see to that.
"""

from __future__ import annotations

import socket
import ssl
import threading


class TlsSocket:
    """What `controller.openflow.connection` needs of a socket, over TLS; its calls exclude each other."""

    def __init__(self, connected: ssl.SSLSocket) -> None:
        self._connected = connected
        self._lock = threading.Lock()

    def recv(self, size: int) -> bytes:
        """Return what has arrived."""
        with self._lock:
            return self._connected.recv(size)

    def send(self, data: bytes) -> int:
        """Return how much of data was sent."""
        with self._lock:
            return self._connected.send(data)

    def pending(self) -> int:
        """Return how many bytes are read already that nobody has taken."""
        with self._lock:
            return self._connected.pending()

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Set an option."""
        self._connected.setsockopt(level, option, value)

    def settimeout(self, timeout_s: float | None) -> None:
        """Set how long a call may wait."""
        self._connected.settimeout(timeout_s)

    def setblocking(self, is_blocking: bool) -> None:
        """Set whether calls wait."""
        self._connected.setblocking(is_blocking)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._connected.fileno()

    def shutdown(self, how: int) -> None:
        """End the connection; without TLS's own goodbye, which would have to wait for the other side."""
        socket.socket.shutdown(self._connected, how)

    def close(self) -> None:
        """Release the socket."""
        self._connected.close()
