"""Plain TCP behind the interface of the protocol core: what a single path gets (the paper, section II)."""

from __future__ import annotations

from typing import Protocol

from mstcp import _core
from mstcp.errors import BufferLimitExceeded, LocalProtocolError, RemoteProtocolError
from mstcp.streams import ConnectionStatistics, StreamStatistics

CHUNK_BYTES = 1 << 14
"""What is offered to the socket at a time."""


class Core(Protocol):
    """What the transport needs of a protocol core.

    `mstcp._core.Connection` and `PlainConnection` have it; see `_core.pyi` for what each method does.
    """

    def write(self, data: bytes, /) -> None:
        """Queue bytes; BufferLimitExceeded if the queue is not empty and would pass its bound."""
        ...

    def end(self) -> None:
        """Say that no more bytes will come."""
        ...

    def poll(self, now_ns: int, /) -> tuple[int, bytes] | None:
        """Offer the stream that sends next and the bytes."""
        ...

    def sent(self, stream: int, count: int, /) -> bool:
        """Report how much of the offer was taken; True if that was the stream's end."""
        ...

    def writable(self, stream: int, /) -> None:
        """Note that the socket has room again."""
        ...

    def receive(self, stream: int, data: bytes, /) -> bytes:
        """Take a stream's bytes, return those now in order."""
        ...

    def stream_end(self, stream: int, /) -> None:
        """Note that TCP ended the stream."""
        ...

    def set_weights(self, weights: list[float], /) -> None:
        """Take new weights for the scheduler."""
        ...

    def set_delay(self, stream: int, delay_ns: int, /) -> None:
        """Take the one-way propagation delay of a stream's path."""
        ...

    def unsent(self, now_ns: int, stream: int, unsent_bytes: int, /) -> None:
        """Report how many bytes of a stream are still in the host."""
        ...

    def blocked(self, stream: int, /) -> bool:
        """Return whether the socket was full when last tried."""
        ...

    @property
    def readable(self) -> int:
        """The streams that should be read, one bit each."""
        ...

    @property
    def queued_bytes(self) -> int:
        """Bytes that no socket has taken."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the sockets took everything, the end included."""
        ...

    @property
    def ended(self) -> bool:
        """Whether all of the peer's bytes have been delivered."""
        ...


class PlainConnection:
    """One stream, no hello, no identifiers: bytes in, the same bytes out.

    Attributes:
        chunk_bytes: What is offered to the socket at a time.

    Args:
        send_queue_bytes: Bound of the send queue; an empty queue takes a write of any size.
        refuse_hello: Raise RemoteProtocolError if the first bytes received are the MSTCP magic.
    """

    def __init__(self, *, send_queue_bytes: int, refuse_hello: bool = False) -> None:
        self._limit = send_queue_bytes
        self._queue = bytearray()
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

    def poll(self, _now_ns: int, /) -> tuple[int, bytes] | None:
        """Offer the next bytes; an empty offer stands for the end of the stream."""
        if self._blocked or self.finished or not (self._queue or self._ending):
            return None
        return 0, bytes(self._queue[: self.chunk_bytes])

    def sent(self, _stream: int, count: int, /) -> bool:
        """Report how much of the offer was taken; True if that was the end."""
        offered = min(len(self._queue), self.chunk_bytes)
        del self._queue[:count]
        self._bytes_sent += count
        self._blocked = count < offered
        self.finished = self._ending and not self._queue
        return self.finished

    def writable(self, _stream: int, /) -> None:
        """Note that the socket has room again."""
        self._blocked = False

    def receive(self, _stream: int, data: bytes, /) -> bytes:
        """Take bytes and return them, unless they are a late hello."""
        self._bytes_received += len(data)
        if self._opening is None:
            return data
        self._opening += data
        if self._opening.startswith(_core.MAGIC):
            raise RemoteProtocolError("an MSTCP hello came on a stream that was already taken for plain TCP")
        if _core.MAGIC.startswith(self._opening):
            return b""
        opening, self._opening = bytes(self._opening), None
        return opening

    def stream_end(self, _stream: int, /) -> None:
        """Note that TCP ended the stream."""
        if self._opening:
            raise RemoteProtocolError("the stream ended within what looked like an MSTCP hello")
        self.ended = True

    def set_weights(self, _weights: list[float], /) -> None:
        """Nothing to weigh."""

    def set_delay(self, _stream: int, _delay_ns: int, /) -> None:
        """Nothing to choose by."""

    def unsent(self, _now_ns: int, _stream: int, _unsent_bytes: int, /) -> None:
        """Nothing to choose by."""

    def blocked(self, _stream: int, /) -> bool:
        """Return whether the socket was full when last tried."""
        return self._blocked

    @property
    def readable(self) -> int:
        """The streams that should be read, one bit each: always the one."""
        return 1

    @property
    def queued_bytes(self) -> int:
        """Bytes that the socket has not taken."""
        return len(self._queue)

    def statistics(self) -> ConnectionStatistics:
        """Return what the connection has carried."""
        stream = StreamStatistics(None, self._bytes_sent, None, self._bytes_received, None)
        return ConnectionStatistics((stream,), None, None, None, len(self._queue))


def convert_statistics(statistics: _core.Statistics) -> ConnectionStatistics:
    """Return the core's statistics under the names of this package."""
    return ConnectionStatistics(
        tuple(StreamStatistics(*stream) for stream in statistics.streams),
        statistics.out_of_order_frames,
        statistics.reorder_bytes,
        statistics.reorder_max_bytes,
        statistics.queued_bytes,
    )
