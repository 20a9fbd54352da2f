"""How a connection ends: closed, lost, given up, refused."""

from __future__ import annotations

import asyncio
import contextlib
import time

from mstcp import sockets
from mstcp.errors import ConnectionLost, RemoteProtocolError
from mstcp.transport.base import Setup, wake_all
from mstcp.transport.membership import Membership

# Error codes of docs/protocol.md.
ABORTED = 0
_PROTOCOL_ERROR = 1
_LINGER_POLL_S = 0.01
_LONGEST_POLL_S = 0.5
_LINGER_LIMIT_S = 5.0
_CLOSE_S = 30.0
"""How long a closed plain connection waits while the peer takes nothing more."""


class Ending(Membership):
    """Ends the connection, and tells the peer and the protocol why."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._on_closed = setup.on_closed
        self._lost: BaseException | None = None
        self._is_gone = False
        # Those that wait for the end.
        self._end_waiters: list[asyncio.Future[None]] = []

    @property
    def is_closed(self) -> bool:
        """Whether the connection is over, and takes no stream any more."""
        return self._closed

    @property
    def farewell(self) -> bytes | None:
        """What a server tells clients that ask again, if the connection ended with everything delivered."""
        return None if self._mstcp is None else self._mstcp.farewell()

    def _say_closed(self, code: int, reason: str) -> None:
        """Tell the peer why, if a stream has room for it now."""
        self._core.close(code, reason)
        with contextlib.suppress(OSError):
            while (offer := self._core.poll(time.monotonic_ns())) is not None:
                count = self._send(offer[0])
                self._core.sent(offer[0], max(count, 0))
                if count <= 0 or offer[1] > 1 << 10:
                    break

    def _refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol, and say so."""
        self._say_closed(_PROTOCOL_ERROR, error.reason)
        self._finish(error, reset=True)

    def _fail(self, error: Exception) -> None:
        self._loop.call_exception_handler(
            {
                "message": "Fatal error: the protocol failed to take what was received.",
                "exception": error,
                "transport": self,
                "protocol": self._protocol,
            }
        )
        if not self._closed:
            self._say_closed(ABORTED, "the application failed")
        self._finish(error, reset=True)

    def _lose(self, stream: int, error: OSError) -> None:
        if self._closed or not self._core.alive >> stream & 1:
            return
        if self._delivery.is_giving:
            self._loop.call_soon(self._lose, stream, error)
            return
        if not self._is_plain:
            self._read_out(stream)
            # What came may have led to further writes, and these to the stream's end.
            if not self._closed and not self._is_given_up() and self._core.alive >> stream & 1:
                self._drop(stream, error)
            return
        if self._closing and self._core.finished and not self._streams[stream].unacknowledged_bytes():
            self._finish(None, reset=False)  # the peer closed first, but has everything
            return
        self._finish(ConnectionLost(error.strerror or str(error), stream), reset=True)

    def _linger(self) -> None:
        """Have the connection end once the peer has all, or took nothing for too long."""
        if self._closed:
            return
        if self._mstcp is not None:
            self._mstcp.shut()
            self._pump()
            self._take_events()
            return
        self._linger_plain(_LINGER_POLL_S, -1, self._loop.time())

    def _linger_plain(self, poll_s: float, left: int, since_s: float) -> None:
        """As above for plain TCP, of which no event tells what the peer's kernel has."""
        if self._closed:
            return
        queued = self._core.queued_bytes
        unacknowledged = self._streams[0].unacknowledged_bytes()
        now = self._loop.time()
        if queued + unacknowledged != left:
            left, since_s = queued + unacknowledged, now
        limit_s = _LINGER_LIMIT_S if self._core.finished else _CLOSE_S
        if self._core.finished and not unacknowledged:
            self._finish(None, reset=False)
        elif now - since_s >= limit_s:
            reason = f"closed before the peer had everything: {queued} bytes were not sent"
            self._finish(ConnectionLost(reason) if queued else None, reset=bool(queued))
        else:
            longer_s = min(2 * poll_s, _LONGEST_POLL_S)
            self._loop.call_later(poll_s, self._linger_plain, longer_s, left, since_s)

    def _finish(self, error: Exception | None, *, reset: bool) -> None:
        if self._closed:
            return
        if self._loan is not None:
            self._loan.finish()
        for index in range(len(self._streams)):
            self._unwatch(index)
        self._note_event("connection_closed", reason=error and str(error))
        self._end_health()
        self._closing = self._closed = self._delivery.is_stopped = True
        self._lost = error
        self._information["socket"] = self._information["sockets"] = None
        self._wake_writers()
        if self._timer is not None:
            self._timer.cancel()
        for stream in self._streams:
            if reset:
                sockets.reset(stream.sock)
            else:
                stream.sock.close()
        waiting = None if self._on_closed is None else self._on_closed()
        if waiting is None:
            self._loop.call_soon(self._tell_lost, error)
        else:
            waiting.add_done_callback(lambda _: self._tell_lost(error))

    def _tell_lost(self, error: Exception | None) -> None:
        self._is_gone = True
        wake_all(self._end_waiters)
        self._protocol.connection_lost(error)
