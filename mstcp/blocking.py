"""Connections for programs without an event loop: `create_connection` and `create_server`, as in `socket`.

    with mstcp.blocking.create_connection(("10.0.0.3", 9000), streams=streams) as sock:
        sock.sendall(data)

All connections are carried by one event loop in a thread of its own (mstcp/background.py), so that
acknowledgements, streams that are lost and rates that change do not wait for the application.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import socket as _socket
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from mstcp.background import FORKED, BackgroundLoop, background
from mstcp.client import create_connection as _open
from mstcp.errors import ConnectionClosed, LocalProtocolError, MstcpError
from mstcp.server import Server
from mstcp.server import create_server as _serve
from mstcp.stats import ConnectionStats
from mstcp.streams import ConnectionCounters, StreamInfo
from mstcp.transport import ConnectionTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mstcp.options import ClientArguments, ServerArguments

__all__ = ["Listener", "Socket", "create_connection", "create_server"]

LOGGER = logging.getLogger("mstcp")

RECEIVED_BYTES = 1 << 21
"""What waits for `recv` before no more is taken from the connection, whose window then closes."""
DEFAULT_BACKLOG = 128
QUEUED_BYTES = 1 << 21
"""What `send` leaves to the background before it waits."""
_WHOLE_BYTES = 1 << 23
"""`bytes` up to this size are handed over as they are; longer and other data is copied piece by piece."""
_PIECE_BYTES = 1 << 20
_JOINED_BYTES = 1 << 14

Buffer = bytes | bytearray | memoryview


class _Deadline:
    """What is left of a timeout; None: for ever."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout
        self._at_once = timeout == 0

    def wait(self, changed: threading.Condition) -> None:
        """Wait for a change, as long as there is time."""
        if self._end is None:
            changed.wait()
            return
        left = self._end - time.monotonic()
        if left <= 0:
            if self._at_once:
                raise BlockingIOError("the operation would have to wait, and the timeout is 0")
            raise TimeoutError("timed out")
        changed.wait(left)


class _Bridge(asyncio.Protocol):
    """What the event loop's thread and the application's threads share of one connection."""

    def __init__(self, background: BackgroundLoop, on_made: Callable[[_Bridge], None] | None = None) -> None:
        self.background = background
        self.transport: ConnectionTransport
        lock = threading.Lock()
        # Readers and writers wait apart, so that each is woken by its own news alone.
        self.readable = threading.Condition(lock)
        self.writable = threading.Condition(lock)
        self.chunks: deque[bytes | memoryview] = deque()
        self.chunk_bytes = 0
        self.ended = False
        self.error: BaseException | None = None
        self.closed = False
        self._on_made = on_made
        self._reading_paused = False
        self._writing_paused = False
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._flush_due = False
        # Told, besides the conditions, whenever one of them is.
        self.watchers: list[Callable[[], None]] = []

    def _tell(self) -> None:
        for watcher in self.watchers:
            watcher()

    # --- in the event loop's thread -------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(ConnectionTransport, transport)
        self.transport.set_write_buffer_limits(high=QUEUED_BYTES)
        self.background.transports.add(self.transport)
        if self._on_made is not None:
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        with self.readable:
            self.chunks.append(data)
            self.chunk_bytes += len(data)
            if self.chunk_bytes >= RECEIVED_BYTES and not self._reading_paused:
                self._reading_paused = True
                self.transport.pause_reading()
            self.readable.notify()
            self._tell()

    def eof_received(self) -> bool:
        with self.readable:
            self.ended = True
            self.readable.notify_all()
            self._tell()
        return True

    def pause_writing(self) -> None:
        with self.writable:
            self._writing_paused = True

    def resume_writing(self) -> None:
        with self.writable:
            self._writing_paused = False
            self.writable.notify_all()
            self._tell()

    def connection_lost(self, exc: BaseException | None) -> None:
        with self.readable:
            self.error = exc or ConnectionClosed("the connection is closed")
            self.readable.notify_all()
            self.writable.notify_all()
            self._tell()

    def _flush(self) -> None:
        with self.writable:
            pieces, self._outbox, self._outbox_bytes = self._outbox, [], 0
            self._flush_due = False
        try:
            for piece in _joined(pieces):
                self.transport.write(piece)
        except MstcpError as error:
            LOGGER.debug("bytes written to a connection that is closed: %s", error)
        with self.writable:
            if not self._writing_paused:
                self.writable.notify_all()
                self._tell()

    def _resume(self) -> None:
        self._reading_paused = False
        self.transport.resume_reading()

    # --- in the application's threads -----------------------------------------------------------------------
    def later(self, function: Callable[[], object]) -> None:
        """Have the event loop's thread run a function, after what was asked for before."""
        if not self.background.forked:
            self.background.loop.call_soon_threadsafe(function)

    def check_open(self) -> None:
        """Raise what keeps this side from using the connection."""
        if self.closed:
            raise ConnectionClosed("the socket was closed")
        if self.background.forked:
            raise ConnectionClosed(FORKED)

    def put(self, piece: bytes, deadline: _Deadline) -> None:
        """Queue a piece once there is room."""
        with self.writable:
            while True:
                self.check_open()
                if self.error is not None:
                    raise self.error
                if not self._writing_paused and self._outbox_bytes < QUEUED_BYTES:
                    break
                deadline.wait(self.writable)
            self._outbox.append(piece)
            self._outbox_bytes += len(piece)
            if not self._flush_due:
                # In this order Ctrl-C between the two costs no more than a needless call.
                self.later(self._flush)
                self._flush_due = True

    def take(self, size: int, deadline: _Deadline) -> list[bytes | memoryview]:
        """Return pieces of up to `size` bytes together as soon as there are some; none at the end."""
        with self.readable:
            while not self.chunks:
                self.check_open()
                if self.ended:
                    return []
                if self.error is not None:
                    raise self.error
                deadline.wait(self.readable)
            self.check_open()
            taken: list[bytes | memoryview] = []
            while self.chunks and size > 0:
                chunk = self.chunks.popleft()
                if len(chunk) > size:
                    view = memoryview(chunk)
                    self.chunks.appendleft(view[size:])
                    chunk = view[:size]
                taken.append(chunk)
                size -= len(chunk)
                self.chunk_bytes -= len(chunk)
            if self._reading_paused and self.chunk_bytes <= RECEIVED_BYTES // 2:
                self.later(self._resume)
            return taken


def _joined(pieces: list[bytes]) -> list[bytes]:
    """Return the pieces with runs of small ones made one."""
    joined: list[bytes] = []
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _JOINED_BYTES:
            small.append(piece)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined


class _WithTimeout:
    """What a socket and a listener have in common."""

    _timeout: float | None

    def settimeout(self, timeout: float | None) -> None:
        """Set how many seconds an operation may wait; None: for ever, 0: not at all."""
        if timeout is not None and timeout < 0:
            raise ValueError(f"the timeout must not be negative: {timeout}")
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Return the timeout in seconds."""
        return self._timeout


class Socket(_WithTimeout):
    """One connection, used as a connected `socket.socket`. Made by `create_connection` and `Listener.accept`.

    One thread may read while another writes. There is no `fileno`: the streams' sockets say nothing about
    what is in order, so `select` would mislead.
    """

    def __init__(self, bridge: _Bridge, timeout: float | None) -> None:
        self._bridge = bridge
        self._timeout = timeout
        self._write_ended = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()

    # --- sending --------------------------------------------------------------------------------------------
    def sendall(self, data: Buffer) -> None:
        """Send all of `data`, waiting while too much is queued; the timeout is for all of it.

        Raises:
            TimeoutError: Not all could be queued in time; what was is sent.
            BlockingIOError: The timeout is 0 and the queue is full.
            ConnectionLost: The connection broke.
            ConnectionClosed: The socket was closed.
            LocalProtocolError: `shutdown` ended this direction before.
        """
        deadline = _Deadline(self._timeout)
        with self._writing:
            self._check_writing()
            if isinstance(data, bytes) and len(data) <= _WHOLE_BYTES:
                if data:
                    self._bridge.put(data, deadline)
                return
            with memoryview(data) as view, view.cast("B") as rest:
                for start in range(0, len(rest), _PIECE_BYTES):
                    self._bridge.put(bytes(rest[start : start + _PIECE_BYTES]), deadline)

    def send(self, data: Buffer) -> int:
        """Send a part of `data` at least, and return how much; see `sendall`."""
        with memoryview(data) as view, view.cast("B") as rest:
            piece = bytes(rest[:_PIECE_BYTES])
        self.sendall(piece)
        return len(piece)

    def _check_writing(self) -> None:
        self._bridge.check_open()
        if self._write_ended:
            raise LocalProtocolError("shutdown() ended this direction: nothing can be sent after it")

    # --- receiving ------------------------------------------------------------------------------------------
    def recv(self, size: int) -> bytes:
        """Return up to `size` bytes as soon as there are some; b"" at the end of the peer's bytes.

        Raises:
            TimeoutError: Nothing came in time.
            BlockingIOError: The timeout is 0 and nothing is there.
            ConnectionLost: The connection broke; bytes that came before are returned first.
            ConnectionClosed: The socket was closed.
        """
        if size < 0:
            raise ValueError(f"the size must not be negative: {size}")
        if size == 0:
            return b""
        deadline = _Deadline(self._timeout)
        with self._reading:
            taken = self._bridge.take(size, deadline)
        return bytes(taken[0]) if len(taken) == 1 else b"".join(taken)

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0) -> int:
        """Receive up to `size` bytes (0: what fits); return how many, 0 at the end. See `recv`."""
        with memoryview(buffer) as view, view.cast("B") as room:
            size = min(size, len(room)) if size else len(room)
            if size == 0:
                return 0
            deadline = _Deadline(self._timeout)
            with self._reading:
                taken = self._bridge.take(size, deadline)
            at = 0
            for piece in taken:
                room[at : at + len(piece)] = piece
                at += len(piece)
            return at

    def makefile(
        self,
        mode: str = "r",
        buffering: int | None = None,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Return a file over the connection, as `socket.makefile`; closing it does not close this."""
        if not mode or not set(mode) <= set("rwb"):
            raise ValueError(f"the mode is made of r, w and b, not {mode!r}")
        raw = _RawFile(self, "r" in mode or "w" not in mode, "w" in mode)
        if buffering == 0:
            if "b" not in mode:
                raise ValueError("text needs a buffer: use mode 'b' with buffering=0")
            return raw
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 0 else buffering
        buffered: Any
        if raw.readable() and raw.writable():
            buffered = io.BufferedRWPair(raw, raw, size)
        else:
            buffered = io.BufferedReader(raw, size) if raw.readable() else io.BufferedWriter(raw, size)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline)

    # --- the end --------------------------------------------------------------------------------------------
    def shutdown(self, how: int) -> None:
        """End a direction: `socket.SHUT_WR` after what was sent, `SHUT_RD`, or both with `SHUT_RDWR`."""
        if how not in (_socket.SHUT_RD, _socket.SHUT_WR, _socket.SHUT_RDWR):
            raise ValueError(f"shut down SHUT_RD, SHUT_WR or SHUT_RDWR, not {how!r}")
        bridge = self._bridge
        bridge.check_open()
        if how != _socket.SHUT_RD and not self._write_ended:
            self._write_ended = True
            bridge.later(bridge.transport.write_eof)
        if how != _socket.SHUT_WR:
            bridge.eof_received()

    def close(self) -> None:
        """Close; returns at once, what was sent still goes out. Threads that wait get ConnectionClosed.

        To know that the peer has everything: `shutdown(SHUT_WR)`, then `recv` until b"". The end of the
        process waits some seconds for connections that were closed.
        """
        bridge = self._bridge
        if bridge.closed:
            return
        with bridge.readable:
            bridge.closed = True
            bridge.chunks.clear()
            bridge.readable.notify_all()
            bridge.writable.notify_all()
            bridge._tell()
        bridge.later(bridge.transport.close)

    def abort(self) -> None:
        """Close at once and send nothing more: the peer gets ConnectionLost."""
        self._bridge.later(self._bridge.transport.abort)
        self.close()

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        bridge = getattr(self, "_bridge", None)
        if bridge is None or bridge.closed or bridge.background.forked:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
        bridge.closed = True
        bridge.later(bridge.transport.close)

    def __repr__(self) -> str:
        state = "closed" if self._bridge.closed else f"to {self._bridge.transport.get_extra_info('peername')}"
        return f"<mstcp.blocking.Socket {state}>"

    @contextlib.contextmanager
    def watched(self, told: Callable[[], None]) -> Iterator[None]:
        """Have a function called, in the library's thread, when `recv` or `send` may wait no more."""
        watchers, lock = self._bridge.watchers, self._bridge.readable
        with lock:
            watchers.append(told)
        try:
            yield
        finally:
            with lock:
                watchers.remove(told)

    # --- what it is -----------------------------------------------------------------------------------------
    def getpeername(self) -> Any:
        """Return the peer's address on the first stream."""
        return self.get_extra_info("peername")

    def getsockname(self) -> Any:
        """Return our address on the first stream."""
        return self.get_extra_info("sockname")

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what `ConnectionTransport.get_extra_info` returns."""
        return self._bridge.background.call(lambda: self._bridge.transport.get_extra_info(name, default))

    def counters(self) -> ConnectionCounters:
        """Return what the connection has carried; see `ConnectionTransport.counters`."""
        return self._bridge.background.call(self._bridge.transport.counters)

    def stats(self) -> ConnectionStats:
        """Return how the connection is now; see `ConnectionTransport.stats`."""
        return self._bridge.background.call(self._bridge.transport.stats)

    def set_keepalive(self, idle_s: float | None, probes: int = 3) -> None:
        """Ask for signs of life; see `ConnectionTransport.set_keepalive`."""
        self._bridge.background.call(lambda: self._bridge.transport.set_keepalive(idle_s, probes))

    def start_trace(self, path: str) -> None:
        """Write a qlog-style trace; see `ConnectionTransport.start_trace`."""
        self._bridge.background.call(lambda: self._bridge.transport.start_trace(path))

    def remove_stream(self, index: int) -> None:
        """Take a stream out; see `ConnectionTransport.remove_stream`."""
        self._bridge.background.call(lambda: self._bridge.transport.remove_stream(index))

    def streams(self) -> list[StreamInfo]:
        """Return the streams as they are now."""
        return self._bridge.background.call(self._bridge.transport.streams)

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """Give running streams new rates; see `ConnectionTransport.set_rates`."""
        self._bridge.background.call(lambda: self._bridge.transport.set_rates(rates))


class _RawFile(io.RawIOBase):
    """A connection as an unbuffered file."""

    def __init__(self, sock: Socket, reads: bool, writes: bool) -> None:
        super().__init__()
        self._sock = sock
        self._reads = reads
        self._writes = writes

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def readinto(self, buffer: Any) -> int | None:
        try:
            return self._sock.recv_into(buffer)
        except BlockingIOError:
            return None

    def write(self, data: Any) -> int | None:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return None


class Listener(_WithTimeout):
    """A listening server, used as a listening `socket.socket`. Made by `create_server`."""

    def __init__(self, loop: BackgroundLoop, timeout: float | None, waiting: int) -> None:
        self._background = loop
        self._server: Server
        self._timeout = timeout
        self._most_waiting = waiting
        self._arrived = threading.Condition()
        self._waiting: deque[_Bridge] = deque()
        self._closed = False
        self._watchers: list[Callable[[], None]] = []

    def make_bridge(self) -> _Bridge:
        """Return the protocol of a connection that comes in."""
        return _Bridge(self._background, self._made)

    def serve(self, server: Server) -> None:
        """Take what this server accepts."""
        self._server = server

    def _made(self, bridge: _Bridge) -> None:
        with self._arrived:
            if not self._closed and len(self._waiting) < self._most_waiting:
                self._waiting.append(bridge)
                self._arrived.notify()
                for watcher in self._watchers:
                    watcher()
                return
        LOGGER.warning("a connection was turned away: %d wait for accept() already", self._most_waiting)
        bridge.closed = True
        bridge.transport.abort()

    def accept(self) -> tuple[Socket, Any]:
        """Wait for a connection; return its socket (without a timeout) and the peer's address.

        Raises:
            TimeoutError: None came in time.
            BlockingIOError: The timeout is 0 and none is there.
            ConnectionClosed: The listener was closed.
        """
        deadline = _Deadline(self._timeout)
        with self._arrived:
            while not self._waiting:
                if self._closed or self._background.forked:
                    raise ConnectionClosed("the listener was closed")
                deadline.wait(self._arrived)
            bridge = self._waiting.popleft()
        sock = Socket(bridge, None)
        return sock, sock.getpeername()

    @contextlib.contextmanager
    def watched(self, told: Callable[[], None]) -> Iterator[None]:
        """Have a function called, in the library's thread, whenever `accept` may have to wait no more."""
        with self._arrived:
            self._watchers.append(told)
        try:
            yield
        finally:
            with self._arrived:
                self._watchers.remove(told)

    def getsockname(self) -> Any:
        """Return the address it listens on (the first, if the name stands for several)."""
        if self._closed:
            raise ConnectionClosed("the listener was closed")
        return self._server.sockets[0].getsockname()

    def close(self) -> None:
        """Stop listening, and reset connections that were not accepted; those that were go on."""
        with self._arrived:
            if self._closed:
                return
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._arrived.notify_all()
            for watcher in self._watchers:
                watcher()
        if self._background.forked:
            return

        def stop() -> None:
            self._server.close()
            for bridge in left:
                bridge.transport.abort()

        self._background.call(stop)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create_connection(
    address: tuple[str, int], *, timeout: float | None = None, **options: Unpack[ClientArguments]
) -> Socket:
    """Open a connection of one or more streams; use it as a connected socket.

    Args:
        address: Host name or address, and port.
        timeout: Seconds that opening may take, and the socket's timeout after; None: no limit of ours.
        options: Those of `mstcp.open_connection`, without `limit`: `rate`, `controller`, `streams` …

    Raises:
        TimeoutError: The connection was not there in time.
        LocalProtocolError: The arguments contradict each other or are out of range.
        ControllerError: The controller refused the request, or could not be reached.
        OSError: No stream could be connected.
    """
    host, port = address[:2]
    sock = background().run(connecting(host, port, options), timeout)
    sock.settimeout(timeout)
    return sock


async def connecting(host: str, port: int, options: ClientArguments) -> Socket:
    """Open a connection, in the library's thread."""
    loop = background()
    _, bridge = await _open(lambda: _Bridge(loop), host, port, **options)
    return Socket(bridge, None)


def create_server(
    address: tuple[str | None, int],
    *,
    timeout: float | None = None,
    **options: Unpack[ServerArguments],
) -> Listener:
    """Listen for connections, MSTCP and plain TCP; `accept` returns them.

    Args:
        address: Host name or address (None: 127.0.0.1), and port (0: the system chooses).
        timeout: Seconds that `accept` may wait; None: for ever.
        options: Those of `mstcp.start_server`, without `limit` and `client_connected_cb`. `backlog` is also
            how many connections may wait for `accept`; more are reset.

    Raises:
        LocalProtocolError: The arguments contradict each other.
        OSError: The address is not this host's, or the port is taken.
    """
    host, port = address[:2]
    listener = background().run(listening(host, port, options))
    listener.settimeout(timeout)
    return listener


async def listening(host: str | None, port: int, options: ServerArguments) -> Listener:
    """Listen, in the library's thread."""
    listener = Listener(background(), None, options.get("backlog", DEFAULT_BACKLOG))
    listener.serve(await _serve(listener.make_bridge, host, port, **options))
    return listener
