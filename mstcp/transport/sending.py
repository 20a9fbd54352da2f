"""From the core into the sockets: what is queued, how much may wait in them, when to go on."""

from __future__ import annotations

import asyncio
import socket
import time

from mstcp import _core, sockets
from mstcp.layer import StreamLayer
from mstcp.open_stream import errno_of, strerror
from mstcp.transport.base import NOT_NOW, Setup, wake_all
from mstcp.transport.defaults import USER_TIMEOUT_S
from mstcp.transport.health import Health


class Sending(Health):
    """Sends what the core offers, and holds the writing protocol back."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # A core that reads and writes the sockets itself, in one call a wake-up.
        has_layer = any(stream.layer is not None for stream in setup.streams)
        self._direct = None if has_layer else self._mstcp
        self._frame_payload_bytes = setup.frame_payload_bytes
        self._header_bytes = 0 if self._is_plain else _core.FRAME_HEADER_BYTES
        if (layer := setup.streams[0].layer) is not None:
            self._header_bytes += layer.overhead_bytes
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns: int | None = None
        # Streams (bits) that the loop watches for room.
        self._write_watched = 0
        # Given to sockets since the kernel was last asked what it still has.
        self._kernel_bytes = 0
        self._protocol_paused = False
        self._high_water = 0
        self._low_water = 0
        # Those that wait for the queue to be short.
        self._room_waiters: list[asyncio.Future[None]] = []
        self._eof_sent = False

    def _pace(self, index: int) -> None:
        stream = self._streams[index]
        if not self._is_plain:
            sockets.set_user_timeout(stream.sock, USER_TIMEOUT_S)
        if self._idle_s is not None:
            self._keep_alive(stream)
        self._core.set_delay(index, round((stream.spec.delay_s or 0.0) * 1e9))
        self._core.attach(index, stream.descriptor, stream.spec.rate_bps, self._header_bytes)

    def _end(self) -> None:
        if not self._eof_sent:
            self._eof_sent = True
            self._core.end()
            self._pump()

    def _pump(self) -> None:
        """Send until nothing is queued or no stream has room."""
        if self._closed:
            return
        if self._direct is not None:
            self._note(self._direct.transmit(time.monotonic_ns()))
        else:
            if self._mstcp is not None:
                self._mstcp.measure(time.monotonic_ns())
            self._pump_by_frame()

    def _pump_by_frame(self) -> None:
        core, clock = self._core, time.monotonic_ns
        while (offer := core.poll(clock())) is not None:
            stream, size = offer
            count = 0
            if core.has_room(clock(), stream, size, self._streams[stream].held_bytes):
                count = self._send(stream)
                if count < 0:
                    if -count not in NOT_NOW:
                        self._lose(stream, OSError(-count, strerror(-count)))
                        if self._closed or core.alive >> stream & 1:
                            return
                        continue
                    count = 0
                self._kernel_bytes += count
            last = core.sent(stream, count)
            if last:
                self._shut_streams |= 1 << stream
                self._streams[stream].shut()
            if count < size or ((layer := self._streams[stream].layer) is not None and layer.unsent_bytes):
                self._watch_writing(stream)
        if self._protocol_paused or core.queued_bytes > self._high_water:
            self._control_flow()
        self._arm_timer()

    def _note(self, outcome: tuple[int, int, int, int, tuple[int, int] | None, int | None]) -> None:
        """Do what follows from what the core has sent; the stub of `transmit` says what is what."""
        sent, queued, blocked, ended, failed, due_ns = outcome
        self._kernel_bytes += sent
        if blocked & ~self._write_watched or ended:
            self._shut_streams |= ended
            for stream in range(len(self._streams)):
                if ended >> stream & 1:
                    self._streams[stream].shut()
                if blocked >> stream & 1:
                    self._watch_writing(stream)
        if failed is not None:
            stream, number = failed
            self._lose(stream, OSError(number, strerror(number)))  # which goes on sending
            return
        if self._protocol_paused or queued > self._high_water:
            self._control_flow()
        if due_ns is not None and (self._timer_ns is None or due_ns < self._timer_ns):
            self._arm_timer()

    def _watch_writing(self, stream: int) -> None:
        if not self._is_lent and not self._write_watched >> stream & 1:
            self._write_watched |= 1 << stream
            self._loop.add_writer(self._streams[stream].descriptor, self._on_writable, stream)

    def _send(self, stream: int) -> int:
        """Send what the core offers; return how much was taken, or an errno below 0."""
        layer = self._streams[stream].layer
        if layer is None:
            return self._core.send(stream)
        try:
            return layer.send(self._streams[stream].sock, self._core.offered(stream))
        except OSError as error:
            return -errno_of(error)

    def _flush(self, stream: int, layer: StreamLayer) -> bool:
        """Send what TLS has encrypted; return whether the socket took all."""
        try:
            if not layer.flush(self._streams[stream].sock):
                return False
            if self._shut_streams >> stream & 1:
                self._streams[stream].sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(stream, error)
            return False
        return True

    def _arm_timer(self) -> None:
        """See that the core is polled when it wants to be."""
        if self._is_lent:
            return
        due_ns = self._core.timeout_ns()
        if due_ns is None or (self._timer_ns is not None and self._timer_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = due_ns
        self._timer = self._loop.call_at(due_ns * 1e-9 + 1e-4, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_ns = None
        self._take_events()
        self._pump()

    def _on_writable(self, stream: int) -> None:
        if not self._write_watched >> stream & 1:
            return
        layer = self._streams[stream].layer
        if layer is not None and not self._flush(stream, layer):
            return
        self._core.writable(stream)
        self._pump()
        if layer is not None and layer.unsent_bytes:
            return
        if not self._closed and self._write_watched >> stream & 1 and not self._core.blocked(stream):
            self._write_watched &= ~(1 << stream)
            self._loop.remove_writer(self._streams[stream].descriptor)

    def _control_flow(self) -> None:
        queued = self._core.queued_bytes
        if not self._protocol_paused and queued > self._high_water:
            self._protocol_paused = True
            self._protocol.pause_writing()
        elif self._protocol_paused and queued <= self._low_water:
            self._protocol_paused = False
            self._wake_writers()
            self._protocol.resume_writing()
            self._changed()

    def _wake_writers(self) -> None:
        wake_all(self._room_waiters)

    async def _wait_for_room(self) -> None:
        """Wait, as `drain` does, until few bytes are queued, or the connection is closed."""
        if self._protocol_paused and not self._closed:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._room_waiters.append(waiter)
            await waiter
