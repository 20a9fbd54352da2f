"""Applies what a connection's driver says to an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mstcp import _core
from mstcp.errors import ConnectionClosed, ConnectionLost, LocalProtocolError
from mstcp.streams import StreamSpec
from mstcp.transport.delivery import Delivery
from mstcp.transport.open_stream import OpeningStream, OpenStream, strerror
from mstcp.transport.setup import Setup, wake_all

if TYPE_CHECKING:
    from mstcp.stream_requests import StreamRequest
    from mstcp.transport.connection import ConnectionTransport

# An error code of docs/protocol.md.
_ABORTED = 0


class Shell:
    """One connection in an event loop: watches the sockets, and tells the protocol what comes and the end.

    Args:
        setup: Of the connection.
        transport: What the protocol knows the connection by; told of streams and of the end.

    Attributes:
        core: The driver, which has the connection's behaviour.
        streams: By index in the core; those that are gone stay until another takes their place.
        specs: Of a client: what its streams are to be, by the driver's numbers.
        is_started: The protocol has been told of the connection.
        delivery: Gives the protocol what is in order.
        is_paused: The protocol was told to write nothing now.
        is_closing: The connection was closed, or is over.
        is_closed: It is over.
        lost: Why it is over, if it was not closed.
        information: What `get_extra_info` knows.
        waiter: What threads drive the connection by.
        on_unreachable: Told which stream, by its number, could not be opened at first.
        on_change: Told when there may be bytes to receive, or room, that were not there before.
    """

    def __init__(self, setup: Setup, transport: ConnectionTransport) -> None:
        self.loop = setup.loop
        self.core = setup.core
        self.is_plain = setup.core.is_plain
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self.protocol: asyncio.Protocol = setup.protocol  # type: ignore[assignment]
        self.streams: list[OpenStream] = []
        self.is_client = setup.specs is not None
        self.specs: dict[int, StreamSpec] = dict(setup.specs or {})
        self.is_started = False
        self.delivery = Delivery(setup.protocol, self.fail)
        self.is_paused = False
        self.is_closing = False
        self.is_closed = False
        self.lost: BaseException | None = None
        self.information: dict[str, Any] = dict(setup.extra)
        self.waiter: _core.Waiter | None = None
        self.on_unreachable: Callable[[int, Exception | None], None] | None = None
        self.on_change: Callable[[], None] | None = None
        self._transport = transport
        self._on_closed = setup.on_closed
        # By the driver's numbers.
        self._sockets: dict[int, OpenStream | OpeningStream] = {}
        self._actions: list[_core.Action] = []
        self._is_applying = False
        self._timer: asyncio.TimerHandle | None = None
        self._lost_reason = ConnectionLost("no stream is left")
        # Given by who ends the connection, in the place of what the driver says.
        self._given: tuple[Exception | None] | None = None
        self._is_gone = False
        # An idle connection has lists of those that wait: each `asyncio.Event` would cost it 0.7 KB.
        self._room_waiters: list[asyncio.Future[None]] = []
        self._end_waiters: list[asyncio.Future[None]] = []
        self._join_waiters: list[asyncio.Future[None]] = []
        # Further streams that are awaited, by the driver's numbers.
        self._added: dict[int, asyncio.Future[int]] = {}
        self._opened: asyncio.Future[None] | None = setup.loop.create_future() if self.is_client else None
        for action in self.core.actions():
            if action.kind == "joined":
                self._adopt(action)
            else:
                self._actions.append(action)
        self._note_sockets()

    # --- what the driver says -------------------------------------------------------------------------------
    def _note_sockets(self) -> None:
        """Have `get_extra_info` tell of the streams' sockets; the first stream stands for all."""
        if not self.streams:
            return
        if "socket" not in self.information:
            first = self.streams[0]
            own = self.information
            self.information = socket_extra(first.sock)
            if first.tls is not None:
                self.information |= first.tls.information()
            self.information |= own
        self.information["sockets"] = tuple(stream.sock for stream in self.streams)

    def _adopt(self, action: _core.Action) -> None:
        """Have a stream that the driver has opened; its socket is Python's from now on."""
        family = socket.AF_INET6 if action.is_ipv6 else socket.AF_INET
        # That it does not block need not be set again.
        kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
        sock = socket.socket(family, kind, socket.IPPROTO_TCP, fileno=action.descriptor)
        stream = OpenStream(sock, self._spec_of(action, sock), action.number, action.layer)
        if (opening := self._sockets.get(action.socket)) is not None:
            stream.is_read, stream.is_written = opening.is_read, opening.is_written
        # A new slot, or that of a stream that is gone.
        self.streams[action.stream : action.stream + 1] = [stream]
        self._sockets[action.socket] = stream

    def _spec_of(self, action: _core.Action, sock: socket.socket) -> StreamSpec:
        """Return what is known of a stream that was opened: here, or by the peer."""
        if not self.is_client:
            return StreamSpec(source_port=peer_port(sock))
        host, port = sock.getsockname()[:2]
        asked = self.specs.get(action.number)
        if asked is None:  # it goes from one of this host's interfaces
            asked = StreamSpec(rate_bps=action.rate_bps, priority=action.priority, local=host)
        spec = self.specs[action.number] = replace(asked, source_port=port)
        return spec

    def _join(self, action: _core.Action) -> None:
        self._adopt(action)
        self._note_sockets()
        self._transport.note_joined(action.stream)
        if (added := self._added.pop(action.number, None)) is not None and not added.done():
            added.set_result(action.stream)

    def due(self) -> None:
        """Do what is due."""
        self.core.due(time.monotonic_ns())
        self.apply()

    def settle(self) -> None:
        """Send what the core has queued, and do what follows."""
        self.core.settle(time.monotonic_ns())
        self.apply()

    def apply(self) -> None:
        """Do what the driver says, in its order; what that leads to is done after it."""
        for action in self.core.actions():
            if action.kind in ("pause", "resume"):
                # The protocol may be writing just now, and is to know.
                self._control_flow(action.kind == "pause")
            else:
                self._actions.append(action)
        if self._is_applying or self.delivery.is_giving:
            return
        self._is_applying = True
        try:
            while self._actions:
                action = self._actions.pop(0)
                _APPLY[action.kind](self, action)
        finally:
            self._is_applying = False
        if self._join_waiters and (self.is_closed or not self.core.is_joining):
            wake_all(self._join_waiters)

    def _watch(self, action: _core.Action) -> None:
        loop = self.loop
        stream = self._sockets.get(action.socket)
        if stream is None:
            stream = self._sockets[action.socket] = OpeningStream(action.descriptor)
        if action.for_bytes and not stream.is_read:
            loop.add_reader(stream.descriptor, self._on_readable, action.socket)
        elif stream.is_read and not action.for_bytes:
            loop.remove_reader(stream.descriptor)
        if action.for_room and not stream.is_written:
            loop.add_writer(stream.descriptor, self._on_writable, action.socket)
        elif stream.is_written and not action.for_room:
            loop.remove_writer(stream.descriptor)
        stream.is_read, stream.is_written = action.for_bytes, action.for_room

    def _unwatch(self, action: _core.Action) -> None:
        stream = self._sockets.pop(action.socket)
        if stream.is_read:
            self.loop.remove_reader(stream.descriptor)
        if stream.is_written:
            self.loop.remove_writer(stream.descriptor)
        stream.is_read = stream.is_written = False
        stream.close()

    def _on_readable(self, number: int) -> None:
        delivers = self.is_started and not (self.delivery.is_paused or self.is_closing)
        data = self.core.readable(time.monotonic_ns(), number, delivers)
        if data:
            self.delivery.give(data)
        self.apply()

    def _on_writable(self, number: int) -> None:
        self.core.writable(time.monotonic_ns(), number)
        self.apply()

    def _arm(self, action: _core.Action) -> None:
        self._stop_timer()
        self._timer = self.loop.call_at(action.due_ns * 1e-9 + 1e-4, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self.due()

    def _open(self, _: _core.Action) -> None:
        if (connection_id := self.core.connection_id) is not None:
            self.information.setdefault("connection_id", connection_id)
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    async def wait_opened(self) -> None:
        """Wait until the driver has opened a client's connection.

        Raises:
            MstcpError, OSError: It could not.
        """
        self.apply()
        if self._opened is not None:
            await self._opened

    async def wait_joined(self, timeout_s: float) -> None:
        """Wait until the other streams are open, or could not be opened, but not longer than this."""
        deadline = self.loop.time() + timeout_s
        while self.core.is_joining and not self.is_closed and (left_s := deadline - self.loop.time()) > 0:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._join_waiters.append(waiter)
            await asyncio.wait([waiter], timeout=left_s)
        if self.is_closed:
            raise self.lost or self._lost_reason

    def dial(self, stream: StreamRequest, spec: StreamSpec) -> int:
        """Have the driver open a further stream; return its number."""
        number = self.core.dial(time.monotonic_ns(), stream)
        self.specs[number] = spec
        self.apply()
        return number

    async def add(self, stream: StreamRequest, spec: StreamSpec) -> int:
        """As `ConnectionTransport.add_stream` says."""
        added: asyncio.Future[int] = self.loop.create_future()
        number = self.core.dial(time.monotonic_ns(), stream)
        self.specs[number], self._added[number] = spec, added
        self.apply()
        try:
            return await added
        except BaseException:
            self._added.pop(number, None)
            if not self.is_closed:
                self.forget(number)
            raise

    def forget(self, number: int) -> None:
        """Have the driver open a stream no more."""
        self.specs.pop(number, None)
        with contextlib.suppress(LocalProtocolError):  # it may be open by now, and the last
            self.core.remove_stream(time.monotonic_ns(), number)
        self.apply()

    def _note_unreachable(self, action: _core.Action) -> None:
        if (added := self._added.get(action.number)) is not None and not added.done():
            added.set_exception(action.error or self._lost_reason)
        elif self.on_unreachable is not None:
            self.on_unreachable(action.number, action.error)

    def _lose(self, action: _core.Action) -> None:
        if action.loss == "finished":
            self._lost_reason = ConnectionLost("the peer has closed the connection")
        elif action.loss != "removed":
            reason = strerror(action.errno) if action.loss == "broken" else _LOSSES[action.loss]
            self._lost_reason = ConnectionLost(reason, action.stream)
            self._transport.note_event("stream_lost", stream=action.stream, reason=reason)
        self._transport.note_lost(action.stream, action.loss)

    def _note(self, action: _core.Action) -> None:
        self._transport.note_event(f"stream_{action.kind}", stream=action.stream)

    # --- receiving ------------------------------------------------------------------------------------------
    def _deliver(self, _: _core.Action) -> None:
        if self.delivery.is_paused:
            self.changed()
        elif self.is_started:
            self.deliver()

    def deliver(self) -> None:
        """Give the application what is in order; while it does not read, the window closes."""
        core, delivery = self.core, self.delivery
        while (core.ready_bytes or delivery.held) and not (delivery.is_paused or delivery.is_stopped):
            delivery.give(core.take())
            core.settle(time.monotonic_ns())
        self.apply()
        if core.ended and delivery.give_end():
            self.close()

    def pause(self) -> None:
        """Give the protocol nothing until `resume`."""
        self.delivery.is_paused = True
        self.core.hold(True)
        self.apply()

    def resume(self) -> None:
        """Go on where the protocol paused."""
        if self.delivery.is_paused or self.is_closed:
            return
        self.core.hold(False)
        self.deliver()
        self.settle()

    # --- sending --------------------------------------------------------------------------------------------
    def _control_flow(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        if is_paused:
            self.protocol.pause_writing()
            return
        wake_all(self._room_waiters)
        if not self.is_closed:
            self.protocol.resume_writing()
            self.changed()

    async def wait_for_room(self) -> None:
        """Wait, as `drain` does, until few bytes are queued, or the connection is closed."""
        if self.is_paused and not self.is_closed:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._room_waiters.append(waiter)
            await waiter

    # --- the end --------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Send what is queued and the end, then close; nothing more is received."""
        if self.is_closing:
            return
        self.is_closing = self.delivery.is_stopped = True
        self.delivery.held.clear()
        self.core.close(time.monotonic_ns())
        self.apply()

    def abort(
        self,
        error: Exception | None = None,
        code: int = _ABORTED,
        reason: str = "the application gave the connection up",
    ) -> None:
        """Close at once, sending nothing more; the protocol is told the error, and the peer the reason."""
        if not self.is_closed:
            self._given = self._given or (error,)
            self.core.abort(time.monotonic_ns(), code, reason)
            self.apply()

    def give_up(self, error: Exception | None) -> None:
        """Close at once, without a word to the peer."""
        if not self.is_closed:
            self._given = self._given or (error,)
            self.core.give_up(time.monotonic_ns())
            self.apply()

    def fail(self, error: Exception) -> None:
        """End a connection whose protocol failed: what it did not take must not be missing unseen."""
        self._fail(error, "the protocol failed to take what was received", "the application failed")

    def fail_inside(self, error: Exception) -> None:
        """End a connection of which the library itself failed."""
        self._fail(error, "the library failed; please report it", "an internal error")

    def _fail(self, error: Exception, what: str, reason: str) -> None:
        self.loop.call_exception_handler(
            {
                "message": f"Fatal error: {what}.",
                "exception": error,
                "transport": self._transport,
                "protocol": self.protocol,
            }
        )
        self.abort(error, _ABORTED, reason)

    def _end(self, action: _core.Action) -> None:
        if self._given is not None:
            (error,) = self._given
        elif action.loss == "lost":
            error = self._lost_reason
        elif action.loss == "broken":
            error = ConnectionLost(strerror(action.errno), 0)
        else:
            error = action.error
        self.is_closing = self.is_closed = self.delivery.is_stopped = True
        self.lost = error
        if self._opened is not None and not self._opened.done():
            if action.loss == "broken":
                error = OSError(action.errno, strerror(action.errno))
            self._opened.set_exception(error or self._lost_reason)
        for added in self._added.values():
            if not added.done():
                added.set_exception(error or ConnectionClosed("the connection was closed"))
        self.information["socket"] = self.information["sockets"] = None
        self._stop_timer()
        wake_all(self._room_waiters)
        self._transport.note_end(error)
        waiting = None if self._on_closed is None else self._on_closed()
        if waiting is None:
            self.loop.call_soon(self._tell_lost, error)
        else:
            waiting.add_done_callback(lambda _: self._tell_lost(error))

    def _tell_lost(self, error: Exception | None) -> None:
        self._is_gone = True
        wake_all(self._end_waiters)
        self.protocol.connection_lost(error)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and its allocation given back."""
        while not self._is_gone:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._end_waiters.append(waiter)
            await waiter

    # --- threads --------------------------------------------------------------------------------------------
    def changed(self) -> None:
        """Tell threads that there may be bytes, or room."""
        if self.on_change is not None:
            self.on_change()

    def hand_over(self, waker: _core.LoopWaker, number: int) -> _core.Waiter:
        """Have bytes wait for threads, who wake the loop with this number; return what they use."""
        self.delivery.is_paused = True
        self.core.hold(True)
        self.waiter = self.core.hand_over(waker, number)
        return self.waiter

    def stand_by(self) -> None:
        """Watch the sockets no more, if threads have them."""
        if not self.is_closed and self.waiter is not None and self.waiter.is_out:
            self._stop_timer()
            self.core.stand_by(True)
            self.apply()

    def take_back(self) -> None:
        """Watch the sockets again."""
        if not self.is_closed:
            self.core.stand_by(False)
            self.settle()

    def attend(self) -> None:
        """Apply what threads came upon, and take the connection back unless one of them waits for it now."""
        if self.is_closed or self.waiter is None:
            return
        if self.waiter.claim():
            self.core.stand_by(False)
        self.settle()


def peer_port(sock: socket.socket) -> int:
    """Return the port at the peer; 0 if that is gone already: reading tells."""
    try:
        return int(sock.getpeername()[1])
    except OSError:
        return 0


def socket_extra(sock: socket.socket) -> dict[str, Any]:
    """Return asyncio's extra information of a connected socket."""
    extra: dict[str, Any] = {"socket": sock, "sockname": sock.getsockname(), "peername": None}
    with contextlib.suppress(OSError):
        extra["peername"] = sock.getpeername()
    return extra


_LOSSES = {
    "ended": "the stream ended: the peer vanished or the path broke",
    "silent": "nothing came through it any more",
}
_APPLY: dict[str, Callable[[Shell, _core.Action], None]] = {
    "joined": Shell._join,
    "unreachable": Shell._note_unreachable,
    "watch": Shell._watch,
    "unwatch": Shell._unwatch,
    "timer": Shell._arm,
    "opened": Shell._open,
    "deliver": Shell._deliver,
    "lost": Shell._lose,
    "stalled": Shell._note,
    "recovered": Shell._note,
    "ended": Shell._end,
}
