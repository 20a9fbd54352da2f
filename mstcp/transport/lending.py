"""Letting threads drive a connection, which the event loop takes back when none of them uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mstcp import _core
from mstcp.errors import RemoteProtocolError
from mstcp.open_stream import strerror
from mstcp.transport.ending import Ending
from mstcp.transport.membership import Membership
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import State
from mstcp.transport.watching import Watching


class Lending:
    """Stands by while threads read and write the sockets, and acts on what they come upon.

    Args:
        state: Of the connection.
        watching: Leaves the sockets to threads.
        sender: Leaves them the core's timer.
        receiver: Leaves bytes in the core.
        membership: Does what the core told threads.
        ending: Loses the streams that broke under them.

    Attributes:
        on_change: Told when there may be bytes to receive, or room, that were not there before.
    """

    def __init__(
        self,
        state: State,
        watching: Watching,
        sender: Sender,
        receiver: Receiver,
        membership: Membership,
        ending: Ending,
    ) -> None:
        self._state = state
        self._watching = watching
        self._sender = sender
        self._receiver = receiver
        self._membership = membership
        self._ending = ending
        self.on_change: Callable[[], None] | None = None

    def lend(self, bell: _core.Bell, number: int) -> _core.Loan | None:
        """Have bytes wait in the core for threads, who ring the bell with this number.

        Returns:
            What threads use; None if the loop must carry the bytes (TLS, records).
        """
        if self._state.direct is None:
            return None
        self._receiver.delivery.is_paused = self._receiver.reads_ahead = True
        self._ending.loan = self._state.direct.lend(bell, number)
        return self._ending.loan

    def stand_by(self) -> None:
        """Watch the sockets no more, if threads have them."""
        if self._state.is_closed or self._ending.loan is None or not self._ending.loan.is_out:
            return
        self._state.is_lent = True
        self._watching.forget_all()
        self._sender.stop_timer()

    def take_back(self) -> None:
        """Watch the sockets again."""
        self._state.is_lent = False
        if not self._state.is_closed:
            self._receiver.watch_reading()
            self._membership.take_events()
            self._sender.pump()

    def attend(self) -> None:
        """Act on what threads came upon, and take the connection back unless one of them waits for it now."""
        if self._state.is_closed or self._ending.loan is None:
            return
        try:
            ended, shut, broken, events = self._ending.loan.claim()
        except RemoteProtocolError as error:
            self._ending.refuse(error)
            return
        self._state.is_lent = self._ending.loan.is_out
        for stream in _indices(shut):
            self._state.shut(stream)
        for stream, number in broken:
            self._ending.lose(stream, OSError(number, strerror(number)))
        for stream in _indices(ended):
            self._receiver.after_reading(stream, True)
        self._membership.act_on(events)
        if not self._state.is_closed and not self._receiver.is_given_up():
            self._receiver.watch_reading()
            self._sender.pump()

    def changed(self) -> None:
        """Tell threads that there may be bytes, or room."""
        if self.on_change is not None:
            self.on_change()


def _indices(streams: int) -> Iterator[int]:
    """Yield the indices of the bits that are set."""
    return (index for index in range(streams.bit_length()) if streams >> index & 1)
