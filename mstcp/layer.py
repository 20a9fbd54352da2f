"""What may lie between a stream's frames and its socket: TLS, or records that authenticate them."""

from __future__ import annotations

import socket
from typing import Any, Protocol


class StreamLayer(Protocol):
    """Changes the bytes of one stream on their way to and from its socket, which is non-blocking."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the socket has not taken."""

    @property
    def overhead_bytes(self) -> int:
        """What it adds to each frame, about."""

    def encrypt(self, data: bytes) -> bytes:
        """Return what stands for `data` on the wire; for what is sent by other means."""

    def send(self, sock: socket.socket, data: bytes) -> int:
        """Send all of `data`, or nothing (0) while earlier bytes wait; OSError if the stream broke."""

    def flush(self, sock: socket.socket) -> bool:
        """Send what waits; return whether nothing waits any more. OSError if TCP broke."""

    def end(self, sock: socket.socket) -> None:
        """Send the end of this direction, if the layer has one of its own."""

    def receive(self, sock: socket.socket) -> tuple[bytes, bool]:
        """Read the socket once; return what came and whether the peer has ended its direction.

        Raises:
            OSError: TCP broke, or the bytes were altered.
        """

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes that were fed; None: there are none yet, b"": the end."""

    def feed(self, sock: socket.socket) -> None:
        """Read the socket for `read`."""

    def information(self) -> dict[str, Any]:
        """Return what asyncio's transports tell of it."""
