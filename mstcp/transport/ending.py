"""How a connection ends: closed, lost, given up, refused."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable

from mstcp import _core, sockets
from mstcp.errors import ConnectionLost, RemoteProtocolError
from mstcp.open_stream import strerror
from mstcp.transport.health import Health
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import Setup, State, wake_all
from mstcp.transport.watching import Watching

# Error codes of docs/protocol.md.
_ABORTED = 0
_PROTOCOL_ERROR = 1
_LINGER_POLL_S = 0.01
_LONGEST_POLL_S = 0.5
_LINGER_LIMIT_S = 5.0
_CLOSE_S = 30.0
"""How long a closed plain connection waits while the peer takes nothing more."""


class Ending:
    """Ends the connection, and tells the peer and the protocol why.

    Args:
        setup: Of the connection.
        state: Of the connection.
        watching: Forgets the streams.
        sender: Sends the last.
        receiver: Reads what streams still bring when they break.
        health: Ends with the connection.
        transport: What the protocol knows the connection by.
        drop: Goes on without a stream.
        take_events: Does what the core says has happened.

    Attributes:
        loan: What threads drive the connection by.
    """

    def __init__(
        self,
        setup: Setup,
        state: State,
        watching: Watching,
        sender: Sender,
        receiver: Receiver,
        health: Health,
        transport: asyncio.Transport,
        *,
        drop: Callable[[int, OSError | None], None],
        take_events: Callable[[], None],
    ) -> None:
        self._state = state
        self._watching = watching
        self._sender = sender
        self._health = health
        self._transport = transport
        self._receiver = receiver
        self._drop = drop
        self._take_events = take_events
        self._on_closed = setup.on_closed
        self.loan: _core.Loan | None = None
        self._is_gone = False
        # Those that wait for the end.
        self._end_waiters: list[asyncio.Future[None]] = []

    @property
    def farewell(self) -> bytes | None:
        """What a server tells clients that ask again, if the connection ended with everything delivered."""
        return None if self._state.mstcp is None else self._state.mstcp.farewell()

    def _say_closed(self, code: int, reason: str) -> None:
        """Tell the peer why, if a stream has room for it now."""
        self._state.core.close(code, reason)
        with contextlib.suppress(OSError):
            while (offer := self._state.core.poll(time.monotonic_ns())) is not None:
                count = self._sender.send(offer[0])
                self._state.core.sent(offer[0], max(count, 0))
                if count <= 0 or offer[1] > 1 << 10:
                    break

    def refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol, and say so."""
        self._say_closed(_PROTOCOL_ERROR, error.reason)
        self.finish(error, reset=True)

    def fail(self, error: Exception) -> None:
        """End a connection whose protocol failed: what it did not take must not be missing unseen."""
        self._fail(error, "the protocol failed to take what was received", "the application failed")

    def fail_inside(self, error: Exception) -> None:
        """End a connection of which the library itself failed."""
        self._fail(error, "the library failed; please report it", "an internal error")

    def _fail(self, error: Exception, what: str, reason: str) -> None:
        self._state.loop.call_exception_handler(
            {
                "message": f"Fatal error: {what}.",
                "exception": error,
                "transport": self._transport,
                "protocol": self._state.protocol,
            }
        )
        if not self._state.is_closed:
            self._say_closed(_ABORTED, reason)
        self.finish(error, reset=True)

    def lose(self, stream: int, error: OSError) -> None:
        """Go on without a stream that broke, or end; what it brought before is read out.

        While the protocol is being given bytes that waits until it has them.
        """
        state = self._state
        if state.is_closed or not state.is_alive(stream):
            return
        if self._receiver.delivery.is_giving:
            state.loop.call_soon(self.lose, stream, error)
            return
        if not state.is_plain:
            self._receiver.read_out(stream)
            # What came may have led to further writes, and these to the stream's end.
            if not state.is_closed and not self._receiver.is_given_up() and state.is_alive(stream):
                self._drop(stream, error)
            return
        has_all = state.core.finished and not state.streams[stream].unacknowledged_bytes()
        if state.is_closing and has_all:
            self.finish(None, reset=False)  # the peer closed first, but has everything
            return
        self.finish(ConnectionLost(error.strerror or str(error), stream), reset=True)

    def close(self) -> None:
        """Send what is queued and the end, then close; nothing more is received."""
        if self._state.is_closing:
            return
        self._state.is_closing = self._receiver.delivery.is_stopped = True
        self._sender.end()
        # What waits for threads would keep a plain stream from being read, and TCP resets what is closed so.
        self._receiver.deliver()
        self._receiver.watch_reading()
        self._linger()

    def abort(self, error: Exception | None = None) -> None:
        """Close at once, sending nothing more; the protocol is told the error."""
        if not self._state.is_closed:
            self._say_closed(_ABORTED, "the application gave the connection up")
        self.finish(error, reset=True)

    def _linger(self) -> None:
        """Have the connection end once the peer has all, or took nothing for too long."""
        if self._state.is_closed:
            return
        if self._state.mstcp is not None:
            self._state.mstcp.shut()
            self._sender.pump()
            self._take_events()
            return
        self._linger_plain(_LINGER_POLL_S, -1, self._state.loop.time())

    def _linger_plain(self, poll_s: float, left: int, since_s: float) -> None:
        """As above for plain TCP, of which no event tells what the peer's kernel has."""
        if self._state.is_closed:
            return
        stream = self._state.streams[0]
        if number := stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            # A stream that the peer has ended is not read, and so tells nothing by itself.
            self.lose(0, OSError(number, strerror(number)))
            return
        queued = self._state.core.queued_bytes
        unacknowledged = stream.unacknowledged_bytes()
        now = self._state.loop.time()
        if queued + unacknowledged != left:
            left, since_s = queued + unacknowledged, now
        limit_s = _LINGER_LIMIT_S if self._state.core.finished else _CLOSE_S
        if self._state.core.finished and not unacknowledged:
            self.finish(None, reset=False)
        elif now - since_s >= limit_s:
            reason = f"closed before the peer had everything: {queued} bytes were not sent"
            self.finish(ConnectionLost(reason) if queued else None, reset=bool(queued))
        else:
            longer_s = min(2 * poll_s, _LONGEST_POLL_S)
            self._state.loop.call_later(poll_s, self._linger_plain, longer_s, left, since_s)

    def finish(self, error: Exception | None, *, reset: bool) -> None:
        """Close the sockets and tell the application."""
        if self._state.is_closed:
            return
        if self.loan is not None:
            self.loan.finish()
        self._watching.forget_all()
        self._health.note_event("connection_closed", reason=error and str(error))
        self._health.end()
        self._state.is_closing = self._state.is_closed = self._receiver.delivery.is_stopped = True
        self._state.lost = error
        self._state.information["socket"] = self._state.information["sockets"] = None
        self._sender.wake_writers()
        self._sender.stop_timer()
        for stream in self._state.streams:
            if reset:
                sockets.reset(stream.sock)
            else:
                stream.sock.close()
        if self._state.mstcp is not None:
            # Applications keep closed connections, and so do cycles until the collector comes.
            self._state.mstcp.leave_budget()
        waiting = None if self._on_closed is None else self._on_closed()
        if waiting is None:
            self._state.loop.call_soon(self._tell_lost, error)
        else:
            waiting.add_done_callback(lambda _: self._tell_lost(error))

    def _tell_lost(self, error: Exception | None) -> None:
        self._is_gone = True
        wake_all(self._end_waiters)
        self._state.protocol.connection_lost(error)

    async def wait(self) -> None:
        """Wait until the connection is closed, and its allocation given back."""
        while not self._is_gone:
            waiter: asyncio.Future[None] = self._state.loop.create_future()
            self._end_waiters.append(waiter)
            await waiter
