"""What may lie between a stream's frames and its socket: TLS, or records that authenticate them."""

from __future__ import annotations

import socket
from typing import Any, Protocol


class StreamLayer(Protocol):
    """Changes the bytes of one stream on their way to and from its socket, which is non-blocking."""

    @property
    def native(self) -> object:
        """What the driver uses: records of the core, or an object that encrypts and decrypts (TlsStream)."""

    @property
    def overhead_bytes(self) -> int:
        """What it adds to each frame, about."""

    @property
    def ended(self) -> bool:
        """Whether the peer has ended its direction."""

    def encrypt(self, data: bytes) -> bytes:
        """Return what stands for `data` on the wire."""

    def end(self) -> bytes:
        """Return what ends this direction on the wire, if the layer has an end of its own."""

    def take_early(self) -> bytes:
        """Return what was fed and not read."""

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes that were fed; None: there are none yet, b"": the end."""

    def feed(self, sock: socket.socket) -> None:
        """Read the socket for `read`."""

    def information(self) -> dict[str, Any]:
        """Return what asyncio's transports tell of it."""
