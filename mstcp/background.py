"""One event loop in a thread of its own, which carries all blocking connections of the process."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mstcp import _core
from mstcp.errors import ConnectionClosed
from mstcp.open.handovers import Handovers

if TYPE_CHECKING:
    from mstcp.transport import ConnectionTransport

T = TypeVar("T")

FORKED = "the connection was opened before a fork and stays with the parent process"
EXIT_S = 6.0
"""How long the end of the process waits for bytes that closed connections have not brought over."""


class BackgroundLoop:
    """An event loop that runs in a daemon thread until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.handovers = Handovers(self.loop)
        self.transports: weakref.WeakSet[ConnectionTransport] = weakref.WeakSet()
        self.forked = False
        self._thread = threading.Thread(target=self._run, name="mstcp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine there and wait for its result; TimeoutError if that takes too long.

        When the wait ends early, by the timeout or by Ctrl-C, the coroutine is cancelled.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call within mstcp's own thread would wait for itself")
        future = self.start(coroutine)
        try:
            return future.result(timeout)
        except BaseException as error:
            if future.done() and not future.cancelled() and future.exception() is error:
                raise
            future.cancel()
            if isinstance(error, (concurrent.futures.TimeoutError, TimeoutError)):
                raise TimeoutError("timed out") from None
            raise

    def start(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine there; return the future of its result."""
        if self.forked:
            coroutine.close()
            raise ConnectionClosed(FORKED)
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, function: Callable[[], T]) -> T:
        """Run a function there and return what it returns."""

        async def called() -> T:
            return function()

        return self.run(called())

    def close(self) -> None:
        """Close all connections and wait until the peers have everything; for the end of the process.

        Afterwards no thread of the library runs: one that asks an ending interpreter to go on aborts it.
        """
        if self.forked:
            return
        _core.keep_waiting_threads()

        async def closed() -> None:
            transports = list(self.transports)
            for transport in transports:
                transport.close()
            if transports:
                await asyncio.wait(
                    [asyncio.ensure_future(transport.wait_closed()) for transport in transports],
                    timeout=EXIT_S,
                )

        self.run(closed())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(EXIT_S)

    def disown(self) -> None:
        """Close this process's copies of the sockets, after a fork; the parent's connections go on."""
        self.forked = True
        for transport in list(self.transports):
            for sock in transport.get_extra_info("sockets") or ():
                descriptor = sock.detach()
                if descriptor >= 0:
                    os.close(descriptor)


_background: BackgroundLoop | None = None
_lock = threading.Lock()


def background() -> BackgroundLoop:
    """Return the process's background loop; the first call starts it."""
    global _background
    with _lock:
        if _background is None:
            _background = BackgroundLoop()
            atexit.register(_background.close)
        return _background


def _after_fork() -> None:
    """Forget the parent's loop: its thread is not in this process."""
    global _background, _lock
    _lock = threading.Lock()
    parents, _background = _background, None
    if parents is not None:
        parents.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
