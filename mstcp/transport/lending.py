"""Letting threads drive a connection, which the event loop takes back when none of them uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mstcp import _core
from mstcp.errors import RemoteProtocolError
from mstcp.open_stream import strerror
from mstcp.transport.base import Setup
from mstcp.transport.ending import Ending


class Lending(Ending):
    """Stands by while threads read and write the sockets, and acts on what they come upon."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # Told when there may be bytes to receive, or room, that were not there before.
        self.on_change: Callable[[], None] | None = None

    def lend(self, bell: _core.Bell, number: int) -> _core.Loan | None:
        """Have bytes wait in the core for threads, who ring the bell with this number.

        Returns:
            What threads use; None if the loop must carry the bytes (TLS, records, plain TCP).
        """
        if self._direct is None:
            return None
        self._delivery.is_paused = True
        self._loan = self._direct.lend(bell, number)
        return self._loan

    def stand_by(self) -> None:
        """Watch the sockets no more, if threads have them."""
        if self._closed or self._loan is None or not self._loan.is_out:
            return
        self._is_lent = True
        for index in range(len(self._streams)):
            self._unwatch(index)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._timer_ns = None

    def take_back(self) -> None:
        """Watch the sockets again."""
        self._is_lent = False
        if not self._closed:
            self._watch_reading()
            self._take_events()
            self._pump()

    def attend(self) -> None:
        """Act on what threads came upon, and take the connection back unless one of them waits for it now."""
        if self._closed or self._loan is None:
            return
        try:
            ended, shut, broken, events = self._loan.claim()
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        self._is_lent = self._loan.is_out
        for stream in _indices(shut):
            self._shut_streams |= 1 << stream
            self._streams[stream].shut()
        for stream, number in broken:
            self._lose(stream, OSError(number, strerror(number)))
        for stream in _indices(ended):
            self._after_reading(stream, True)
        self._act_on(events)
        if not self._closed and not self._is_given_up():
            self._watch_reading()
            self._pump()

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()


def _indices(streams: int) -> Iterator[int]:
    """Yield the indices of the bits that are set."""
    return (index for index in range(streams.bit_length()) if streams >> index & 1)
