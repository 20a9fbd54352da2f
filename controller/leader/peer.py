"""Notices the end of the leader's process: its connections end, and nobody listens there any more.

A machine that is cut off or without power says nothing; then the leader's lease ends.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from controller.address import Address
from controller.model.records import Holder

_CONNECT_S = 1.0
_POLL_S = 0.2
_RETRY_S = 0.5


class Peer:
    """Holds a connection to where the leader serves REST.

    `gone` is called with the leader's epoch when its machine says that nobody listens there.
    """

    def __init__(self, gone: Callable[[int], None]) -> None:
        self._gone = gone
        self._wanted: Holder | None = None
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controller-peer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def follow(self, holder: Holder | None) -> None:
        """Watch this leader from now on; None: none."""
        if holder != self._wanted:
            self._wanted = holder
            self._changed.set()

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            holder = self._wanted
            while holder is not None and holder == self._wanted:
                if self._watch(holder):
                    self._gone(holder.epoch)
                self._changed.wait(_RETRY_S)

    def _watch(self, holder: Holder) -> bool:
        """Stay connected as long as it goes; returns whether nobody listens any more."""
        place = Address.parse(holder.rest)
        try:
            with socket.create_connection((place.host, place.port), _CONNECT_S) as connection:
                connection.settimeout(_POLL_S)
                while holder == self._wanted:
                    try:
                        if not connection.recv(1):
                            break
                    except TimeoutError:
                        continue
        except OSError:
            pass
        try:
            with socket.create_connection((place.host, place.port), _CONNECT_S):
                return False  # it has only had enough of this connection
        except OSError as error:
            return isinstance(error, ConnectionRefusedError)
