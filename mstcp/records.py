"""A stream whose bytes are authenticated without TLS, for who shares a secret and has no certificates."""

from __future__ import annotations

import errno
import socket
from typing import Any

from mstcp import _core
from mstcp.errors import RemoteProtocolError

READ_BYTES = 1 << 18


class RecordStream:
    """The records of one stream (docs/protocol.md): what is changed, left out or put in on the way breaks it.

    A `mstcp.layer.StreamLayer`; it encrypts nothing.

    Attributes:
        native: The records, which the driver goes on with.
        ended: Whether the peer has ended its direction.
    """

    def __init__(self, records: _core.Records) -> None:
        self.native = records
        self.ended = False
        self._ahead = b""

    @property
    def overhead_bytes(self) -> int:
        """What a record costs."""
        return _core.RECORD_OVERHEAD_BYTES

    def encrypt(self, data: bytes) -> bytes:
        """Return the records of `data`."""
        return self.native.write(data)

    def end(self) -> bytes:
        """Return nothing: TCP's end is the end, and LAST before it is authenticated."""
        return b""

    def take_early(self) -> bytes:
        """Return what was fed before."""
        early, self._ahead = self._ahead, b""
        return early

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes that were fed; None: there are none yet, b"": the end."""
        if not self._ahead:
            return b"" if self.ended else None
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def feed(self, sock: socket.socket) -> None:
        """Read the socket for `read`."""
        if self.ended:
            return
        data = sock.recv(READ_BYTES)
        self.ended = not data
        try:
            self._ahead += self.native.read(data)
        except RemoteProtocolError as error:
            raise OSError(errno.EPROTO, str(error)) from None

    def information(self) -> dict[str, Any]:
        """Return nothing: asyncio has no name for it."""
        return {}
