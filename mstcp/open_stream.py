"""One stream of a connection as the transport has it: its socket, its TLS, and what may wait in them."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import socket
import ssl
from dataclasses import dataclass, field

from mstcp import sockets
from mstcp.streams import StreamSpec
from mstcp.tls import TlsStream


@dataclass
class OpenStream:
    """A connected, non-blocking socket, what is known of its path, and its TLS, if it has any.

    Attributes:
        descriptor: The socket's; known also after it was closed, when the event loop must still forget it.
        congestion_control: As read back.
        unsent_limit: The most bytes that may wait unsent in the socket.
        unsent_room: What of the limit was left when the kernel was last asked.
    """

    sock: socket.socket
    spec: StreamSpec
    tls: TlsStream | None = None
    descriptor: int = field(init=False)
    congestion_control: str | None = field(init=False)
    unsent_limit: float = field(init=False, default=math.inf)
    unsent_room: float = field(init=False, default=math.inf)

    def __post_init__(self) -> None:
        self.descriptor = self.sock.fileno()
        self.congestion_control = sockets.congestion_control(self.sock)

    def limit_unsent(self, limit: int | None) -> None:
        """Bound what may wait unsent in the socket; None: as much as it takes."""
        self.unsent_limit = math.inf if limit is None else limit
        self.unsent_room = math.inf if limit is None else 0

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more were not too many when the kernel was last asked.

        The kernel calls the socket writable when less than half of the bound is unsent: what is larger (a
        frame that was begun before the bound shrank) must not wait for more, or it would wait for ever.
        """
        return self.unsent_room >= min(size, self.unsent_limit / 2)

    def unsent_bytes(self) -> int:
        """Return what the kernel or TLS has and has not sent.

        TCP_NOTSENT_LOWAT alone is not enough: the kernel looks at it for each buffer it begins, and those
        hold tens of kilobytes: a tenth of a second on a slow path.
        """
        unsent = sockets.unsent_bytes(self.sock) + self._held_by_tls()
        self.unsent_room = self.unsent_limit - unsent
        return unsent

    def unacknowledged_bytes(self) -> int:
        """Return what the peer's kernel has not acknowledged."""
        return sockets.unacknowledged_bytes(self.sock) + self._held_by_tls()

    def _held_by_tls(self) -> int:
        return 0 if self.tls is None else self.tls.unsent_bytes

    def shut(self) -> None:
        """End TCP's direction after TLS's, as soon as all is in the socket."""
        with contextlib.suppress(OSError):  # the peer may be gone already; reading tells
            if self.tls is not None:
                self.tls.end(self.sock)
            if not self._held_by_tls():
                self.sock.shutdown(socket.SHUT_WR)


def errno_of(error: OSError) -> int:
    """Return the system's number of an error; those of TLS are numbered otherwise."""
    return errno.EPROTO if isinstance(error, ssl.SSLError) else error.errno or errno.EIO


def strerror(number: int) -> str:
    """Return the sentence of such a number."""
    if number == errno.EPROTO:
        return "TLS failed: the bytes were altered or cut short, or the peer gave TLS up"
    return os.strerror(number)
