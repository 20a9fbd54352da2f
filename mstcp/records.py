"""A stream whose bytes are authenticated without TLS, for who shares a secret and has no certificates."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Any

from mstcp import _core
from mstcp.errors import RemoteProtocolError

READ_BYTES = 1 << 18


class RecordStream:
    """The records of one stream (docs/protocol.md): what is changed, left out or put in on the way breaks it.

    A `mstcp.layer.StreamLayer`; it encrypts nothing.
    """

    def __init__(self, records: _core.Records) -> None:
        self._records = records
        self._unsent = memoryview(b"")
        self._ahead = b""
        self._ended = False

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the socket has not taken."""
        return len(self._unsent)

    @property
    def overhead_bytes(self) -> int:
        """What a record costs."""
        return _core.RECORD_OVERHEAD_BYTES

    def encrypt(self, data: bytes) -> bytes:
        """Return the records of `data`."""
        return self._records.write(data)

    # --- sending --------------------------------------------------------------------------------------------
    def send(self, sock: socket.socket, data: bytes) -> int:
        """Send all of `data`, or nothing (0) while earlier bytes wait; OSError if TCP broke."""
        if not self.flush(sock):
            return 0
        self._unsent = memoryview(self._records.write(data))
        self.flush(sock)
        return len(data)

    def flush(self, sock: socket.socket) -> bool:
        """Send what waits; return whether nothing waits any more. OSError if TCP broke."""
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while self._unsent:
                self._unsent = self._unsent[sock.send(self._unsent) :]
        return not self._unsent

    def end(self, sock: socket.socket) -> None:
        """Send what waits: TCP's end is the end, and LAST before it is authenticated."""
        self.flush(sock)

    # --- receiving ------------------------------------------------------------------------------------------
    def receive(self, sock: socket.socket) -> tuple[bytes, bool]:
        """Read the socket once; return what came and whether the peer has ended its direction.

        Raises:
            OSError: TCP broke, or something came that the peer did not send.
        """
        with contextlib.suppress(BlockingIOError, InterruptedError):
            self.feed(sock)
        data, self._ahead = self._ahead, b""
        return data, self._ended

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes that were fed; None: there are none yet, b"": the end."""
        if not self._ahead:
            return b"" if self._ended else None
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def feed(self, sock: socket.socket) -> None:
        """Read the socket for `read`."""
        if self._ended:
            return
        data = sock.recv(READ_BYTES)
        self._ended = not data
        try:
            self._ahead += self._records.read(data)
        except RemoteProtocolError as error:
            raise OSError(errno.EPROTO, str(error)) from None

    def information(self) -> dict[str, Any]:
        """Return nothing: asyncio has no name for it."""
        return {}
