"""Opening the streams of a connection: the first that answers opens it, others join, lost ones come back."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mstcp import _core, sockets
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError
from mstcp.hello import NONCE_BYTES, NoHello, exchange_hellos
from mstcp.open_stream import OpenStream
from mstcp.stats import tcp_info
from mstcp.streams import StreamSpec
from mstcp.tasks import end_tasks
from mstcp.tls import TlsSettings, TlsStream
from mstcp.transport import ConnectionTransport

LOGGER = logging.getLogger("mstcp")

HELLO_DELAY_S = 0.25
"""How long a path may leave the first hello unanswered before another says one (as RFC 8305, section 5), or
two of its round trips if they take longer."""
ROUND_TRIPS = 3
"""How many round trips the first hello may take where the connection itself says it, with the first bytes."""
_TAKEN = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
"""The source port is another's by now; two that come back may bind it (SO_REUSEADDR), and one connects."""
_Source = tuple[str | None, int]
_ERRORS = (MstcpError, OSError, asyncio.TimeoutError)


@dataclass(frozen=True)
class Joined:
    """A stream whose hellos are done.

    Attributes:
        stream: The stream.
        stream_id: Its id in the connection.
    """

    stream: OpenStream
    stream_id: int


@dataclass
class HelloTurns:
    """When a path may say the first hello: a second one opens a second connection, which the server gives up.

    Attributes:
        next_s: From when on, by the loop's clock.
    """

    next_s: float = 0.0


class Opener:
    """Opens the streams of one connection, on all paths at once.

    Args:
        loop: The event loop.
        destination: Socket address of the peer.
        bind: Makes a socket for a stream, bound to a source port, 0 for any.
        turns: Shared with those that try the peer's other addresses.
        may_move: Whether a stream may come back from another source port than this, as nobody named it.
        secret: What both sides know beforehand, if anything.
        payload_bytes: Tells the frame payload to propose, from a connected stream.
        tls: What TLS on each stream needs, if it is wanted.
        early_data: Goes with the first hello.
        connect_s: How long connecting a stream may take at first.
        handshake_s: How long TLS, and the answer to the hello, may take at first.
        join_s: How long the others are waited for once the first stream is open.
        opens_early: Whether the first path that connects is enough: the connection says the hello there.
        has_records: Whether the streams' frames are authenticated by records.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        destination: Any,
        bind: Callable[[StreamSpec, int], socket.socket],
        turns: HelloTurns,
        may_move: Callable[[int], bool],
        secret: bytes | None,
        payload_bytes: Callable[[OpenStream], int],
        tls: TlsSettings | None = None,
        early_data: bytes = b"",
        *,
        connect_s: float = 10.0,
        handshake_s: float = 10.0,
        join_s: float = 0.0,
        opens_early: bool = False,
        has_records: bool = False,
    ) -> None:
        self._join_s = join_s
        self._opens_early = opens_early
        # Says the first hello, where the connection does; done when another path may say it, or need not.
        self.first_client: _core.Client | None = None
        self._turn: asyncio.Future[None] = loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []
        self._is_stopped = False
        self._connect_s = connect_s
        self._handshake_s = handshake_s
        self._has_records = has_records
        self.connection_id = b""
        self.frame_payload_bytes = 0
        self._loop = loop
        self._destination = destination
        self._bind = bind
        self._turns = turns
        self._may_move = may_move
        self._secret = secret or b""
        self._payload_bytes = payload_bytes
        self._tls = tls
        self._early_data = early_data
        self._stream_count = 0
        self._client: _core.Client | None = None
        # By our address and port.
        self._tasks: dict[_Source, asyncio.Task[Any]] = {}
        self._took_s: dict[_Source, float] = {}
        self._transport: ConnectionTransport | None = None
        self._joined: list[Joined] = []
        self._lost: list[StreamSpec] = []

    async def open(self, socks: Sequence[socket.socket], specs: Sequence[StreamSpec]) -> list[Joined]:
        """Open the connection over bound sockets; return its streams, stream 0 first.

        Returns once one is open; the others join as they come.

        Raises:
            MstcpError: No stream could be opened; the error is that of the first path.
            OSError: As above.
        """
        self._stream_count = len(socks)
        first: asyncio.Future[Joined] = self._loop.create_future()
        for sock, spec in zip(socks, specs, strict=True):
            named_spec = replace(spec, source_port=sock.getsockname()[1])
            self._tasks[_source(named_spec)] = self._loop.create_task(self._bring_up(sock, named_spec, first))
        tasks = list(self._tasks.values())
        try:
            failed = asyncio.gather(*tasks, return_exceptions=True)
            waits: set[asyncio.Future[Any]] = {first, failed}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not first.done():
                await self._raise_first(tasks)
            winner = first.result()
            pending = [task for task in tasks if not task.done()]
            if pending and self._join_s:
                await asyncio.wait(pending, timeout=self._join_s)
        except BaseException:
            self.stop()
            # They use the sockets, which the caller closes; a number that is closed may be another's next.
            await end_tasks(tasks)
            raise
        return [winner, *(joined for joined in self._joined if joined is not winner)]

    @staticmethod
    async def _raise_first(tasks: list[asyncio.Task[Any]]) -> None:
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        error = next(error for error in errors if isinstance(error, BaseException))
        if isinstance(error, asyncio.TimeoutError) and not str(error):
            raise TimeoutError("the connection timed out")
        raise error

    async def _bring_up(self, sock: socket.socket, spec: StreamSpec, first: asyncio.Future[Joined]) -> None:
        """Connect a path, and open the connection on it or join it."""
        started_s = self._loop.time()
        try:
            tls = await self.connect(sock, spec)
            connected_s = self._loop.time() - started_s
            stream = OpenStream(sock, spec, tls)
            first_hello = self._lead if self._opens_early else self._open_first
            joined = await first_hello(stream, first, connected_s)
            if joined is None:
                joined = await self._join(stream, self._handshake_s)
        except BaseException as error:
            sockets.reset(sock)
            if first.done() and isinstance(error, _ERRORS):
                self._give_back(spec)
                return
            if not first.done() and isinstance(error, RemoteProtocolError):
                first.set_exception(error)  # it is the same on the other paths
            raise
        self._took_s[_source(spec)] = max(self._loop.time() - started_s, 1e-6)
        self._use(joined)

    async def _lead(
        self, stream: OpenStream, first: asyncio.Future[Joined], connected_s: float
    ) -> Joined | None:
        """Be the path on which the connection opens; None if that has been opened on another."""
        joined = Joined(stream, 0)
        if not (first.done() or self._is_stopped):
            self.connection_id = secrets.token_bytes(16)
            self.frame_payload_bytes = payload = self._payload_bytes(stream)
            self.first_client = _core.Client(b"", self.connection_id, self._stream_count, payload)
            self._timers.append(self._loop.call_later(self._handshake_s, self._expire))
            self._await_answer(connected_s)
            first.set_result(joined)
            return joined
        while self._client is None:
            if self._is_stopped:
                raise asyncio.CancelledError  # `wait_for` may have hidden it
            await asyncio.wait([self._turn])
            transport = self._transport
            if not self._turn.done():
                continue  # another took it
            if transport is None or transport.membership.client is not None:
                self._turn = self._loop.create_future()  # done when the event of the answer is taken
            else:
                transport.membership.replace_first(stream)
                self._await_answer(connected_s)
                return joined
        return None

    def _await_answer(self, round_trip_s: float) -> None:
        """Give others a turn if a hello that is said now is not answered in time."""
        self._turn = self._loop.create_future()
        wait_s = max(HELLO_DELAY_S, ROUND_TRIPS * round_trip_s)
        self._timers.append(self._loop.call_later(wait_s, self._give_turn))

    def _give_turn(self) -> None:
        if not self._turn.done():
            self._turn.set_result(None)

    def _expire(self) -> None:
        if self._client is None and self._transport is not None:
            error = RemoteProtocolError("no complete hello came in time")
            self._transport.shell.give_up(error)

    def on_answered(self) -> None:
        """Have other streams join: the first hello was answered."""
        assert self._transport is not None, "who is answered has a transport"
        self._client = self._transport.membership.client
        self._give_turn()
        lost, self._lost = self._lost, []
        for spec in lost:
            self.reopen(spec)

    def _lose_first(self, spec: StreamSpec) -> None:
        """Open a stream once the connection is; have another path say the first hello if none does."""
        if self._client is not None:
            self.reopen(spec)
            return
        self._lost.append(spec)
        if self._transport is None or self._transport.alive_streams:
            return
        self._give_turn()
        if all(task.done() for task in self._tasks.values()):
            error = ConnectionLost("the stream ended before its hello was answered")
            self._loop.call_soon(functools.partial(self._transport.shell.give_up, error))

    async def _open_first(
        self, stream: OpenStream, first: asyncio.Future[Joined], connected_s: float
    ) -> Joined | None:
        """Say the first hello when it is this path's turn; None if another has opened the connection."""
        while not first.done():
            wait_s = self._turns.next_s - self._loop.time()
            if wait_s <= 0:
                return await self._greet_first(stream, first, connected_s)
            await asyncio.wait([first], timeout=wait_s)
        first.result()
        return None

    async def _greet_first(
        self, stream: OpenStream, first: asyncio.Future[Joined], connected_s: float
    ) -> Joined:
        round_trip_s = max(connected_s, (tcp_info(stream.sock).rtt_us or 0) * 1e-6)
        self._turns.next_s = self._loop.time() + max(HELLO_DELAY_S, 2 * round_trip_s)
        payload = self._payload_bytes(stream)
        connection_id = secrets.token_bytes(16)
        client = _core.Client(self._secret, connection_id, self._stream_count, payload, self._has_records)
        greeting = client.greet(secrets.token_bytes(NONCE_BYTES), stream.spec.priority, self._early_data)
        exchange = self._loop.create_task(self._exchange(stream, client, greeting, self._handshake_s))
        waits: set[asyncio.Future[Any]] = {exchange, first}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if first.done():
                # Before the answer is confirmed, so that the server forgets this connection soon.
                raise TimeoutError("another path was faster")
            await exchange
        except BaseException:
            await end_tasks([exchange])
            self._turns.next_s = 0.0  # the next may try at once
            raise
        self._client, self.connection_id, self.frame_payload_bytes = client, connection_id, payload
        joined = Joined(stream, 0)
        first.set_result(joined)
        return joined

    async def _join(self, stream: OpenStream, timeout_s: float) -> Joined:
        assert self._client is not None, "streams join once the first was answered"
        greeting = self._client.greet(secrets.token_bytes(NONCE_BYTES), stream.spec.priority, b"")
        await self._exchange(stream, self._client, greeting, timeout_s)
        return Joined(stream, greeting.stream_id)

    async def _exchange(
        self, stream: OpenStream, client: _core.Client, greeting: _core.Greeting, timeout_s: float
    ) -> None:
        try:
            stream.layer = await exchange_hellos(
                self._loop,
                stream.sock,
                client,
                greeting,
                timeout_s,
                stream.layer,
                has_records=self._has_records,
            )
        except NoHello:
            host, port = self._destination[:2]
            raise RemoteProtocolError(
                f"{host}:{port} is not an MSTCP server: it answered the hello with something else"
            ) from None

    async def connect(
        self, sock: socket.socket, spec: StreamSpec, timeout_s: float | None = None
    ) -> TlsStream | None:
        """Connect a bound socket, unless it is; return the stream's TLS, if it is to have any."""
        connect_s, handshake_s = (self._connect_s, self._handshake_s)
        if timeout_s is not None:
            connect_s = handshake_s = timeout_s
        if not sockets.is_connected(sock):
            port, to, began_s = sock.getsockname()[1], spec.remote or self._destination, self._loop.time()
            try:
                await asyncio.wait_for(self._loop.sock_connect(sock, to), connect_s)
            except OSError as error:
                if error.errno in _TAKEN:
                    raise OSError(error.errno, _taken(port, to)) from None
                raise
            # Its hellos will take another round trip.
            self._took_s.setdefault(_source(spec), 2 * (self._loop.time() - began_s))
        if self._tls is None:
            return None
        tls = self._tls.stream()
        await tls.handshake(self._loop, sock, handshake_s)
        return tls

    def follow(self, transport: ConnectionTransport) -> None:
        """Open streams for this connection from now on; those that were opened meanwhile join it."""
        self._transport = transport
        waiting, self._joined = self._joined, []
        known = {stream.sock for stream in transport.membership.open_streams}
        for joined in waiting:
            if joined.stream.sock not in known:
                transport.membership.add_stream(joined.stream, joined.stream_id)
        lost, self._lost = self._lost, []
        for spec in lost:
            self.reopen(spec)

    def _use(self, joined: Joined) -> None:
        if self._transport is None:
            self._joined.append(joined)
        elif joined.stream_id == 0:
            pass  # it has taken the place of the first
        elif self._transport.is_closed:
            sockets.reset(joined.stream.sock)
        else:
            self._transport.membership.add_stream(joined.stream, joined.stream_id)

    def _give_back(self, spec: StreamSpec) -> None:
        """Open a stream later that could not be opened now."""
        if self._transport is None:
            self._lost.append(spec)
        elif not self._transport.is_closing():
            self._loop.call_soon(self.reopen, spec)

    def reopen(self, spec: StreamSpec) -> None:
        """Open a stream (again), from its source port, as soon as that works.

        From another where the port is taken meanwhile and neither the application nor a controller named it.
        """
        if self.first_client is not None and self._client is None:
            # The path that has just taken the first's place may be the one.
            self._loop.call_soon(self._lose_first, spec)
            return
        task = self._tasks.get(_source(spec))
        if self._transport is None or (task is not None and not task.done()):
            return
        self._tasks[_source(spec)] = self._loop.create_task(self._reopen(spec))

    async def _reopen(self, spec: StreamSpec) -> None:
        redial = _core.Redial(round(self._took_s.get(_source(spec), 0.0) * 1e9))
        failed_s = 0.0
        while True:
            delay_ns, timeout_ns = redial.attempt(round(failed_s * 1e9))
            await asyncio.sleep(delay_ns * 1e-9)
            transport = self._transport
            if transport is None or transport.is_closed:
                return
            started_s = self._loop.time()
            with contextlib.suppress(*_ERRORS):
                self._use(await self._redial(spec, timeout_ns * 1e-9))
                return
            failed_s = self._loop.time() - started_s

    @property
    def opening_ports(self) -> set[int]:
        """The source ports of streams that are being opened, for the first time or again."""
        return {port for (_, port), task in self._tasks.items() if not task.done()}

    def give_up(self, source_port: int) -> None:
        """Open a stream no more that a controller had allocated."""
        self._tasks.pop((None, source_port)).cancel()

    async def join(self, sock: socket.socket, spec: StreamSpec) -> None:
        """Open a further stream of the connection from a bound socket, which is closed if that fails.

        Raises:
            MstcpError, OSError, asyncio.TimeoutError: It could not be opened.
        """
        joined = await self._dial(sock, spec, self._connect_s)
        try:
            self._use(joined)
        except MstcpError:  # the connection has as many as it can have
            sockets.reset(sock)
            raise

    async def _redial(self, spec: StreamSpec, timeout_s: float) -> Joined:
        """Open a stream once."""
        try:
            return await self._dial(self._bind(spec, spec.source_port), spec, timeout_s)
        except OSError as error:
            if error.errno not in _TAKEN or not self._may_move(spec.source_port):
                raise
        return await self._dial(self._bind(spec, 0), spec, timeout_s)

    async def _dial(self, sock: socket.socket, spec: StreamSpec, timeout_s: float) -> Joined:
        started_s = self._loop.time()
        try:
            tls = await self.connect(sock, spec, timeout_s)
            stream = named(sock, spec, tls)
            joined = await self._join(stream, started_s + timeout_s - self._loop.time())
        except BaseException as error:
            LOGGER.debug("stream from port %d is not back yet: %s", spec.source_port, error)
            sockets.reset(sock)
            raise
        self._took_s[_source(stream.spec)] = max(self._loop.time() - started_s, 1e-6)
        return joined

    def stop(self) -> None:
        """Open no more streams."""
        self._transport = None
        self._is_stopped = True
        self._give_turn()
        for timer in self._timers:
            timer.cancel()
        for task in self._tasks.values():
            task.cancel()
        for joined in self._joined:
            sockets.reset(joined.stream.sock)
        self._joined = []


def _source(spec: StreamSpec) -> _Source:
    return spec.local, spec.source_port


def _taken(port: int, to: tuple[Any, ...]) -> str:
    return (
        f"cannot connect from port {port} to {to[0]} port {to[1]}: another connection has these ports, or "
        "had them until less than a minute ago; take another source port, or 0 for any"
    )


def named(sock: socket.socket, spec: StreamSpec, tls: TlsStream | None) -> OpenStream:
    """Return a connected socket as a stream that knows its source port."""
    return OpenStream(sock, replace(spec, source_port=sock.getsockname()[1]), tls)
