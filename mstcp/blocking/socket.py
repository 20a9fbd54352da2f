"""One connection as a connected `socket.socket`."""

from __future__ import annotations

import contextlib
import errno
import io
import socket as _socket
import struct
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mstcp.blocking.bridge import Bridge, WithTimeout
from mstcp.blocking.deadline import Deadline
from mstcp.errors import ConnectionClosed, LocalProtocolError
from mstcp.stats import ConnectionStats
from mstcp.streams import ConnectionCounters, StreamInfo, StreamSpec

_WHOLE_BYTES = 1 << 23
"""`bytes` up to this size are handed over as they are; longer and other data is copied piece by piece."""
_PIECE_BYTES = 1 << 20
_SEND_FLAGS = _socket.MSG_DONTWAIT | getattr(_socket, "MSG_MORE", 0) | getattr(_socket, "MSG_NOSIGNAL", 0)
_RECEIVE_FLAGS = _socket.MSG_DONTWAIT | _socket.MSG_PEEK | _socket.MSG_WAITALL

Buffer = bytes | bytearray | memoryview


class Socket(WithTimeout):
    """One connection, used as a connected `socket.socket`. Made by `create_connection` and `Listener.accept`.

    One thread may read while another writes. `fileno` is for `select` and its kind alone, and says when bytes
    are in order; there may always be room to write by it.
    """

    type = _socket.SOCK_STREAM
    proto = _socket.IPPROTO_TCP

    def __init__(self, bridge: Bridge, timeout: float | None) -> None:
        self._bridge = bridge
        self._timeout = timeout
        self._write_ended = False
        self._resets = False
        # Files over it that are open keep the connection, as with `socket`.
        self._files = 0
        self._is_closed = False
        self._reading = threading.Lock()
        self._writing = threading.Lock()

    # --- sending --------------------------------------------------------------------------------------------
    def sendall(self, data: Buffer, flags: int = 0) -> None:
        """Send all of `data`, waiting while too much is queued; the timeout is for all of it.

        Of the flags there are MSG_DONTWAIT, MSG_MORE and MSG_NOSIGNAL.

        Raises:
            TimeoutError: Not all could be queued in time; what was is sent.
            BlockingIOError: The timeout is 0 and the queue is full.
            ConnectionLost: The connection broke.
            ConnectionClosed: The socket was closed.
            LocalProtocolError: `shutdown` ended this direction before.
        """
        deadline = self._deadline(flags, _SEND_FLAGS)
        with deadline.holding(self._writing):
            self._check_writing()
            if isinstance(data, bytes) and len(data) <= _WHOLE_BYTES:
                if data:
                    self._bridge.put(data, deadline)
                return
            with memoryview(data) as view, view.cast("B") as rest:
                for start in range(0, len(rest), _PIECE_BYTES):
                    self._bridge.put(bytes(rest[start : start + _PIECE_BYTES]), deadline)

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Send a part of `data` at least, and return how much; see `sendall`."""
        with memoryview(data) as view, view.cast("B") as rest:
            piece = bytes(rest[:_PIECE_BYTES])
        self.sendall(piece, flags)
        return len(piece)

    def _deadline(self, flags: int, known: int) -> Deadline:
        if flags & ~known:
            what = f"flags {flags & ~known:#x} are not among those of an MSTCP connection"
            raise OSError(errno.EOPNOTSUPP, what)
        return Deadline(0.0 if flags & _socket.MSG_DONTWAIT else self._timeout)

    def _check_writing(self) -> None:
        self._bridge.check_open()
        if self._write_ended:
            raise LocalProtocolError("shutdown() ended this direction: nothing can be sent after it")

    # --- receiving ------------------------------------------------------------------------------------------
    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return up to `size` bytes as soon as there are some; b"" at the end of the peer's bytes.

        Of the flags there are MSG_PEEK (they are received again), MSG_WAITALL and MSG_DONTWAIT.

        Raises:
            TimeoutError: Nothing came in time.
            BlockingIOError: The timeout is 0 and nothing is there.
            ConnectionLost: The connection broke; bytes that came before are returned first.
            ConnectionClosed: The socket was closed.
        """
        if size < 0:
            raise ValueError(f"the size must not be negative: {size}")
        deadline = self._deadline(flags, _RECEIVE_FLAGS)
        if size == 0:
            return b""
        with deadline.holding(self._reading):
            data = self._bridge.receive(size, deadline, keeps=bool(flags & _socket.MSG_PEEK))
            if flags & _socket.MSG_WAITALL and not flags & _socket.MSG_PEEK:
                while (
                    data and len(data) < size and (more := self._bridge.receive(size - len(data), deadline))
                ):
                    data += more
            return data

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0, flags: int = 0) -> int:
        """Receive up to `nbytes` bytes (0: what fits); return how many, 0 at the end. See `recv`."""
        with memoryview(buffer) as view, view.cast("B") as room:
            size = min(nbytes, len(room)) if nbytes else len(room)
            if size == 0:
                return 0
            if flags:
                data = self.recv(size, flags)
                room[: len(data)] = data
                return len(data)
            deadline = Deadline(self._timeout)
            with room[:size] as wanted, deadline.holding(self._reading):
                return self._bridge.receive_into(wanted, deadline)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `recv` would return at once; -1 once closed.

        It is an eventfd of the connection, for `select` and its kind: nothing is to be read from it.
        """
        return self._bridge.fileno()

    def makefile(
        self,
        mode: str = "r",
        buffering: int | None = None,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Return a file over the connection, as `socket.makefile`; the last of it and this closes."""
        if not mode or not set(mode) <= set("rwb"):
            raise ValueError(f"the mode is made of r, w and b, not {mode!r}")
        if buffering == 0 and "b" not in mode:
            raise ValueError("text needs a buffer: use mode 'b' with buffering=0")
        self._files += 1
        raw = _RawFile(self, "r" in mode or "w" not in mode, "w" in mode)
        if buffering == 0:
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
            bridge.end_reading()

    def close(self) -> None:
        """Close; returns at once, what was sent still goes out. Threads that wait get ConnectionClosed.

        To know that the peer has everything: `shutdown(SHUT_WR)`, then `recv` until b"". The end of the
        process waits some seconds for connections that were closed.
        """
        self._is_closed = True
        if self._files <= 0:
            self._close()

    def _close(self) -> None:
        bridge = self._bridge
        if bridge.closed:
            return
        if self._resets:
            bridge.later(bridge.transport.abort)
        bridge.close()

    def release_file(self) -> None:
        """Note that a file over the connection was closed."""
        self._files -= 1
        if self._is_closed and self._files <= 0:
            self._close()

    def abort(self) -> None:
        """Close at once and send nothing more: the peer gets ConnectionLost."""
        self._bridge.later(self._bridge.transport.abort)
        self._is_closed = True
        self._close()

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        bridge = getattr(self, "_bridge", None)
        if bridge is None or bridge.closed or bridge.background.forked:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
        bridge.close()

    def __repr__(self) -> str:
        state = "closed" if self._bridge.closed else f"to {self._bridge.transport.get_extra_info('peername')}"
        return f"<mstcp.blocking.Socket {state}>"

    @contextlib.contextmanager
    def watched(self, told: Callable[[], None]) -> Iterator[None]:
        """Have a function called, in the library's thread, when `recv` or `send` may wait no more."""
        watchers, lock = self._bridge.watchers, self._bridge.changed
        with lock:
            watchers.append(told)
        try:
            yield
        finally:
            with lock:
                watchers.remove(told)

    # --- what it is -----------------------------------------------------------------------------------------
    def setsockopt(self, level: int, optname: int, value: Any, optlen: int | None = None) -> None:
        """Set an option on the sockets of all streams, those that come later included.

        SO_LINGER with a time of 0 has `close` reset the connection; other times change nothing.

        Raises:
            OSError: The system refuses the option, or the library sets it itself.
        """
        if (level, optname) == (_socket.SOL_SOCKET, _socket.SO_LINGER):
            is_on, seconds = struct.unpack("ii", value)
            self._resets = bool(is_on) and not seconds
            return
        option = (level, optname, value) if optlen is None else (level, optname, value, optlen)
        self._bridge.background.call(lambda: self._bridge.transport.set_option(option))

    def getsockopt(self, level: int, optname: int, *buflen: int) -> Any:
        """Return an option of the first stream's socket."""
        sock = self.get_extra_info("socket")
        if sock is None:
            raise ConnectionClosed("the socket was closed")
        return sock.getsockopt(level, optname, *buflen)

    @property
    def family(self) -> int:
        """The family of its addresses."""
        return _socket.AF_INET6 if ":" in str(self.getsockname()[0]) else _socket.AF_INET

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
        """Detect a peer that has gone; see `ConnectionTransport.set_keepalive`."""
        self._bridge.background.call(lambda: self._bridge.transport.set_keepalive(idle_s, probes))

    def start_trace(self, path: str) -> None:
        """Write a qlog-style trace; see `ConnectionTransport.start_trace`."""
        self._bridge.background.call(lambda: self._bridge.transport.start_trace(path))

    def add_stream(self, spec: StreamSpec) -> int:
        """Open a further stream, and return its index; see `ConnectionTransport.add_stream`."""
        return self._bridge.background.run(self._bridge.transport.add_stream(spec))

    def network_changed(self) -> None:
        """Learn that this host's addresses have changed; see `ConnectionTransport.network_changed`."""
        self._bridge.background.call(self._bridge.transport.network_changed)

    def remove_stream(self, index: int) -> None:
        """Remove a stream; see `ConnectionTransport.remove_stream`."""
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

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._sock.release_file()
