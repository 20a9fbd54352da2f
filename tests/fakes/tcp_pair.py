"""Both ends of a TCP connection."""

from __future__ import annotations

import socket


def connected() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection on loopback, in blocking mode."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return near, far
