"""What the proxy that enters says first on a connection: where the proxy that leaves is to connect to.

Request: `93 4d 53 50`, version 1 (8 bits), port (16 bits), length of the host (8 bits), host in UTF-8.
With port 0 and no host the connection carries channels (channels.py), each of which has a request of its own.
Answer: version 1 (8 bits), status (8 bits), length of a sentence (8 bits), sentence in UTF-8.
"""

from __future__ import annotations

import errno

from mstcp.endpoints import Destination
from mstcp.errors import MstcpError, RemoteProtocolError

MAGIC = b"\x93MSP"
VERSION = 1
REQUEST_BYTES = len(MAGIC) + 4
"""Before the host."""
ANSWER_BYTES = 3
"""Before the sentence."""
CHANNELS_REQUEST = MAGIC + bytes([VERSION, 0, 0, 0])
"""Asks for channels in the place of a destination."""

CONNECTED, MALFORMED, NOT_ALLOWED, UNKNOWN_NAME, REFUSED, UNREACHABLE, TIMED_OUT = range(7)
_ERRNO = {
    MALFORMED: errno.EPROTO,
    NOT_ALLOWED: errno.EACCES,
    UNKNOWN_NAME: errno.EHOSTUNREACH,
    REFUSED: errno.ECONNREFUSED,
    UNREACHABLE: errno.EHOSTUNREACH,
    TIMED_OUT: errno.ETIMEDOUT,
}


class DestinationRefused(MstcpError):
    """The far proxy cannot or will not connect to the destination.

    Attributes:
        status: Why, as the answer has it.
        reason: Why, as a sentence.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason

    @property
    def errno(self) -> int:
        """The system's number that says the same."""
        return _ERRNO.get(self.status, errno.ECONNREFUSED)

    def __str__(self) -> str:
        return self.reason


def encode_request(to: Destination) -> bytes:
    """Return the request; ValueError if the host has more than 255 bytes or the port is none."""
    host = to.host.encode()
    if not 0 < len(host) < 256 or not 0 < to.port < 1 << 16:
        raise ValueError(f"a destination is a host of up to 255 bytes and a port, not {to}")
    return MAGIC + bytes([VERSION]) + to.port.to_bytes(2, "big") + bytes([len(host)]) + host


def host_bytes(head: bytes) -> int:
    """Return the length of the host that follows the first `REQUEST_BYTES` bytes of a request.

    Raises:
        RemoteProtocolError: They do not begin a request.
    """
    if len(head) != REQUEST_BYTES or head[:4] != MAGIC or head[4] != VERSION:
        raise RemoteProtocolError("the connection does not begin with a destination")
    return head[-1]


def decode_request(head: bytes, host: bytes) -> Destination:
    """Return what a request asks for.

    Raises:
        RemoteProtocolError: It makes no sense.
    """
    if host_bytes(head) != len(host):
        raise RemoteProtocolError("the destination's host has another length than announced")
    try:
        name = host.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError("the destination's host is no UTF-8") from None
    port = int.from_bytes(head[5:7], "big")
    if not name or not name.isprintable() or " " in name or not port:
        raise RemoteProtocolError("the destination has no host or no port")
    return Destination(name, port)


def encode_answer(status: int, reason: str = "") -> bytes:
    """Return an answer; the sentence is cut to 255 bytes."""
    text = reason.encode()[:255].decode(errors="ignore").encode()
    return bytes([VERSION, status, len(text)]) + text


def check_answer(head: bytes, text: bytes) -> None:
    """Check the answer of `ANSWER_BYTES` bytes and its sentence.

    Raises:
        DestinationRefused: The far proxy did not connect.
        RemoteProtocolError: This is no answer.
    """
    if len(head) != ANSWER_BYTES or head[0] != VERSION or head[2] != len(text):
        raise RemoteProtocolError("the peer is no mstcp proxy that takes destinations")
    if head[1] != CONNECTED:
        reason = text.decode(errors="replace")
        shown = reason if reason.isprintable() and reason else f"status {head[1]}"
        raise DestinationRefused(head[1], shown)
