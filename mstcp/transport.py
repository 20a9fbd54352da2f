"""The asyncio transport of a connection: sockets and event loop around a sans-IO core.

`asyncio.StreamReader` and `asyncio.StreamWriter` work on it unchanged; `try_write` and `statistics` are what
it has beyond asyncio's transports.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mstcp import _core, sockets
from mstcp.errors import ConnectionClosed, ConnectionLost, LocalProtocolError, MstcpError, RemoteProtocolError
from mstcp.health import Health
from mstcp.open_stream import OpenStream, errno_of, strerror
from mstcp.plain import CHUNK_BYTES, Core, PlainConnection
from mstcp.streams import UNLIMITED_BPS, StreamSpec, weights_of
from mstcp.tls import TlsStream

SEND_QUEUE_BYTES = 1 << 18
"""What `try_write` fills where no send buffer was named."""
SCHEDULER = "weighted"
"""Where none is named: least delay at full load; scenarios of the paper name theirs."""
HARD_QUEUE_BYTES = 64 << 20
"""What `write` fills for an application that never waits for `drain`, before it gets BufferLimitExceeded."""
REORDER_BUFFER_BYTES = 16 << 20
USER_TIMEOUT_S = 30.0
"""A stream is lost when TCP has nothing acknowledged for so long."""
RECONNECT_S = 5.0
"""How long a connection without a stream waits for one to come back."""

_NOT_NOW = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
# Error codes of docs/protocol.md.
_ABORTED = 0
_PROTOCOL_ERROR = 1
_LINGER_POLL_S = 0.01
_LINGER_LIMIT_S = 5.0


class ConnectionTransport(Health, asyncio.Transport):
    """One connection over its streams; with a single plain stream, TCP as it is.

    Made by `open_connection` and `start_server`. All methods belong to the event loop's thread.

    Args:
        loop: The event loop; it must have add_reader and add_writer.
        protocol: Gets the bytes in order.
        core: Protocol state, `mstcp._core.Connection` or `PlainConnection`.
        streams: In the order of the core's stream indices.
        frame_payload_bytes: Application bytes that fill one packet.
        send_buffer_bytes: Bound on the bytes that `try_write` took and the peer's kernel has not acknowledged
            yet, headers included; None bounds only those that no socket has taken (256 KiB).
        extra: What `get_extra_info` knows beside sockets and streams.
        on_closed: Awaited after the sockets are closed and before `wait_closed` returns.
        reconnect_s: How long the connection waits without any stream before it is lost.
        on_stream_lost: Told of each stream that broke, so that it can be opened again.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.BaseProtocol,
        core: Core,
        streams: Sequence[OpenStream],
        *,
        frame_payload_bytes: int,
        send_buffer_bytes: int | None = None,
        extra: dict[str, Any] | None = None,
        on_closed: Callable[[], Awaitable[None]] | None = None,
        reconnect_s: float = RECONNECT_S,
        on_stream_lost: Callable[[StreamSpec], None] | None = None,
    ) -> None:
        Health.__init__(self)
        asyncio.Transport.__init__(self)
        self._information: dict[str, Any] = dict(extra or {})
        self._loop = loop
        self._core = core
        self._streams = list(streams)
        # A core that reads and writes the sockets itself, in one call a wake-up.
        has_tls = any(stream.tls is not None for stream in streams)
        self._mstcp = core if isinstance(core, _core.Connection) else None
        self._direct = None if has_tls else self._mstcp
        self._frame_payload_bytes = frame_payload_bytes
        self._header_bytes = 0 if isinstance(core, PlainConnection) else _core.FRAME_HEADER_BYTES
        if (tls := self._streams[0].tls) is not None:
            self._header_bytes += tls.overhead_bytes
            self._information |= tls.information()
        self._send_buffer_bytes = send_buffer_bytes
        self._on_closed = on_closed
        self._is_plain = isinstance(core, PlainConnection)
        self._reconnect_s = reconnect_s
        self._on_stream_lost = on_stream_lost
        self._lost_timer: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns: int | None = None
        # Bit masks over the streams: those the loop watches, and those that we or TCP have ended.
        self._read_watched = 0
        self._write_watched = 0
        self._ended_streams = 0
        self._shut_streams = 0
        self._kernel_bytes = 0
        # In order, and not given to the protocol since it paused in the middle.
        self._held: list[bytes] = []
        self._read_paused = False
        self._write_paused = False
        self._eof_sent = False
        self._eof_delivered = False
        self._closing = False
        self._closed = False
        self._lost: BaseException | None = None
        self._linger_until: float | None = None
        self._high_water = 0
        self._low_water = 0
        self.set_write_buffer_limits()
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = asyncio.Event()
        self.set_protocol(protocol)

    def start(self, opening: bytes = b"") -> None:
        """Begin: tell the protocol, then read. `opening` are bytes that came before (plain TCP)."""
        for index in range(len(self._streams)):
            self._pace(index)
        self._protocol.connection_made(self)
        if opening:
            self._core.receive(0, opening)
            self._deliver()
        self._watch_reading()
        for index, stream in enumerate(self._streams):
            self._expect_decrypted(index, stream)
        self._pump()

    def _expect_decrypted(self, index: int, stream: OpenStream) -> None:
        """Read what came with the hello and was decrypted: no socket tells of it."""
        if stream.tls is not None:
            self._loop.call_soon(self._on_readable, index)

    # --- asyncio.BaseTransport ------------------------------------------------------------------------------
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the protocol that gets the bytes."""
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self._protocol: asyncio.Protocol = protocol  # type: ignore[assignment]

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return asyncio's `peername`, `sockname`, `socket`, or ours.

        `streams` (list of StreamInfo), `statistics`, `protocol` ("mstcp" or "tcp"), `frame_payload_bytes`
        (application bytes that fill one packet), `sockets`, `connection_id`, `allocation`.
        """
        if name == "streams":
            return self.streams()
        if name == "statistics":
            return self.statistics()
        if name == "protocol":
            return "tcp" if self._is_plain else "mstcp"
        if name == "frame_payload_bytes":
            return self._frame_payload_bytes
        return self._information.get(name, default)

    def is_closing(self) -> bool:
        """Return whether the connection is closing or closed."""
        return self._closing

    def close(self) -> None:
        """Send what is queued and the end, then close; nothing more is received.

        The sockets stay until the peer's kernel has acknowledged everything, 5 s at most after the last byte
        was handed over: closing before could reset the connection under data in flight.
        """
        if self._closing:
            return
        self._closing = True
        self._end()
        self._watch_reading()
        self._linger()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and its allocation given back."""
        await self._gone.wait()

    def abort(self) -> None:
        """Close at once, sending nothing more; the peer sees a broken connection."""
        if not self._closed:
            self._say_closed(_ABORTED, "the application gave the connection up")
        self._finish(None, reset=True)

    # --- asyncio.ReadTransport ------------------------------------------------------------------------------
    def is_reading(self) -> bool:
        """Return whether the protocol gets bytes as they come."""
        return not (self._closing or self._read_paused)

    def pause_reading(self) -> None:
        """Read no stream until `resume_reading`."""
        self._read_paused = True
        self._watch_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._read_paused:
            self._read_paused = False
            self._loop.call_soon(self._resume)

    # --- asyncio.WriteTransport -----------------------------------------------------------------------------
    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Queue and send bytes.

        Raises:
            BufferLimitExceeded: 64 MiB wait already: the application does not await drain().
            ConnectionClosed: close() was called before.
            LocalProtocolError: write_eof() was called before.
        """
        if self._lost is not None:
            return  # as asyncio has it: drain() and read() raise
        self._check_open()
        self._core.write(data if isinstance(data, bytes) else bytes(data))
        self._pump()

    def try_write(self, data: bytes | bytearray | memoryview[Any]) -> bool:
        """Take all of `data` if the send buffer has room for it, or nothing at all.

        Returns:
            Whether the data was taken.

        Raises:
            ConnectionLost: The connection broke.
            ConnectionClosed: close() was called before.
            LocalProtocolError: write_eof() was called before, or `data` would not fit into an empty buffer.
        """
        if self._lost is not None:
            raise self._lost
        self._check_open()
        core = self._core
        limit = self._send_buffer_bytes
        size = len(data)
        if limit is None:
            if core.queued_bytes + size > SEND_QUEUE_BYTES:
                self._check_fits(size, SEND_QUEUE_BYTES)
                return False
        elif core.queued_bytes + self._kernel_bytes + size > limit:
            # What we handed over is an upper bound of what the kernel still has: ask only when it matters.
            self._kernel_bytes = sum(
                stream.unacknowledged_bytes()
                for index, stream in enumerate(self._streams)
                if core.alive >> index & 1
            )
            if core.queued_bytes + self._kernel_bytes + size > limit:
                self._check_fits(size, limit)
                return False
        core.write(data if isinstance(data, bytes) else bytes(data))
        self._pump()
        return True

    def can_write_eof(self) -> bool:
        """Return True: half-close works."""
        return True

    def write_eof(self) -> None:
        """Send the end after what is queued; receiving goes on."""
        if not self._closing:
            self._end()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when drain() waits: above `high` bytes that no socket has taken, until `low` are left.

        By default `high` is the send buffer, 64 KiB at most, and `low` a quarter of it.
        """
        if high is None:
            high = min(1 << 16, self._send_buffer_bytes or 1 << 16) if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must not be below low ({low}), nor low below 0")
        self._high_water, self._low_water = high, low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return (low, high)."""
        return self._low_water, self._high_water

    def get_write_buffer_size(self) -> int:
        """Return the bytes that no socket has taken yet."""
        return self._core.queued_bytes

    # --- beyond asyncio -------------------------------------------------------------------------------------
    def set_rates(self, rates: Mapping[int, float]) -> None:
        """Give running streams new rates: the weights of the draw and the pacing.

        Args:
            rates: Goodput in bit/s by source port; streams that are not named get 0 and carry no new frames.

        Raises:
            LocalProtocolError: No stream of the connection is left with a rate.
        """
        specs = [
            replace(stream.spec, rate_bps=rates.get(stream.spec.source_port, 0.0)) for stream in self._streams
        ]
        self._core.set_weights(weights_of(specs))
        self._note_event("rates_set", rates={spec.source_port: spec.rate_bps for spec in specs})
        for index, spec in enumerate(specs):
            self._streams[index].spec = spec
            if not self._closed and self._core.alive >> index & 1:
                self._pace(index)
        self._pump()

    # --- sending --------------------------------------------------------------------------------------------
    def _check_open(self) -> None:
        if self._closing:
            raise ConnectionClosed("the connection was closed: nothing can be written any more")
        if self._eof_sent:
            raise LocalProtocolError("write_eof() was called: nothing can be written after it")

    def _check_fits(self, size: int, limit: int) -> None:
        if size > limit:
            raise LocalProtocolError(
                f"{size} bytes never fit into a send buffer of {limit}: write them in pieces"
            )

    def _pace(self, index: int) -> None:
        stream = self._streams[index]
        if not self._is_plain:
            sockets.set_user_timeout(stream.sock, USER_TIMEOUT_S)
        if self._idle_s is not None:
            self._keep_alive(stream)
        self._core.set_delay(index, round((stream.spec.delay_s or 0.0) * 1e9))
        # A stream of rate 0 gets no new frames; what it holds must still leave.
        limit = sockets.set_pacing(
            stream.sock, stream.spec.rate_bps or None, self._frame_payload_bytes, self._header_bytes
        )
        stream.limit_unsent(limit)
        if self._mstcp is not None:
            self._mstcp.attach(index, stream.descriptor, limit, stream.spec.rate_bps is not None)
        if isinstance(self._core, PlainConnection):
            # What is offered at once must fit when the kernel calls the socket writable.
            self._core.chunk_bytes = CHUNK_BYTES if limit is None else min(CHUNK_BYTES, limit // 4)

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
                for index, limit in self._mstcp.measure(time.monotonic_ns()):
                    self._streams[index].limit_unsent(limit)
            self._pump_by_frame()

    def _pump_by_frame(self) -> None:
        core, clock = self._core, time.monotonic_ns
        while (offer := core.poll(clock())) is not None:
            stream, size = offer
            count = 0
            if self._streams[stream].has_room(size) or self._has_room(stream, size):
                count = self._send(stream)
                if count < 0:
                    if -count not in _NOT_NOW:
                        self._lose(stream, OSError(-count, strerror(-count)))
                        if self._closed:
                            return
                        continue
                    count = 0
                self._kernel_bytes += count
                self._streams[stream].unsent_room -= count
            last = core.sent(stream, count)
            if last:
                self._shut_streams |= 1 << stream
                self._streams[stream].shut()
            if count < size or ((tls := self._streams[stream].tls) is not None and tls.unsent_bytes):
                self._watch_writing(stream)
        if self._write_paused or core.queued_bytes > self._high_water:
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
            self._lose(stream, OSError(number, strerror(number)))
            if not self._closed:
                self._pump()
            return
        if self._write_paused or queued > self._high_water:
            self._control_flow()
        if due_ns is not None and (self._timer_ns is None or due_ns < self._timer_ns):
            self._arm_timer()

    def _watch_writing(self, stream: int) -> None:
        if not self._write_watched >> stream & 1:
            self._write_watched |= 1 << stream
            self._loop.add_writer(self._streams[stream].descriptor, self._on_writable, stream)

    def _send(self, stream: int) -> int:
        """Send what the core offers; return how much was taken, or an errno below 0."""
        tls = self._streams[stream].tls
        if tls is None:
            return self._core.send(stream, self._streams[stream].descriptor)
        try:
            return tls.send(self._streams[stream].sock, self._core.offered(stream))
        except OSError as error:
            return -errno_of(error)

    def _flush(self, stream: int, tls: TlsStream) -> bool:
        """Send what TLS has encrypted; return whether the socket took all."""
        try:
            if not tls.flush(self._streams[stream].sock):
                return False
            if self._shut_streams >> stream & 1:
                self._streams[stream].sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(stream, error)
            return False
        return True

    def _arm_timer(self) -> None:
        """See that the core is polled when it wants to be."""
        due_ns = self._core.timeout_ns()
        if due_ns is None or (self._timer_ns is not None and self._timer_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = due_ns
        self._timer = self._loop.call_at(due_ns * 1e-9 + 1e-4, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_ns = None
        self._pump()

    def _has_room(self, stream: int, size: int) -> bool:
        """Ask the kernel whether `size` bytes more would be too many unsent ones."""
        self._core.unsent(time.monotonic_ns(), stream, self._streams[stream].unsent_bytes())
        return self._streams[stream].has_room(size)

    def _on_writable(self, stream: int) -> None:
        if not self._write_watched >> stream & 1:
            return
        tls = self._streams[stream].tls
        if tls is not None and not self._flush(stream, tls):
            return
        self._core.writable(stream)
        self._pump()
        if tls is not None and tls.unsent_bytes:
            return
        if not self._closed and self._write_watched >> stream & 1 and not self._core.blocked(stream):
            self._write_watched &= ~(1 << stream)
            self._loop.remove_writer(self._streams[stream].descriptor)

    def _control_flow(self) -> None:
        queued = self._core.queued_bytes
        if not self._write_paused and queued > self._high_water:
            self._write_paused = True
            self._protocol.pause_writing()
        elif self._write_paused and queued <= self._low_water:
            self._write_paused = False
            self._protocol.resume_writing()

    # --- receiving ------------------------------------------------------------------------------------------
    def _watch_reading(self) -> None:
        """Have the loop watch just the streams that may be read."""
        if self._closed or (self._is_plain and self._read_paused and not self._closing):
            wanted = 0
        else:
            wanted = self._core.alive & ~self._ended_streams
        changed = wanted ^ self._read_watched
        if not changed:
            return
        self._read_watched = wanted
        for index, stream in enumerate(self._streams):
            if changed >> index & 1:
                if wanted >> index & 1:
                    self._loop.add_reader(stream.descriptor, self._on_readable, index)
                else:
                    self._loop.remove_reader(stream.descriptor)

    def _on_readable(self, stream: int) -> None:
        if not self._read_watched >> stream & 1:
            return
        self._heard = True
        if self._direct is not None:
            self._exchange(self._direct, stream)
            return
        core = self._core
        try:
            count = self._receive(stream)
            if count < 0:
                if -count not in _NOT_NOW:
                    self._lose(stream, OSError(-count, strerror(-count)))
                return
            if count == 0 and self._is_plain:
                core.stream_end(stream)
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        self._deliver()
        self._after_reading(stream, count == 0)

    def _exchange(self, core: _core.Connection, stream: int) -> None:
        """Read, deliver and send by one call of the core."""
        deliver = self._closing or not self._read_paused
        try:
            count, data, is_end, outcome = core.exchange(time.monotonic_ns(), stream, deliver)
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        if count < 0:
            if -count not in _NOT_NOW:
                self._lose(stream, OSError(-count, strerror(-count)))
            return
        if outcome is not None:
            self._note(outcome)
        if data and not self._closing:
            self._give(data)
            if core.ready_bytes and not self._closed:
                self._deliver()
                self._pump()
        if is_end:
            self._deliver_end()
            self._after_reading(stream, count == 0)

    def _after_reading(self, stream: int, stream_ended: bool) -> None:
        """Look after the end of the stream or of the connection, and send."""
        if stream_ended:
            self._ended_streams |= 1 << stream
            self._watch_reading()
        if self._closed or self._is_given_up():
            return
        if stream_ended and not self._is_plain:
            self._drop(stream, None)
        else:
            self._pump()

    def _is_given_up(self) -> bool:
        """End the connection if the peer has said that it gave up."""
        told = self._core.closed_by_peer
        if told is not None and not self._closed:
            self._finish(ConnectionLost(told[1] or f"the peer gave up (code {told[0]})"), reset=True)
        return told is not None

    def _read_out(self, stream: int) -> None:
        """Take what came before a stream broke: it may say why."""
        try:
            while self._receive(stream) > 0:
                pass
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        self._deliver()

    def _receive(self, stream: int) -> int:
        """Read once into the core; return how much came, 0 at the end, or an errno below 0."""
        tls = self._streams[stream].tls
        if tls is None:
            return self._core.receive_from(stream, self._streams[stream].descriptor)
        try:
            data, ended = tls.receive(self._streams[stream].sock)
        except OSError as error:
            return -errno_of(error)
        if tls.unsent_bytes:
            self._watch_writing(stream)
        if data:
            self._core.receive(stream, data)
            if ended:
                self._loop.call_soon(self._on_readable, stream)
        return len(data) if data or ended else -errno.EAGAIN

    def _resume(self) -> None:
        if not self._read_paused and not self._closed:
            self._watch_reading()
            self._deliver()
            self._pump()

    def _deliver(self) -> None:
        """Give the application what is in order; while it does not read, the window closes."""
        core = self._core
        while (core.ready_bytes or self._held) and (self._closing or not self._read_paused):
            self._give(core.take())
        self._deliver_end()

    def _give(self, pieces: list[bytes]) -> None:
        """Pass bytes on; what is left when the protocol pauses is held."""
        if self._held:
            pieces, self._held = self._held + pieces, []
        for number, data in enumerate(pieces):
            if self._closing:
                return  # nothing is received any more
            if self._read_paused:
                self._held = pieces[number:]
                return
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                self._fill_buffers(data)
            else:
                self._protocol.data_received(data)

    def _deliver_end(self) -> None:
        """Tell the application that the peer's bytes have ended, once."""
        if self._core.ended and not (self._held or self._eof_delivered or self._closing):
            self._eof_delivered = True
            if not self._protocol.eof_received():
                self.close()

    def _fill_buffers(self, data: bytes) -> None:
        protocol: Any = self._protocol
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                buffer = protocol.get_buffer(len(rest) - at)
                count = min(len(buffer), len(rest) - at)
                if not count:
                    raise RuntimeError("get_buffer() returned an empty buffer")
                memoryview(buffer)[:count] = rest[at : at + count]
                at += count
                protocol.buffer_updated(count)

    # --- streams that come and go ---------------------------------------------------------------------------
    def add_stream(self, stream: OpenStream, stream_id: int) -> None:
        """Use a further stream, whose hellos are done.

        Raises:
            LocalProtocolError: The connection is plain TCP or has 64 streams.
        """
        weight = UNLIMITED_BPS if stream.spec.rate_bps is None else stream.spec.rate_bps
        slot = self._core.add_stream(stream_id, weight)
        # A new slot, or that of a stream that is gone.
        self._streams[slot : slot + 1] = [stream]
        gone = ~(1 << slot)
        self._ended_streams &= gone
        self._shut_streams &= gone
        if self._lost_timer is not None:
            self._lost_timer.cancel()
            self._lost_timer = None
        self._information["sockets"] = tuple(each.sock for each in self._streams)
        self._pace(slot)
        self._removed &= gone
        self._note_event("stream_added", stream=slot, source_port=stream.spec.source_port)
        self._watch_reading()
        self._expect_decrypted(slot, stream)
        self._pump()

    def _drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        sock = self._streams[stream].sock
        self._unwatch(stream)
        proper = self._core.stream_end(stream) or bool(error is None and self._removed >> stream & 1)
        if not proper:
            self._note_event("stream_lost", stream=stream, reason=error and error.strerror)
        if proper:
            sock.close()
        else:
            sockets.reset(sock)
        if not self._core.alive:
            self._all_gone(stream, proper, error)
        elif not proper and self._on_stream_lost is not None and not self._removed >> stream & 1:
            self._on_stream_lost(self._streams[stream].spec)
        self._pump()

    def _all_gone(self, stream: int, proper: bool, error: OSError | None) -> None:
        reason = "the stream ended: the peer vanished or the path broke"
        if error is not None:
            reason = error.strerror or str(error)
        nothing_left = not self._core.queued_bytes and not self.statistics().unacknowledged_bytes
        if self._closing and (self._core.finished or (proper and nothing_left)):
            self._finish(None, reset=False)
        elif proper and self._core.ended and nothing_left:
            return  # the peer is done; so are we when the application closes
        elif proper or self._reconnect_s <= 0:
            self._finish(ConnectionLost(reason, stream), reset=True)
        else:
            if self._on_stream_lost is not None:
                self._on_stream_lost(self._streams[stream].spec)
            lost = ConnectionLost(reason, stream)
            self._lost_timer = self._loop.call_later(self._reconnect_s, self._finish_lost, lost)

    def _finish_lost(self, error: ConnectionLost) -> None:
        self._finish(error, reset=True)

    def _say_closed(self, code: int, reason: str) -> None:
        """Tell the peer why, if a stream has room for it now."""
        self._core.close(code, reason)
        with contextlib.suppress(OSError):
            while (offer := self._core.poll(time.monotonic_ns())) is not None:
                count = self._send(offer[0])
                self._core.sent(offer[0], max(count, 0))
                if count <= 0 or offer[1] > 1 << 10:
                    break

    # --- ending ---------------------------------------------------------------------------------------------
    def _refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol, and say so."""
        self._say_closed(_PROTOCOL_ERROR, error.reason)
        self._finish(error, reset=True)

    def _lose(self, stream: int, error: OSError) -> None:
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
        """Close the sockets once the peer has all, or had time enough."""
        if self._closed:
            return
        core = self._core
        if not self._is_plain and not core.alive and self._lost_timer is None:
            self._finish(None, reset=False)  # the peer ended all streams
            return
        if core.finished:
            now = self._loop.time()
            if self._linger_until is None:
                self._linger_until = now + _LINGER_LIMIT_S
                core.close_streams()
                self._pump()
            alive = [stream for index, stream in enumerate(self._streams) if core.alive >> index & 1]
            waiting = not self._is_plain and core.alive & ~self._shut_streams
            if now >= self._linger_until or not (
                waiting or any(stream.unacknowledged_bytes() for stream in alive)
            ):
                self._finish(None, reset=False)
                return
        self._loop.call_later(_LINGER_POLL_S, self._linger)

    def _finish(self, error: MstcpError | None, *, reset: bool) -> None:
        if self._closed:
            return
        for index in range(len(self._streams)):
            self._unwatch(index)
        self._note_event("connection_closed", reason=error and str(error))
        self._end_health()
        self._closing = self._closed = True
        self._lost = error
        self._information["socket"] = self._information["sockets"] = None
        for timer in (self._timer, self._lost_timer):
            if timer is not None:
                timer.cancel()
        for stream in self._streams:
            if reset:
                sockets.reset(stream.sock)
            else:
                stream.sock.close()
        if self._on_closed is None:
            self._loop.call_soon(self._tell_lost, error)
            return
        task = self._loop.create_task(self._tell_closed(self._on_closed, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _unwatch(self, index: int) -> None:
        """Have the loop watch a stream no more."""
        descriptor, mask = self._streams[index].descriptor, 1 << index
        if self._read_watched & mask:
            self._loop.remove_reader(descriptor)
        if self._write_watched & mask:
            self._loop.remove_writer(descriptor)
        self._read_watched &= ~mask
        self._write_watched &= ~mask

    async def _tell_closed(self, on_closed: Callable[[], Awaitable[None]], error: MstcpError | None) -> None:
        try:
            await on_closed()
        finally:
            self._tell_lost(error)

    def _tell_lost(self, error: MstcpError | None) -> None:
        self._gone.set()
        self._protocol.connection_lost(error)
