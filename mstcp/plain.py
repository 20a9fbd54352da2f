"""Plain TCP behind the interface of the protocol core: what a single path gets (the paper, section II)."""

from __future__ import annotations

import errno
import os
from typing import Protocol

from mstcp import _core
from mstcp.errors import BufferLimitExceeded, LocalProtocolError, RemoteProtocolError
from mstcp.streams import ConnectionCounters, StreamCounters

CHUNK_BYTES = 1 << 18
"""What is offered to the socket at a time."""
READ_BYTES = 1 << 18
"""The most that one read takes."""


class Core(Protocol):
    """What the transport needs of a protocol core.

    `mstcp._core.Connection` and `PlainConnection` have it; the stub of `mstcp._core` says what each method
    does.
    """

    def write(self, data: bytes, /) -> None: ...  # noqa: D102
    def end(self) -> None: ...  # noqa: D102
    def close_streams(self) -> None: ...  # noqa: D102
    def close(self, code: int, reason: str, /) -> None: ...  # noqa: D102
    def poll(self, now_ns: int, /) -> tuple[int, int] | None: ...  # noqa: D102
    def attach(self, stream: int, descriptor: int, rate_bps: float | None, header_bytes: int, /) -> None: ...  # noqa: D102
    def has_room(self, now_ns: int, stream: int, size: int, held: int, /) -> bool: ...  # noqa: D102
    def send(self, stream: int, /) -> int: ...  # noqa: D102
    def sent(self, stream: int, count: int, /) -> bool: ...  # noqa: D102
    def writable(self, stream: int, /) -> None: ...  # noqa: D102
    def offered(self, stream: int, /) -> bytes: ...  # noqa: D102
    def receive(self, stream: int, data: bytes, /) -> None: ...  # noqa: D102
    def receive_from(self, stream: int, /) -> int: ...  # noqa: D102
    def take(self) -> list[bytes]: ...  # noqa: D102
    def stream_end(self, stream: int, /) -> bool: ...  # noqa: D102
    def add_stream(self, stream_id: int, weight: float, /) -> int: ...  # noqa: D102
    def set_weights(self, weights: list[float], /) -> None: ...  # noqa: D102
    def set_delay(self, stream: int, delay_ns: int, /) -> None: ...  # noqa: D102
    def blocked(self, stream: int, /) -> bool: ...  # noqa: D102
    def timeout_ns(self) -> int | None: ...  # noqa: D102

    @property
    def ready_bytes(self) -> int: ...  # noqa: D102
    @property
    def alive(self) -> int: ...  # noqa: D102
    @property
    def queued_bytes(self) -> int: ...  # noqa: D102
    @property
    def finished(self) -> bool: ...  # noqa: D102
    @property
    def ended(self) -> bool: ...  # noqa: D102
    @property
    def closed_by_peer(self) -> tuple[int, str] | None: ...  # noqa: D102


class PlainConnection:
    """One stream, no hello, no identifiers: bytes in, the same bytes out.

    Attributes:
        chunk_bytes: What is offered to the socket at a time.

    Args:
        frame_payload_bytes: Application bytes that fill one packet.
        send_queue_bytes: Bound of the send queue; an empty queue takes a write of any size.
        refuse_hello: Raise RemoteProtocolError if the first bytes received are the MSTCP magic.
    """

    def __init__(
        self, frame_payload_bytes: int, *, send_queue_bytes: int, refuse_hello: bool = False
    ) -> None:
        self._frame_payload_bytes = frame_payload_bytes
        self._limit = send_queue_bytes
        self._descriptor = -1
        self._room: _core.SendRoom | None = None
        self._queue = bytearray()
        self._ready: list[bytes] = []
        self._blocked = False
        self._ending = False
        self._opening: bytearray | None = bytearray() if refuse_hello else None
        self._bytes_sent = 0
        self._bytes_received = 0
        self.chunk_bytes = CHUNK_BYTES
        self.finished = False
        self.ended = False

    def write(self, data: bytes, /) -> None:
        """Queue bytes; BufferLimitExceeded if the queue is not empty and would pass its bound."""
        if self._ending:
            raise LocalProtocolError("data written after the end of the stream was announced")
        if self._queue and len(self._queue) + len(data) > self._limit:
            raise BufferLimitExceeded(len(self._queue), self._limit)
        self._queue += data

    def end(self) -> None:
        """Say that no more bytes will come."""
        self._ending = True

    def close_streams(self) -> None:
        """Nothing to say beyond the end."""

    def close(self, _code: int, _reason: str, /) -> None:
        """TCP has no words for it."""

    def poll(self, _now_ns: int, /) -> tuple[int, int] | None:
        """Offer the next bytes; an empty offer stands for the end of the stream."""
        if self._blocked or self.finished or not (self._queue or self._ending):
            return None
        return 0, min(len(self._queue), self.chunk_bytes)

    def attach(self, _stream: int, descriptor: int, rate_bps: float | None, header_bytes: int, /) -> None:
        """Name the socket, and pace it at a rate; OSError if the system refuses that."""
        self._descriptor = descriptor
        self._room = _core.SendRoom(descriptor)
        limit = self._room.pace(rate_bps or None, self._frame_payload_bytes, header_bytes)
        # What is offered at once must fit when the kernel calls the socket writable.
        self.chunk_bytes = CHUNK_BYTES if limit is None else min(CHUNK_BYTES, limit // 4)

    def has_room(self, _now_ns: int, _stream: int, size: int, held: int, /) -> bool:
        """Return whether so many bytes more in the socket are not too many unsent ones."""
        return self._room is None or self._room.has_room(size, held)

    def send(self, _stream: int, /) -> int:
        """Send what was offered; return how much was taken, or an errno below 0."""
        if not self._queue:
            return 0
        try:
            with memoryview(self._queue) as queue:
                return os.write(self._descriptor, queue[: self.chunk_bytes])
        except OSError as error:
            return -(error.errno or errno.EIO)

    def offered(self, _stream: int, /) -> bytes:
        """Return a copy of what was offered."""
        with memoryview(self._queue) as queue:
            return bytes(queue[: self.chunk_bytes])

    def sent(self, _stream: int, count: int, /) -> bool:
        """Report how much of the offer was taken; True if that was the end."""
        offered = min(len(self._queue), self.chunk_bytes)
        del self._queue[:count]
        if self._room is not None:
            self._room.sent(count)
        self._bytes_sent += count
        self._blocked = count < offered
        self.finished = self._ending and not self._queue
        return self.finished

    def writable(self, _stream: int, /) -> None:
        """Note that the socket has room again."""
        self._blocked = False

    def receive_from(self, stream: int, /) -> int:
        """Read once; return how much came, 0 at the end, or an errno below 0."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except OSError as error:
            return -(error.errno or errno.EIO)
        if data:
            self.receive(stream, data)
        return len(data)

    def receive(self, _stream: int, data: bytes, /) -> None:
        """Take bytes, unless they are a late hello."""
        self._bytes_received += len(data)
        if self._opening is None:
            self._ready.append(data)
            return
        self._opening += data
        if self._opening.startswith(_core.MAGIC):
            raise RemoteProtocolError("an MSTCP hello came on a stream that was already treated as plain TCP")
        if not _core.MAGIC.startswith(self._opening):
            self._ready.append(bytes(self._opening))
            self._opening = None

    def take(self) -> list[bytes]:
        """Return what came."""
        taken, self._ready = self._ready, []
        return taken

    @property
    def ready_bytes(self) -> int:
        """Bytes that wait to be taken."""
        return sum(map(len, self._ready))

    def stream_end(self, _stream: int, /) -> bool:
        """Note that TCP ended the stream."""
        if self._opening:
            raise RemoteProtocolError("the stream ended within what looked like an MSTCP hello")
        self.ended = True
        return True

    def add_stream(self, _stream_id: int, _weight: float, /) -> int:
        """Plain TCP has one stream."""
        raise LocalProtocolError("a plain TCP connection has one stream")

    def timeout_ns(self) -> int | None:
        """Nothing falls due."""
        return None

    def set_weights(self, _weights: list[float], /) -> None:
        """Nothing to weigh."""

    def set_delay(self, _stream: int, _delay_ns: int, /) -> None:
        """Nothing to choose by."""

    def blocked(self, _stream: int, /) -> bool:
        """Return whether the socket was full when last tried."""
        return self._blocked

    @property
    def alive(self) -> int:
        """The streams that live, one bit each: always the one."""
        return 1

    @property
    def closed_by_peer(self) -> tuple[int, str] | None:
        """TCP has no words for it."""
        return None

    @property
    def queued_bytes(self) -> int:
        """Bytes that the socket has not taken."""
        return len(self._queue)

    def counters(self) -> ConnectionCounters:
        """Return what the connection has carried."""
        stream = StreamCounters(None, self._bytes_sent, None, self._bytes_received, None, 0)
        return ConnectionCounters((stream,), None, None, None, len(self._queue))


def convert_counters(counters: _core.Counters) -> ConnectionCounters:
    """Return the core's counters under the names of this package."""
    return ConnectionCounters(
        tuple(StreamCounters(*stream) for stream in counters.streams),
        counters.out_of_order_frames,
        counters.reorder_bytes,
        counters.reorder_max_bytes,
        counters.queued_bytes,
        counters.unacknowledged_bytes,
        counters.duplicate_bytes,
    )
