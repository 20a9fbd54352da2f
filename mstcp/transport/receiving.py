"""From the sockets through the core to the protocol."""

from __future__ import annotations

import errno
import time
from typing import Protocol

from mstcp import _core
from mstcp.errors import ConnectionLost, RemoteProtocolError
from mstcp.open_stream import OpenStream, errno_of, strerror
from mstcp.transport.delivery import Delivery
from mstcp.transport.sending import Sender
from mstcp.transport.state import NOT_NOW, State
from mstcp.transport.watching import Watching


class Course(Protocol):
    """What becomes of the connection by what it receives."""

    def lose(self, stream: int, error: OSError) -> None:
        """Go on without a stream that broke, or end."""

    def drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""

    def refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol."""

    def fail(self, error: Exception) -> None:
        """End a connection whose protocol failed."""

    def finish(self, error: Exception | None, *, reset: bool) -> None:
        """Close the sockets and tell the application."""

    def close(self) -> None:
        """Close, as the protocol answered to the peer's end."""

    def changed(self) -> None:
        """Note that there may be bytes to receive that were not there before."""


class Receiver:
    """Reads the streams and gives the protocol what is in order.

    Args:
        state: Of the connection.
        watching: Has the loop call `on_readable`.
        sender: Sends what follows from what was received.
        course: Told how the connection goes on.

    Attributes:
        reads_ahead: What comes waits in the core for threads, where the protocol takes nothing itself.
    """

    def __init__(self, state: State, watching: Watching, sender: Sender, course: Course) -> None:
        self._state = state
        self._watching = watching
        self._sender = sender
        self._course = course
        self.reads_ahead = False
        self.delivery = Delivery(state.protocol, course.fail)

    def expect_decrypted(self, index: int, stream: OpenStream) -> None:
        """Read what came with the hello and was decrypted: no socket tells of it."""
        if stream.layer is not None:
            self._state.loop.call_soon(self.on_readable, index)

    def watch_reading(self) -> None:
        """Have the loop watch just the streams that may be read."""
        pauses = self.delivery.is_paused and not self._state.is_closing
        is_held = self._state.is_plain and pauses and not self.reads_ahead
        stands_by = self._state.is_closed or self._state.is_lent or is_held
        wanted = 0 if stands_by else self._state.core.readable & ~self._state.ended_streams
        self._watching.watch_readers(wanted)

    def on_readable(self, stream: int) -> None:
        """Read a stream that may have bytes."""
        if not self._watching.readers >> stream & 1:
            return
        if self._state.direct is not None:
            self._exchange(self._state.direct, stream)
            if self.delivery.is_paused:
                self._course.changed()
                if self._state.is_plain:
                    self.watch_reading()
            return
        try:
            count = self._receive(stream)
            if count < 0:
                self._note_failure(stream, -count)
                return
        except RemoteProtocolError as error:
            self._course.refuse(error)
            return
        self.deliver()
        self.after_reading(stream, count == 0)

    def _exchange(self, core: _core.Connection, stream: int) -> None:
        """Read, deliver and send by one call of the core."""
        deliver = self._state.is_closing or not self.delivery.is_paused
        try:
            count, data, is_end, outcome = core.exchange(time.monotonic_ns(), stream, deliver)
        except RemoteProtocolError as error:
            self._course.refuse(error)
            return
        if count < 0:
            self._note_failure(stream, -count)
            return
        if outcome is not None:
            if outcome[4] is not None and data and not self._state.is_closing:
                # A stream broke: what it still brings comes after this.
                self.delivery.give(data)
                data = []
            if not self._state.is_closed:
                self._sender.note(outcome)
        if data and not self._state.is_closing:
            self.delivery.give(data)
            if core.ready_bytes and not self._state.is_closed:
                self.deliver()
                self._sender.pump()
        if is_end:
            self._deliver_end()
            self.after_reading(stream, count == 0)

    def _note_failure(self, stream: int, number: int) -> None:
        """Lose a stream that could not be read, unless it only has nothing now."""
        if number not in NOT_NOW:
            self._course.lose(stream, OSError(number, strerror(number)))

    def after_reading(self, stream: int, stream_ended: bool) -> None:
        """Look after the end of the stream or of the connection, and send."""
        if stream_ended:
            self._state.ended_streams |= 1 << stream
            self.watch_reading()
            if self._state.is_plain:
                self._state.core.stream_end(stream)
                self.deliver()
        if self._state.is_closed or self.is_given_up():
            return
        if stream_ended and not self._state.is_plain:
            self._course.drop(stream, None)
        else:
            self._sender.pump()

    def is_given_up(self) -> bool:
        """End the connection if the peer has said that it gave up."""
        told = self._state.core.closed_by_peer
        if told is not None and not self._state.is_closed:
            self._course.finish(ConnectionLost(told[1] or f"the peer gave up (code {told[0]})"), reset=True)
        return told is not None

    def read_out(self, stream: int) -> None:
        """Take what came before a stream broke: it may say why."""
        try:
            while self._receive(stream) > 0:
                pass
        except RemoteProtocolError as error:
            self._course.refuse(error)
            return
        self.deliver()

    def _receive(self, stream: int) -> int:
        """Read once into the core; return how much came, 0 at the end, or an errno below 0."""
        layer = self._state.streams[stream].layer
        if layer is None:
            return self._state.core.receive_from(stream)
        try:
            data, ended = layer.receive(self._state.streams[stream].sock)
        except OSError as error:
            return -errno_of(error)
        if layer.unsent_bytes:
            self._watching.watch_writer(stream)
        if data:
            self._state.core.receive(stream, data)
            if ended:
                self._state.loop.call_soon(self.on_readable, stream)
        return len(data) if data or ended else -errno.EAGAIN

    def resume(self) -> None:
        """Go on where the protocol paused."""
        if not self.delivery.is_paused and not self._state.is_closed:
            self.watch_reading()
            self.deliver()
            self._sender.pump()

    def deliver(self) -> None:
        """Give the application what is in order; while it does not read, the window closes."""
        core, delivery = self._state.core, self.delivery
        while (core.ready_bytes or delivery.held) and (self._state.is_closing or not delivery.is_paused):
            delivery.give(core.take())
        self._deliver_end()

    def _deliver_end(self) -> None:
        """Tell the application that the peer's bytes have ended, once."""
        if self._state.core.ended and self.delivery.give_end():
            self._course.close()
