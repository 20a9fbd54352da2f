"""One thread that reads and writes the connections of all switches."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from controller.logs import SparingLog
from controller.openflow.connection import Connection
from controller.openflow.decoding import Malformed

LOG = logging.getLogger("controller.openflow")

_CHECK_INTERVAL_S = 0.5


class Reactor:
    """Serves connections until they end; `call`, `add`, `want_write` and `stop` may be used by any thread.

    `begin` is called with each connection before it is served, `end` with each that has ended, `after_round`
    when all that had something have been served, `tick` with the time, twice a second.
    """

    def __init__(
        self,
        begin: Callable[[Connection], None] = lambda _: None,
        end: Callable[[Connection], None] = lambda _: None,
        after_round: Callable[[], None] = lambda: None,
        tick: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._begin = begin
        self._ended = end
        self._after_round = after_round
        self._tick = tick
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        self._new: deque[Connection] = deque()
        self._writers: deque[Connection] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        # In the order of their arrival: a set of objects has that of their addresses in memory.
        self._connections: dict[Connection, None] = {}
        self._log = SparingLog(LOG)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="controller-openflow", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def call(self, call: Callable[[], None]) -> None:
        """Do something in the thread that serves."""
        self._calls.append(call)
        self._wake()

    def add(self, connection: Connection) -> None:
        """Serve a connection from now on."""
        self._new.append(connection)
        self._wake()

    def want_write(self, connection: Connection) -> None:
        """Write what a connection has unsent as soon as its socket takes it."""
        self._writers.append(connection)
        self._wake()

    def stop(self, drain_s: float) -> None:
        """End all connections, once what is unsent has been sent or the time is over."""
        for connection in list(self._connections):
            connection.drain(drain_s)
        self._stopping = True
        self._wake()
        if self._thread.is_alive():
            self._thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it wakes anyway
            os.write(self._wake_writer, b"\0")

    def _run(self) -> None:
        check_at = time.monotonic() + _CHECK_INTERVAL_S
        while not self._stopping:
            for key, events in self._selector.select(max(0.0, check_at - time.monotonic())):
                if key.data is None:
                    os.read(self._wake_reader, 1 << 16)
                else:
                    self._serve(key.data, events)
            self._take_new()
            while self._calls:
                self._calls.popleft()()
            if (now := time.monotonic()) >= check_at:
                check_at = now + _CHECK_INTERVAL_S
                self._tick(now)
                for connection in list(self._connections):
                    self._guarded(connection, partial(connection.check, now))
            self._after_round()
        for connection in list(self._connections):
            self._end(connection)

    def _take_new(self) -> None:
        while self._new:
            connection = self._new.popleft()
            self._connections[connection] = None
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            self._guarded(connection, partial(self._begin, connection))
        while self._writers:
            connection = self._writers.popleft()
            if connection in self._connections:
                self._guarded(connection, partial(self._write, connection))

    def _serve(self, connection: Connection, events: int) -> None:
        if connection not in self._connections:
            return
        if events & selectors.EVENT_WRITE:
            self._guarded(connection, partial(self._write, connection))
        if events & selectors.EVENT_READ and connection in self._connections:
            self._guarded(connection, partial(self._read, connection))

    def _read(self, connection: Connection) -> None:
        if not connection.read():
            self._end(connection)

    def _write(self, connection: Connection) -> None:
        has_more = connection.write()
        if connection.is_over:
            self._end(connection)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if has_more else 0)
        self._selector.modify(connection.socket, wanted, connection)

    def _guarded(self, connection: Connection, call: Callable[[], None]) -> None:
        """Do something for a connection; what goes wrong ends it and no other."""
        try:
            call()
        except Malformed as error:
            self._log.warning(
                str(error), "the switch at %s is disconnected: it sent %s", connection.address, error
            )
            self._end(connection)
        except Exception:
            LOG.exception("the connection of datapath %s (%s) failed", connection.id, connection.address)
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            self._selector.unregister(connection.socket)
            connection.close()
            connection.socket.close()
            connection.is_known()
            self._ended(connection)
