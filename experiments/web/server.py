"""Serves the page on loopback, in a thread of its own, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import uvicorn

from controller.api.connections import abort_connections
from experiments.errors import ExperimentError, MissingRequirement
from experiments.web.app import PAGE, Content, make_app

LOOPBACK = "127.0.0.1"
ANY_PORT = 0
NICENESS = 10
"""What is measured goes first."""
START_S = 30.0
GRACE_S = 1
"""For running answers, once it is to stop."""
RELOAD_S = 3.0
"""How long a page may be away before it is taken to be closed."""
POLL_S = 0.1


@dataclass(eq=False)
class PortTaken(ExperimentError):
    """The page cannot be served on the port that was asked for."""

    port: int
    reason: str

    def __str__(self) -> str:
        return (
            f"The page cannot be served on port {self.port}: {self.reason}. "
            "Name another one, or leave the option out for any that is free."
        )


class PageServer:
    """A context manager that serves a content on a port of 127.0.0.1, 0 for any that is free.

    Raises:
        PortTaken: the port cannot be used.
        MissingRequirement: the page has not been built into the package.
    """

    def __init__(self, content: Content, port: int = ANY_PORT) -> None:
        if not (PAGE / "page.js").exists():
            raise MissingRequirement("The page is not part of this installation.", "Build it: make web")
        self._content = content
        self._token = secrets.token_urlsafe(24)
        self._socket = _listen(port)
        self._port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._server = uvicorn.Server(
            uvicorn.Config(
                make_app(content, self._token, [f"{name}:{self._port}" for name in (LOOPBACK, "localhost")]),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self._port}/#token={self._token}"

    def __enter__(self) -> PageServer:
        self._thread.start()
        deadline_s = time.monotonic() + START_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._content.readers.close)
        self._server.should_exit = True
        self._thread.join(GRACE_S + 2)
        self._socket.close()

    def wake(self) -> None:
        """Let pages have what is new; called by any thread."""
        self._call(self._content.readers.wake)

    @property
    def has_pages(self) -> bool:
        """Whether a page is open."""
        return self._content.readers.count > 0

    def wait_for_pages(self) -> None:
        """Wait until no page has been open for a moment."""
        seen_s = time.monotonic()
        while self._thread.is_alive() and time.monotonic() - seen_s < RELOAD_S:
            time.sleep(POLL_S)
            if self.has_pages:
                seen_s = time.monotonic()

    def wait(self) -> None:
        """Wait until the thread ends, which it does by a fault alone."""
        while self._thread.is_alive():
            self._thread.join(1)

    def _call(self, function: Callable[[], None]) -> None:
        """Let the server's loop call something, unless it has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        # Of this thread alone (Linux).
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        await self._server.serve(sockets=[self._socket])
        await abort_connections(self._server)


def _listen(port: int) -> socket.socket:
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LOOPBACK, port))
        sock.listen()
    except OSError as error:
        sock.close()
        raise PortTaken(port, error.strerror or str(error)) from None
    return sock
