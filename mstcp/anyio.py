"""Connections with anyio's interface, for programs on asyncio or trio (the extra `anyio`).

    async with await mstcp.anyio.connect("10.0.0.3", 9000, streams=streams) as stream:
        await stream.send(data)

    async with await mstcp.anyio.listen("10.0.0.3", 9000) as listener:
        await listener.serve(handle)

On asyncio the connection lives in the program's event loop. On trio, which has no such loop, it lives in the
library's own thread, as those of `mstcp.blocking` do; no thread waits, and waiting can be cancelled.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mstcp import blocking
from mstcp.background import background
from mstcp.errors import ConnectionClosed, DependencyMissing, LocalProtocolError
from mstcp.open.client import open_connection
from mstcp.open.server import Server, start_server

try:
    import anyio
    import anyio.lowlevel
    import sniffio
    from anyio.abc import ByteStream, Listener, SocketAttribute, TaskGroup
    from anyio.streams.tls import TLSAttribute
except ImportError as error:
    raise DependencyMissing("anyio", "anyio") from error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mstcp.aio.streams import StreamReader, StreamWriter
    from mstcp.options import ClientArguments, ServerArguments

__all__ = ["MstcpListener", "MstcpStream", "connect", "listen"]

T = TypeVar("T")
_BACKLOG = 128
_CLOSE_S = 2.0
"""How long `aclose` waits until the peer has everything; then it breaks the connection, as anyio has it."""


async def connect(host: str, port: int, **options: Unpack[ClientArguments]) -> MstcpStream:
    """Open a connection; see `mstcp.open_connection` for the options and what is raised."""
    if sniffio.current_async_library() == "asyncio":
        return _LoopStream(*await open_connection(host, port, **options))
    sock = await _in_background(blocking.connecting(host, port, options))
    return _ThreadStream(sock)


async def listen(host: str | None = None, port: int = 0, **options: Unpack[ServerArguments]) -> MstcpListener:
    """Listen for connections; see `mstcp.start_server` for the options and what is raised."""
    if sniffio.current_async_library() == "asyncio":
        return await _LoopListener.open(host, port, options)
    return _ThreadListener(await _in_background(blocking.listening(host, port, options)))


class MstcpStream(ByteStream):
    """A connection as anyio's byte stream, with anyio's attributes of sockets and TLS.

    `get_extra_info` is `ConnectionTransport.get_extra_info`.
    """

    def __init__(self) -> None:
        self._receiving = anyio.ResourceGuard("reading from")
        self._sending = anyio.ResourceGuard("writing to")

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """What anyio knows of sockets, of the first stream, and of its TLS."""
        attributes = _addresses(self.get_extra_info("sockname"), self.get_extra_info("socket"))
        if (peer := self.get_extra_info("peername")) is not None:
            attributes[SocketAttribute.remote_address] = lambda: peer[:2]
            attributes[SocketAttribute.remote_port] = lambda: peer[1]
        if (tls := self.get_extra_info("ssl_object")) is not None:
            attributes |= _tls_attributes(tls)
        return attributes

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection; see `ConnectionTransport.get_extra_info`."""
        raise NotImplementedError


class MstcpListener(Listener[MstcpStream]):
    """A listening server as anyio's listener."""

    @property
    def address(self) -> Any:
        """The address it listens on (the first, if the name stands for several)."""
        raise NotImplementedError

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """What anyio knows of listening sockets."""
        return _addresses(self.address, None)


def _addresses(own: Any, raw_socket: Any) -> dict[Any, Callable[[], Any]]:
    family = socket.AF_INET6 if ":" in own[0] else socket.AF_INET
    attributes: dict[Any, Callable[[], Any]] = {
        SocketAttribute.family: lambda: family,
        SocketAttribute.local_address: lambda: own[:2],
        SocketAttribute.local_port: lambda: own[1],
    }
    if raw_socket is not None:
        attributes[SocketAttribute.raw_socket] = lambda: raw_socket
    return attributes


def _tls_attributes(tls: Any) -> dict[Any, Callable[[], Any]]:
    return {
        TLSAttribute.alpn_protocol: tls.selected_alpn_protocol,
        TLSAttribute.channel_binding_tls_unique: tls.get_channel_binding,
        TLSAttribute.cipher: tls.cipher,
        TLSAttribute.peer_certificate: lambda: tls.getpeercert(False),
        TLSAttribute.peer_certificate_binary: lambda: tls.getpeercert(True),
        TLSAttribute.server_side: lambda: tls.server_side,
        TLSAttribute.shared_ciphers: lambda: tls.shared_ciphers() if tls.server_side else None,
        TLSAttribute.ssl_object: lambda: tls,
        TLSAttribute.standard_compatible: lambda: True,
        TLSAttribute.tls_version: tls.version,
    }


def _check_size(max_bytes: int) -> None:
    if max_bytes < 1:
        raise ValueError("max_bytes must be a positive integer")


@contextlib.contextmanager
def _anyio_errors() -> Any:
    """Raise anyio's errors where the connection is closed or broken, or has been ended by `send_eof`."""
    try:
        yield
    except (ConnectionError, LocalProtocolError) as error:
        raise anyio.BrokenResourceError(str(error)) from error
    except ConnectionClosed as error:
        raise anyio.ClosedResourceError(str(error)) from error


# --- in asyncio's loop --------------------------------------------------------------------------------------
class _LoopStream(MstcpStream):
    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._is_closed = False
        self._sends = False
        self._has_ended = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        _check_size(max_bytes)
        with self._receiving:
            await anyio.lowlevel.checkpoint()
            if self._is_closed:
                raise anyio.ClosedResourceError
            with _anyio_errors():
                data = await self._reader.read(max_bytes)
        if self._is_closed:
            raise anyio.ClosedResourceError
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        with self._sending:
            await anyio.lowlevel.checkpoint()
            self._sends = True
            try:
                await self._send(item)
            except anyio.BrokenResourceError:
                if self._is_closed:
                    raise anyio.ClosedResourceError from None
                raise
            finally:
                self._sends = False

    async def _send(self, item: bytes) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError
        if self._has_ended:
            raise anyio.BrokenResourceError("send_eof() ended this direction: nothing can be sent after it")
        with _anyio_errors():
            if (lost := self._writer.transport.lost) is not None:
                raise lost
            # First, so that nothing goes of what is cancelled while it waits for room.
            await self._writer.drain()
            self._writer.write(item)
            await self._writer.drain()
        if self._is_closed:
            raise anyio.ClosedResourceError

    async def send_eof(self) -> None:
        self._has_ended = True
        self._writer.write_eof()

    async def aclose(self) -> None:
        self._is_closed = True
        if self._sends:  # what waits for room will not go
            self.abort()
        self._writer.close()
        self._reader.feed_eof()  # who waits to receive
        is_done = False
        try:
            with anyio.move_on_after(_CLOSE_S), contextlib.suppress(OSError):
                await self._writer.wait_closed()
                is_done = True
        finally:
            if not is_done:  # also where the task is cancelled: `aclose_forcefully` is that
                self.abort()

    def abort(self) -> None:
        """Close at once; the peer sees a break."""
        self._writer.transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._writer.get_extra_info(name, default)


class _LoopListener(MstcpListener):
    def __init__(self) -> None:
        self._server: Server
        self._address: Any = None
        # None: it was closed.
        self._accepted: asyncio.Queue[_LoopStream | None] = asyncio.Queue()

    @classmethod
    async def open(cls, host: str | None, port: int, options: ServerArguments) -> _LoopListener:
        listener = cls()
        listener._server = await start_server(listener._accept, host, port, **options)
        listener._address = listener._server.sockets[0].getsockname()
        return listener

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._accepted.qsize() < _BACKLOG and self._server.is_serving():
            self._accepted.put_nowait(_LoopStream(reader, writer))
        else:
            writer.transport.abort()

    async def _next(self) -> MstcpStream:
        stream = await self._accepted.get()
        if stream is None:
            self._accepted.put_nowait(None)
            raise anyio.ClosedResourceError
        return stream

    async def serve(self, handler: Callable[[MstcpStream], Any], task_group: TaskGroup | None = None) -> None:
        await _serve(self._next, handler, task_group)

    async def aclose(self) -> None:
        self._server.close()
        while not self._accepted.empty():
            if (stream := self._accepted.get_nowait()) is not None:
                stream.abort()
        self._accepted.put_nowait(None)
        await self._server.wait_closed()

    @property
    def address(self) -> Any:
        return self._address


async def _serve(
    accept: Callable[[], Awaitable[MstcpStream]],
    handler: Callable[[MstcpStream], Any],
    task_group: TaskGroup | None,
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        if task_group is None:
            task_group = await stack.enter_async_context(anyio.create_task_group())
        while True:
            task_group.start_soon(handler, await accept())


# --- in the library's thread --------------------------------------------------------------------------------
class _Changed:
    """Wakes tasks of the program's event loop from another thread."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._run_soon = _current_loop()

    def tell(self) -> None:
        """Wake those that wait; from any thread."""
        with contextlib.suppress(RuntimeError):  # the program's loop has ended
            self._run_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


def _current_loop() -> Callable[[Callable[[], object]], object]:
    """Return what has the running event loop call a function soon, from any thread."""
    if sniffio.current_async_library() == "asyncio":
        return asyncio.get_running_loop().call_soon_threadsafe
    import trio

    return trio.lowlevel.current_trio_token().run_sync_soon


async def _in_background(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the library's thread; it is cancelled with the task that waits."""
    changed = _Changed()
    future: concurrent.futures.Future[T] = background().start(coroutine)
    future.add_done_callback(lambda _: changed.tell())
    try:
        await changed.wait()
    except BaseException:
        future.cancel()
        raise
    return future.result()


async def _when_ready(
    attempt: Callable[[], T], watch: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]]
) -> T:
    """Return what `attempt` returns as soon as it would not have to wait."""
    while True:
        changed = _Changed()
        with watch(changed.tell):
            try:
                return attempt()
            except BlockingIOError:
                await changed.wait()


class _ThreadStream(MstcpStream):
    def __init__(self, sock: blocking.Socket) -> None:
        super().__init__()
        sock.settimeout(0)
        self._sock = sock

    async def receive(self, max_bytes: int = 65536) -> bytes:
        _check_size(max_bytes)
        with self._receiving:
            await anyio.lowlevel.checkpoint()
            with _anyio_errors():
                data = await _when_ready(lambda: self._sock.recv(max_bytes), self._sock.watched)
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        with self._sending:
            await anyio.lowlevel.checkpoint()
            rest = memoryview(item)
            while rest:
                with _anyio_errors():
                    piece = rest
                    sent = await _when_ready(lambda: self._sock.send(piece), self._sock.watched)  # noqa: B023
                rest = rest[sent:]

    async def send_eof(self) -> None:
        with _anyio_errors():
            self._sock.shutdown(1)

    async def aclose(self) -> None:
        try:
            await anyio.lowlevel.checkpoint()
        except BaseException:
            self._sock.abort()
            raise
        self._sock.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._sock.get_extra_info(name, default)


class _ThreadListener(MstcpListener):
    def __init__(self, listener: blocking.Listener) -> None:
        listener.settimeout(0)
        self._listener = listener

    async def _accept(self) -> MstcpStream:
        with _anyio_errors():
            sock, _ = await _when_ready(self._listener.accept, self._listener.watched)
        return _ThreadStream(sock)

    async def serve(self, handler: Callable[[MstcpStream], Any], task_group: TaskGroup | None = None) -> None:
        await _serve(self._accept, handler, task_group)

    async def aclose(self) -> None:
        self._listener.close()
        await anyio.lowlevel.checkpoint()

    @property
    def address(self) -> Any:
        return self._listener.getsockname()
