"""One stream of a connection as the transport has it: its socket, TLS or records, and what waits in them."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import ssl
from dataclasses import dataclass, field

from mstcp import _core, sockets
from mstcp.layer import StreamLayer
from mstcp.streams import StreamSpec


@dataclass
class OpenStream:
    """A connected, non-blocking socket, what is known of its path, and what its frames go through.

    Attributes:
        descriptor: The socket's; known also after it was closed, when the event loop must still forget it.
        congestion_control: As read back.
    """

    sock: socket.socket
    spec: StreamSpec
    layer: StreamLayer | None = None
    descriptor: int = field(init=False)
    congestion_control: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.descriptor = self.sock.fileno()
        self.congestion_control = sockets.congestion_control(self.sock)

    @property
    def host(self) -> str:
        """The peer's address; empty if it is gone already."""
        try:
            return str(self.sock.getpeername()[0])
        except OSError:
            return ""

    def unacknowledged_bytes(self) -> int:
        """Return what the peer's kernel has not acknowledged."""
        return _core.unacknowledged_bytes(self.sock.fileno()) + self.held_bytes

    @property
    def held_bytes(self) -> int:
        """What TLS or records have and the socket has not taken."""
        return 0 if self.layer is None else self.layer.unsent_bytes

    def shut(self) -> None:
        """End TCP's direction after the layer's, as soon as all is in the socket."""
        with contextlib.suppress(OSError):  # the peer may be gone already; reading tells
            if self.layer is not None:
                self.layer.end(self.sock)
            if not self.held_bytes:
                self.sock.shutdown(socket.SHUT_WR)


def errno_of(error: OSError) -> int:
    """Return the system's number of an error; those of TLS are numbered otherwise."""
    return errno.EPROTO if isinstance(error, ssl.SSLError) else error.errno or errno.EIO


def strerror(number: int) -> str:
    """Return the sentence of such a number."""
    if number == errno.EPROTO:
        return "the bytes were altered or cut short on the way, or the peer gave TLS up"
    return os.strerror(number)
