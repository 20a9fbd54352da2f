"""A stream of a connection as the transport has it, and the socket of one that is being opened."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass, field

from mstcp import sockets
from mstcp.streams import StreamSpec
from mstcp.tls import TlsStream


@dataclass
class OpeningStream:
    """A socket that the driver is connecting.

    Attributes:
        descriptor: The driver's; it stays open until nobody watches it any more.
        is_read, is_written: Whether the event loop watches it for bytes and for room.
    """

    descriptor: int
    is_read: bool = False
    is_written: bool = False

    def close(self) -> None:
        """Leave the socket to the driver, which closes it."""


@dataclass
class OpenStream:
    """A connected, non-blocking socket, what is known of its path, and the TLS that its frames go through.

    Attributes:
        number: The driver's.
        descriptor: The socket's; known also after it was closed, when the event loop must still forget it.
        is_read, is_written: Whether the event loop watches the socket for bytes and for room.
        congestion_control: As read back.
    """

    sock: socket.socket
    spec: StreamSpec
    number: int
    tls: TlsStream | None = None
    is_read: bool = field(init=False, default=False)
    is_written: bool = field(init=False, default=False)
    descriptor: int = field(init=False)
    congestion_control: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.descriptor = self.sock.fileno()
        self.congestion_control = sockets.congestion_control(self.sock)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    @property
    def host(self) -> str:
        """The peer's address; empty if it is gone already."""
        try:
            return str(self.sock.getpeername()[0])
        except OSError:
            return ""


def strerror(number: int) -> str:
    """Return the sentence of an errno; that of TLS and records is EPROTO."""
    if number == errno.EPROTO:
        return "the bytes were altered or cut short on the way, or the peer gave TLS up"
    return os.strerror(number)
