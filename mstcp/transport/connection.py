"""asyncio's interface of a connection.

`asyncio.StreamReader` and `asyncio.StreamWriter` work on it unchanged; `try_write` and `counters` are what
it has beyond asyncio's transports.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING, Any, BinaryIO

from mstcp.checks import check_whole
from mstcp.errors import ConnectionClosed, LocalProtocolError
from mstcp.transport.base import Setup
from mstcp.transport.defaults import SEND_QUEUE_BYTES
from mstcp.transport.ending import ABORTED
from mstcp.transport.lending import Lending

if TYPE_CHECKING:
    from typing_extensions import Self

LOGGER = logging.getLogger("mstcp")
FILE_PIECE_BYTES = 1 << 22
"""What of a file is queued at a time."""
_DROPPED_WRITES_TOLD = 5


class ConnectionTransport(Lending):
    """One connection over its streams; with a single plain stream, TCP as it is.

    Made by `open_connection` and `start_server`. All methods belong to the event loop's thread.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._send_buffer_bytes = setup.send_buffer_bytes
        self._dropped_writes = 0
        self.set_write_buffer_limits()
        for index in range(len(self._streams)):
            self._pace(index)

    def start(self, opening: bytes = b"") -> None:
        """Begin: tell the protocol, then read. `opening` are bytes that came before (plain TCP).

        What the protocol's `connection_made` raises goes on to the caller, who ends the connection.
        """
        self._is_started = True
        self._protocol.connection_made(self)
        if opening:
            self._core.receive(0, opening)
            self._deliver()
        self._watch_reading()
        for index, stream in enumerate(self._streams):
            self._expect_decrypted(index, stream)
        self._pump()

    # --- asyncio.BaseTransport ------------------------------------------------------------------------------
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the protocol that gets the bytes."""
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self._protocol = protocol  # type: ignore[assignment]
        self._delivery.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return asyncio's `peername`, `sockname`, `socket`, or ours.

        `streams` (list of StreamInfo), `counters`, `protocol` ("mstcp" or "tcp"), `frame_payload_bytes`
        (application bytes that fill one packet), `sockets`, `connection_id`, `allocation`.
        """
        if name == "streams":
            return self.streams()
        if name == "counters":
            return self.counters()
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

        The sockets stay until the peer has acknowledged everything and ended a stream too, 2 s at most after
        the last byte was handed over: closing before could reset the connection under data in flight.
        """
        if self._closing:
            return
        self._closing = self._delivery.is_stopped = True
        self._end()
        self._watch_reading()
        self._linger()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and its allocation given back."""
        while not self._is_gone:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._end_waiters.append(waiter)
            await waiter

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close; at once, if the block raised."""
        if kind is None:
            self.close()
        else:
            self.abort()
        await self.wait_closed()

    def abort(self) -> None:
        """Close at once, sending nothing more; the peer sees a broken connection."""
        if not self._closed:
            self._say_closed(ABORTED, "the application gave the connection up")
        self._finish(None, reset=True)

    # --- asyncio.ReadTransport ------------------------------------------------------------------------------
    def is_reading(self) -> bool:
        """Return whether the protocol gets bytes as they come."""
        return not (self._closing or self._delivery.is_paused)

    def pause_reading(self) -> None:
        """Read no stream until `resume_reading`."""
        self._delivery.is_paused = True
        self._watch_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._delivery.is_paused:
            self._delivery.is_paused = False
            self._loop.call_soon(self._resume)

    # --- asyncio.WriteTransport -----------------------------------------------------------------------------
    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Queue and send bytes.

        After `close` or the connection's loss they are dropped, as with asyncio's transports: `drain` and
        `read` tell of the loss, and the fifth such write logs a warning.

        Raises:
            BufferLimitExceeded: 64 MiB wait already: the application does not await drain().
            LocalProtocolError: write_eof() was called before.
            TypeError: `data` is not bytes-like.
        """
        octets = _octets(data)
        if self._eof_sent and not self._closing:
            raise LocalProtocolError("write_eof() was called: nothing can be written after it")
        if self._closing:
            self._note_dropped_write()
        elif self._direct is not None:
            self._note(self._direct.write_now(time.monotonic_ns(), octets))
        else:
            self._core.write(octets)
            self._pump()

    def _note_dropped_write(self) -> None:
        self._dropped_writes += 1
        if self._dropped_writes == _DROPPED_WRITES_TOLD:
            LOGGER.warning("write() was called %d times on a closed connection", self._dropped_writes)

    def try_write(self, data: bytes | bytearray | memoryview[Any]) -> bool:
        """Take all of `data` if the send buffer has room for it, or nothing at all.

        Returns:
            Whether the data was taken.

        Raises:
            ConnectionLost: The connection broke.
            ConnectionClosed: close() was called before.
            LocalProtocolError: write_eof() was called before, or `data` would not fit into an empty buffer.
        """
        octets = _octets(data)
        if self._lost is not None:
            raise self._lost
        if self._closing:
            raise ConnectionClosed("the connection was closed: nothing can be written any more")
        if self._eof_sent:
            raise LocalProtocolError("write_eof() was called: nothing can be written after it")
        core = self._core
        limit = self._send_buffer_bytes
        size = len(octets)
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
        core.write(octets)
        self._pump()
        return True

    async def sendfile(self, file: BinaryIO, offset: int = 0, count: int | None = None) -> int:
        """Send a file without copying it, and return how many bytes were queued.

        Waits as `drain` does. The file must not be cut short until the peer has acknowledged it. Over TLS
        and on a plain connection it is read and written.

        Args:
            file: Opened for reading in binary mode.
            offset: Where to begin.
            count: How many bytes; None: up to the end.

        Raises:
            ConnectionLost: The connection broke.
            LocalProtocolError: The connection was closed, or write_eof() was called before.
        """
        check_whole("offset", offset, 0, 2**62)
        check_whole("count", count, 0, 2**62, optional=True)
        end = os.fstat(file.fileno()).st_size
        if count is not None:
            end = min(end, offset + count)
        at = offset
        while at < end:
            await self._wait_for_room()
            if self._lost is not None:
                raise self._lost
            if self._closing or self._eof_sent:
                raise LocalProtocolError("the connection was closed: the file cannot be sent")
            size = min(end - at, FILE_PIECE_BYTES)
            if self._direct is not None:
                self._direct.write_file(file.fileno(), at, size)
            else:
                self._core.write(os.pread(file.fileno(), size, at))
            at += size
            self._pump()
        return max(0, at - offset)

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

    def _check_fits(self, size: int, limit: int) -> None:
        if size > limit:
            raise LocalProtocolError(
                f"{size} bytes never fit into a send buffer of {limit}: write them in pieces"
            )


def _octets(data: bytes | bytearray | memoryview[Any]) -> bytes:
    """Return what is to be written as `bytes`, without a copy where it is that already."""
    if isinstance(data, bytes):
        return data
    if not isinstance(data, (bytearray, memoryview)):
        raise TypeError(f"data must be bytes, bytearray or memoryview, not {type(data).__name__!r}")
    return bytes(data)
