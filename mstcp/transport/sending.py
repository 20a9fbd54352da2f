"""From the core into the sockets: what is queued, how much may wait in them, when to go on."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

from mstcp import _core, sockets
from mstcp.layer import StreamLayer
from mstcp.open_stream import errno_of, strerror
from mstcp.transport.defaults import USER_TIMEOUT_S
from mstcp.transport.state import NOT_NOW, Setup, State, wake_all
from mstcp.transport.watching import Watching


class Sender:
    """Sends what the core offers, and holds the writing protocol back.

    Args:
        setup: Of the connection.
        state: Of the connection.
        watching: Has the loop call `on_writable`.
        lose: Told of a stream that broke.
        on_timer: Called when the core's timer is due, before it is polled.
        on_room: Called when the protocol may write again.

    Attributes:
        frame_payload_bytes: Application bytes that fill one packet.
        kernel_bytes: Given to sockets since the kernel was last asked what it still has.
        is_ended: Nothing more is written.
        is_paused: The protocol was told to write nothing now.
    """

    def __init__(
        self,
        setup: Setup,
        state: State,
        watching: Watching,
        *,
        lose: Callable[[int, OSError], None],
        on_timer: Callable[[], None],
        on_room: Callable[[], None],
    ) -> None:
        self._state = state
        self._watching = watching
        self._lose = lose
        self._take_events = on_timer
        self._on_room = on_room
        self.frame_payload_bytes = setup.frame_payload_bytes
        self._header_bytes = 0 if state.is_plain else _core.FRAME_HEADER_BYTES
        if (layer := setup.streams[0].layer) is not None:
            self._header_bytes += layer.overhead_bytes
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns: int | None = None
        self.kernel_bytes = 0
        self.is_ended = False
        self.is_paused = False
        self.high_water = 0
        self.low_water = 0
        # Those that wait for the queue to be short.
        self._room_waiters: list[asyncio.Future[None]] = []

    def pace(self, index: int) -> None:
        """Have a stream's socket keep to its rate and its bounds."""
        stream = self._state.streams[index]
        if not self._state.is_plain:
            sockets.set_user_timeout(stream.sock, USER_TIMEOUT_S)
        self._state.core.set_delay(index, round((stream.spec.delay_s or 0.0) * 1e9))
        self._state.core.attach(index, stream.descriptor, stream.spec.rate_bps, self._header_bytes)

    def end(self) -> None:
        """Send the end after what is queued."""
        if not self.is_ended:
            self.is_ended = True
            self._state.core.end()
            self.pump()

    def pump(self) -> None:
        """Send until nothing is queued or no stream has room."""
        if self._state.is_closed:
            return
        if self._state.direct is not None:
            self.note(self._state.direct.transmit(time.monotonic_ns()))
        else:
            if self._state.mstcp is not None:
                self._state.mstcp.measure(time.monotonic_ns())
            self._pump_by_frame()

    def _pump_by_frame(self) -> None:
        core, clock = self._state.core, time.monotonic_ns
        while (offer := core.poll(clock())) is not None:
            stream, size = offer
            count = 0
            if core.has_room(clock(), stream, size, self._state.streams[stream].held_bytes):
                count = self.send(stream)
                if count < 0:
                    if -count not in NOT_NOW:
                        self._lose(stream, OSError(-count, strerror(-count)))
                        if self._state.is_closed or core.alive >> stream & 1:
                            return
                        continue
                    count = 0
                self.kernel_bytes += count
            last = core.sent(stream, count)
            if last:
                self._state.shut(stream)
            if count < size or self._state.streams[stream].held_bytes:
                self._watching.watch_writer(stream)
        if self.is_paused or core.queued_bytes > self.high_water:
            self._control_flow()
        self._arm_timer()

    def note(self, outcome: tuple[int, int, int, int, tuple[int, int] | None, int | None]) -> None:
        """Do what follows from what the core has sent; the stub of `transmit` says what is what."""
        sent, queued, blocked, ended, failed, due_ns = outcome
        self.kernel_bytes += sent
        if blocked & ~self._watching.writers or ended:
            for stream in range(len(self._state.streams)):
                if ended >> stream & 1:
                    self._state.shut(stream)
                if blocked >> stream & 1:
                    self._watching.watch_writer(stream)
        if failed is not None:
            stream, number = failed
            self._lose(stream, OSError(number, strerror(number)))  # which goes on sending
            return
        if self.is_paused or queued > self.high_water:
            self._control_flow()
        if due_ns is not None and (self._timer_ns is None or due_ns < self._timer_ns):
            self._arm_timer()

    def send(self, stream: int) -> int:
        """Send what the core offers; return how much was taken, or an errno below 0."""
        layer = self._state.streams[stream].layer
        if layer is None:
            return self._state.core.send(stream)
        try:
            return layer.send(self._state.streams[stream].sock, self._state.core.offered(stream))
        except OSError as error:
            return -errno_of(error)

    def _flush(self, stream: int, layer: StreamLayer) -> bool:
        """Send what TLS has encrypted; return whether the socket took all."""
        try:
            if not layer.flush(self._state.streams[stream].sock):
                return False
            if self._state.shut_streams >> stream & 1:
                self._state.streams[stream].sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(stream, error)
            return False
        return True

    def _arm_timer(self) -> None:
        """See that the core is polled when it wants to be."""
        if self._state.is_lent:
            return
        due_ns = self._state.core.timeout_ns()
        if due_ns is None or (self._timer_ns is not None and self._timer_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = due_ns
        self._timer = self._state.loop.call_at(due_ns * 1e-9 + 1e-4, self._on_timer)

    def stop_timer(self) -> None:
        """Leave the core's timer to somebody else, or to nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._timer_ns = None

    def _on_timer(self) -> None:
        self._timer = self._timer_ns = None
        self._take_events()
        self.pump()

    def on_writable(self, stream: int) -> None:
        """Go on with a stream that may have room."""
        if not self._watching.writers >> stream & 1:
            return
        layer = self._state.streams[stream].layer
        if layer is not None and not self._flush(stream, layer):
            return
        self._state.core.writable(stream)
        self.pump()
        if layer is not None and layer.unsent_bytes:
            return
        if not self._state.is_closed and not self._state.core.blocked(stream):
            self._watching.forget_writer(stream)

    def _control_flow(self) -> None:
        queued = self._state.core.queued_bytes
        if not self.is_paused and queued > self.high_water:
            self.is_paused = True
            self._state.protocol.pause_writing()
        elif self.is_paused and queued <= self.low_water:
            self.is_paused = False
            self.wake_writers()
            self._state.protocol.resume_writing()
            self._on_room()

    def wake_writers(self) -> None:
        """Wake those that wait for room."""
        wake_all(self._room_waiters)

    async def wait_for_room(self) -> None:
        """Wait, as `drain` does, until few bytes are queued, or the connection is closed."""
        if self.is_paused and not self._state.is_closed:
            waiter: asyncio.Future[None] = self._state.loop.create_future()
            self._room_waiters.append(waiter)
            await waiter
