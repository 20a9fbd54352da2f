"""asyncio's interface of a connection.

`asyncio.StreamReader` and `asyncio.StreamWriter` work on it unchanged; `try_write` and `counters` are what
it has beyond asyncio's transports.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from asyncio import constants
from typing import TYPE_CHECKING, Any, BinaryIO

from mstcp import network
from mstcp.checks import check_whole
from mstcp.errors import ConnectionClosed, LocalProtocolError
from mstcp.transport.defaults import SEND_QUEUE_BYTES
from mstcp.transport.membership import Membership
from mstcp.transport.setup import Setup
from mstcp.transport.shell import Shell

if TYPE_CHECKING:
    from typing_extensions import Self

LOGGER = logging.getLogger("mstcp")
FILE_PIECE_BYTES = 1 << 22
"""What of a file is queued at a time."""
_DROPPED_WRITES_TOLD = 5


# `loop.sendfile` takes no transport that is not of this class.
class ConnectionTransport(Membership, asyncio.transports._FlowControlMixin):
    """One connection over its streams; with a single plain stream, TCP as it is.

    Made by `open_connection` and `start_server`. All methods belong to the event loop's thread.

    Attributes:
        shell: What applies the driver's actions, for the library's own use.
    """

    # `loop.sendfile` reads the file and writes it; `loop.start_tls` puts TLS into the connection, end to end.
    _sendfile_compatible = constants._SendfileMode.FALLBACK
    _start_tls_compatible = True

    def __init__(self, setup: Setup) -> None:
        self.shell = Shell(setup, self)
        asyncio.transports._FlowControlMixin.__init__(self, loop=setup.loop)
        self._send_buffer_bytes = setup.send_buffer_bytes
        # Bytes that the sockets had sent when the kernel was last asked, headers included.
        self._acknowledged_bytes = 0
        self._dropped_writes = 0
        self._is_ended = False
        self.set_write_buffer_limits()
        Membership.__init__(self, self.shell)

    # What `loop.sendfile` asks.
    @property
    def _protocol_paused(self) -> bool:
        return self.shell.is_paused

    @_protocol_paused.setter
    def _protocol_paused(self, is_paused: bool) -> None:
        self.shell.is_paused = is_paused

    @property
    def is_closed(self) -> bool:
        """Whether the connection is over, and takes no stream any more."""
        return self.shell.is_closed

    @property
    def lost(self) -> BaseException | None:
        """Why the connection is over, if it was not closed."""
        return self.shell.lost

    def unread(self, data: bytes) -> None:
        """Put bytes back that the protocol has got, for the protocol that is set next; reading is paused."""
        if data:
            self.shell.delivery.held.insert(0, data)

    def start(self) -> None:
        """Begin: tell the protocol, then read.

        What the protocol's `connection_made` raises goes on to the caller, who ends the connection.
        """
        shell = self.shell
        shell.protocol.connection_made(self)
        shell.is_started = True
        # A server's sockets may have addresses that are not this host's: those of a gateway.
        if shell.is_client and not shell.is_plain:
            network.follow(shell.loop, self)
        shell.core.start()
        shell.deliver()
        shell.settle()
        if shell.is_client:
            # What the application writes first goes with the first hello.
            shell.loop.call_soon(self._greet)

    def _greet(self) -> None:
        """Have the driver say the first hello, with what was written, if it has not said it."""
        if not self.shell.is_closed:
            self.shell.core.greet(time.monotonic_ns())
            self.shell.apply()

    # --- asyncio.BaseTransport ------------------------------------------------------------------------------
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the protocol that gets the bytes."""
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self.shell.protocol = protocol  # type: ignore[assignment]
        self.shell.delivery.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self.shell.protocol

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
            return "tcp" if self.shell.is_plain else "mstcp"
        if name == "frame_payload_bytes":
            return self.shell.core.frame_payload_bytes
        return self.shell.information.get(name, default)

    def is_closing(self) -> bool:
        """Return whether the connection is closing or closed."""
        return self.shell.is_closing

    def close(self) -> None:
        """Send what is queued and the end, then close; nothing more is received.

        The sockets stay until the peer has acknowledged everything and ended a stream too, 2 s at most after
        the last byte was handed over: closing before could reset the connection under data in flight.
        """
        self.shell.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and its allocation given back."""
        await self.shell.wait_closed()

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
        self.shell.abort()

    def _force_close(self, error: Exception | None) -> None:
        """Do what asyncio's TLS asks of a transport when it fails."""
        self.shell.abort(error)

    # --- asyncio.ReadTransport ------------------------------------------------------------------------------
    def is_reading(self) -> bool:
        """Return whether the protocol gets bytes as they come."""
        return not (self.shell.is_closing or self.shell.delivery.is_paused)

    def pause_reading(self) -> None:
        """Read no stream until `resume_reading`."""
        self.shell.pause()

    def resume_reading(self) -> None:
        """Read again."""
        if self.shell.delivery.is_paused:
            self.shell.delivery.is_paused = False
            self.shell.loop.call_soon(self.shell.resume)

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
        if self._is_ended and not self.shell.is_closing:
            raise LocalProtocolError("write_eof() was called: nothing can be written after it")
        if self.shell.is_closing:
            self._note_dropped_write()
        else:
            self.shell.core.write_now(time.monotonic_ns(), octets)
            self.shell.apply()

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
        if self.shell.lost is not None:
            raise self.shell.lost
        if self.shell.is_closing:
            raise ConnectionClosed("the connection was closed: nothing can be written any more")
        if self._is_ended:
            raise LocalProtocolError("write_eof() was called: nothing can be written after it")
        core = self.shell.core
        limit = self._send_buffer_bytes
        size = len(octets)
        if limit is None:
            if core.queued_bytes + size > SEND_QUEUE_BYTES:
                self._check_fits(size, SEND_QUEUE_BYTES)
                return False
        elif core.queued_bytes + core.sent_bytes - self._acknowledged_bytes + size > limit:
            # What the sockets took is an upper bound of what the kernel still has: ask only when it matters.
            unacknowledged_bytes = core.unacknowledged_bytes
            self._acknowledged_bytes = core.sent_bytes - unacknowledged_bytes
            if core.queued_bytes + unacknowledged_bytes + size > limit:
                self._check_fits(size, limit)
                return False
        core.write_now(time.monotonic_ns(), octets)
        self.shell.apply()
        return True

    async def sendfile(self, file: BinaryIO, offset: int = 0, count: int | None = None) -> int:
        """Send a file without copying it, and return how many bytes were queued.

        Waits as `drain` does. The file must not be cut short until the peer has acknowledged it.

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
            await self.shell.wait_for_room()
            if self.shell.lost is not None:
                raise self.shell.lost
            if self.shell.is_closing or self._is_ended:
                raise LocalProtocolError("the connection was closed: the file cannot be sent")
            size = min(end - at, FILE_PIECE_BYTES)
            self.shell.core.write_file(file.fileno(), at, size)
            at += size
            self.shell.settle()
        return max(0, at - offset)

    def can_write_eof(self) -> bool:
        """Return True: half-close works."""
        return True

    def write_eof(self) -> None:
        """Send the end after what is queued; receiving goes on."""
        if not (self.shell.is_closing or self._is_ended):
            self._is_ended = True
            self.shell.core.end(time.monotonic_ns())
            self.shell.apply()

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
        self._limits = low, high
        self.shell.core.set_write_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return (low, high)."""
        return self._limits

    def get_write_buffer_size(self) -> int:
        """Return the bytes that no socket has taken yet."""
        return self.shell.core.queued_bytes

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
