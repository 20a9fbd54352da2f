"""A path: a relay on the loopback that can break in every way."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Sequence

HOST = "127.0.0.1"
_PIECE_BYTES = 1 << 12
_SLOWER = 20
_BUFFER_BYTES = 1 << 14


def limit_buffers(sock: socket.socket) -> None:
    """Let little wait in a relay's socket: a path has no megabytes of its own."""
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)


@contextlib.asynccontextmanager
async def listening(paths: Sequence[Path]) -> AsyncIterator[int]:
    """Listen for a client's streams, and hand each to its own path by its source port; yield the port.

    At the end everything is closed, also what was being opened: nothing is left to the event loop's end.
    """
    order: dict[int, int] = {}
    tasks: set[asyncio.Task[None]] = set()
    is_closed = False

    def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_closed:
            writer.transport.abort()
            return
        source = writer.get_extra_info("peername")[1]
        path = paths[order.setdefault(source, len(order)) % len(paths)]
        task = asyncio.create_task(path.relay(reader, writer))
        tasks.add(task)
        # Also of a task that is cancelled before it begins.
        task.add_done_callback(lambda _: writer.transport.abort())
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(route, HOST, 0, limit=_PIECE_BYTES)
    for sock in server.sockets:
        limit_buffers(sock)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        is_closed = True
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # what was just accepted comes to `route`, and what was aborted ends


class Path:
    """Relays the streams of one path to the server, as fast as `rate_bps`.

    Attributes:
        repaired_s: When it was repaired, until it has carried something since.
        longest_unused_s: The longest time from a repair until it carried something again.
    """

    def __init__(self, server_port: int, rate_bps: float) -> None:
        self._server_port = server_port
        self._rate_bps = rate_bps
        self._loop = asyncio.get_running_loop()
        self._streams: set[_Stream] = set()
        # Whether bytes pass, by direction: from the client, from the server.
        self.passing = [asyncio.Event(), asyncio.Event()]
        self.is_swallowing = False
        self._is_slow = False
        # A fault has ended its streams, and none has carried anything in both directions since.
        self._is_cut = False
        self.repaired_s: float | None = None
        self.longest_unused_s = 0.0
        for event in self.passing:
            event.set()

    def close(self) -> None:
        """End its streams."""
        self.repair()
        self.repaired_s = None
        self.reset()

    def works(self, direction: int) -> bool:
        """Return whether bytes pass in a direction."""
        return self.passing[direction].is_set() and not self.is_swallowing

    def carries(self, direction: int) -> bool:
        """Return whether bytes arrive in a direction, on a stream that is there or a new one (takes both)."""
        return self.works(direction) and (not self._is_cut or self.works(1 - direction))

    def _cut(self) -> None:
        self._is_cut = True
        for stream in self._streams:
            stream.carried = [False, False]

    def reset(self) -> None:
        """Reset what is open; new streams may come."""
        self._cut()
        for stream in list(self._streams):
            stream.reset()

    def stop(self, *directions: int) -> None:
        """Pass nothing on in these directions, until `repair`."""
        for direction in directions:
            self.passing[direction].clear()
        self.repaired_s = None

    def swallow(self) -> None:
        """Throw away what comes, until `repair`, which resets the streams."""
        self._cut()
        self.is_swallowing = True
        self.repaired_s = None

    def half_close(self, direction: int) -> None:
        """End TCP's direction of what is open."""
        self._cut()
        for stream in list(self._streams):
            stream.half_close(direction)

    def slow_down(self) -> None:
        """Carry a twentieth of the rate, until `repair`."""
        self._is_slow = True

    def repair(self) -> None:
        """Carry everything again."""
        was_broken = not (self.works(0) and self.works(1))
        if self.is_swallowing:
            self.is_swallowing = False
            self.reset()
        for event in self.passing:
            event.set()
        self._is_slow = False
        if was_broken:
            self.repaired_s = self._loop.time()

    def note_unused(self) -> None:
        """Count the time since a repair after which nothing was carried yet."""
        if self.repaired_s is not None:
            self.longest_unused_s = max(self.longest_unused_s, self._loop.time() - self.repaired_s)

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one stream in both directions until an end of it breaks; the caller aborts `writer` then."""
        try:
            onward = await self._open_onward()
        except OSError:
            return  # whose caller closes the writer
        for end in (writer, onward[1]):
            end.transport.set_write_buffer_limits(_PIECE_BYTES)
        stream = _Stream([writer, onward[1]])
        self._streams.add(stream)
        try:
            await asyncio.gather(
                self._copy(stream, reader, onward[1], 0), self._copy(stream, onward[0], writer, 1)
            )
        except (OSError, RuntimeError):
            pass  # it was reset, or half closed before all was written
        finally:
            self._streams.discard(stream)
            stream.reset()

    async def _open_onward(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket()
        try:
            sock.setblocking(False)
            limit_buffers(sock)
            await self._loop.sock_connect(sock, (HOST, self._server_port))
            return await asyncio.open_connection(sock=sock, limit=_PIECE_BYTES)
        except BaseException:
            sock.close()
            raise

    async def _copy(
        self, stream: _Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: int
    ) -> None:
        while data := await reader.read(_PIECE_BYTES):
            rate_bps = self._rate_bps / (_SLOWER if self._is_slow else 1)
            await asyncio.sleep(len(data) * 8 / rate_bps)
            await self.passing[direction].wait()
            if self.is_swallowing:
                continue
            writer.write(data)
            await writer.drain()
            self.note_unused()
            self.repaired_s = None
            stream.carried[direction] = True
            self._is_cut &= not all(stream.carried)
        await self.passing[direction].wait()
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()


class _Stream:
    """The two sockets of a stream: the client's and the server's; `carried`: by direction, whether it has."""

    def __init__(self, writers: list[asyncio.StreamWriter]) -> None:
        self._writers = writers
        self.carried = [False, False]

    def reset(self) -> None:
        for writer in self._writers:
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def half_close(self, direction: int) -> None:
        writer = self._writers[1 - direction]
        if not writer.is_closing():
            with contextlib.suppress(OSError):
                writer.write_eof()
