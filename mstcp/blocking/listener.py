"""A listening server as a listening `socket.socket`."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from mstcp import _core
from mstcp.background import BackgroundLoop
from mstcp.blocking.bridge import Bridge, WithTimeout
from mstcp.blocking.deadline import Deadline
from mstcp.blocking.socket import Socket
from mstcp.errors import ConnectionClosed
from mstcp.open.server import Server

LOGGER = logging.getLogger("mstcp")


class Listener(WithTimeout):
    """A listening server, used as a listening `socket.socket`. Made by `create_server`."""

    def __init__(self, loop: BackgroundLoop, timeout: float | None, waiting: int) -> None:
        self._background = loop
        self._server: Server
        self._timeout = timeout
        self._most_waiting = waiting
        self._arrived = threading.Condition()
        self._waiting: deque[Bridge] = deque()
        self._closed = False
        self._watchers: list[Callable[[], None]] = []
        self._readiness: _core.Readiness | None = None

    def make_bridge(self) -> Bridge:
        """Return the protocol of a connection that comes in."""
        return Bridge(self._background, self._made)

    def serve(self, server: Server) -> None:
        """Take what this server accepts."""
        self._server = server

    def _made(self, bridge: Bridge) -> None:
        with self._arrived:
            if not self._closed and len(self._waiting) < self._most_waiting:
                self._waiting.append(bridge)
                self._arrived.notify()
                self._tell()
                return
        LOGGER.warning("a connection was turned away: %d wait for accept() already", self._most_waiting)
        bridge.closed = True
        bridge.transport.abort()

    def accept(self) -> tuple[Socket, Any]:
        """Wait for a connection; return its socket (without a timeout) and the peer's address.

        Raises:
            TimeoutError: None came in time.
            BlockingIOError: The timeout is 0 and none is there.
            ConnectionClosed: The listener was closed.
        """
        deadline = Deadline(self._timeout)
        with self._arrived:
            while not self._waiting:
                if self._closed or self._background.forked:
                    raise ConnectionClosed("the listener was closed")
                deadline.wait(self._arrived)
            bridge = self._waiting.popleft()
            self._show_readiness()
        sock = Socket(bridge, None)
        return sock, sock.getpeername()

    @contextlib.contextmanager
    def watched(self, told: Callable[[], None]) -> Iterator[None]:
        """Have a function called, in the library's thread, whenever `accept` may have to wait no more."""
        with self._arrived:
            self._watchers.append(told)
        try:
            yield
        finally:
            with self._arrived:
                self._watchers.remove(told)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `accept` would return at once; -1 once closed.

        It is an eventfd, for `select` and its kind: nothing is to be read from it.
        """
        with self._arrived:
            if self._closed or self._background.forked:
                return -1
            if self._readiness is None:
                self._readiness = _core.Readiness()
                self._show_readiness()
            return self._readiness.fileno()

    def _show_readiness(self) -> None:
        if self._readiness is not None:
            self._readiness.set(bool(self._waiting) or self._closed)

    def _tell(self) -> None:
        self._show_readiness()
        for watcher in self._watchers:
            watcher()

    def setsockopt(self, level: int, optname: int, *value: Any) -> None:
        """Set an option on the listening sockets: what is accepted from now on has it too."""
        for sock in self._server.sockets:
            sock.setsockopt(level, optname, *value)

    def getsockopt(self, level: int, optname: int, *buflen: int) -> Any:
        """Return an option of the first listening socket."""
        return self._server.sockets[0].getsockopt(level, optname, *buflen)

    def getsockname(self) -> Any:
        """Return the address it listens on (the first, if the name stands for several)."""
        if self._closed:
            raise ConnectionClosed("the listener was closed")
        return self._server.sockets[0].getsockname()

    def close(self) -> None:
        """Stop listening, and reset connections that were not accepted; those that were go on."""
        with self._arrived:
            if self._closed:
                return
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._arrived.notify_all()
            self._tell()
        if self._background.forked:
            return

        def stop() -> None:
            self._server.close()
            for bridge in left:
                bridge.transport.abort()

        self._background.call(stop)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
