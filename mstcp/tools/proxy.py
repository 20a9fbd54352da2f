"""Both ends of `mstcp proxy`: TCP in, MSTCP across, TCP out; for applications that know nothing of MSTCP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mstcp import sockets
from mstcp.endpoints import Destination, Rule, is_own_address
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError
from mstcp.open.client import open_connection
from mstcp.open.server import Server, start_server
from mstcp.tools.preamble import (
    ANSWER_BYTES,
    CHANNELS_REQUEST,
    CONNECTED,
    MALFORMED,
    NOT_ALLOWED,
    REFUSED,
    REQUEST_BYTES,
    TIMED_OUT,
    UNKNOWN_NAME,
    UNREACHABLE,
    DestinationRefused,
    check_answer,
    decode_request,
    encode_answer,
    encode_request,
    host_bytes,
)
from mstcp.tools.relay import LIMIT_BYTES, Pair, Tasks, abort, relay, reporting
from mstcp.tools.sharing import Channel, SharedConnection

Report = Callable[[str], None]

CONNECT_S = 10.0
"""How long the proxy that leaves tries to connect."""
REQUEST_S = 10.0


@dataclass(frozen=True)
class Upstream:
    """How the proxy that enters reaches the one that leaves.

    Attributes:
        host: Where that listens; empty: at the destination itself.
        port: Its port.
        options: Those of `open_connection`.
    """

    host: str
    port: int
    options: dict[str, Any] = field(default_factory=dict)

    async def open(self, to: Destination | None) -> Pair:
        """Open a connection over MSTCP; with a destination, have it connected there.

        Raises:
            DestinationRefused: The far proxy cannot connect to it.
            MstcpError: The far proxy refused the connection, or it broke.
            OSError: The far proxy cannot be reached.
        """
        host = self.host or (to.host if to is not None else "")
        if to is None:
            return await open_connection(host, self.port, limit=LIMIT_BYTES, **self.options)
        return await self.ask(host, encode_request(to))

    async def ask(self, host: str, request: bytes) -> Pair:
        """Open a connection, on which the far proxy answers a request; raises as `open`."""
        pair = await open_connection(host, self.port, limit=LIMIT_BYTES, **self.options)
        with _breaking_on_error(pair):
            reader, writer = pair
            writer.write(request)
            head = await asyncio.wait_for(_exactly(reader, ANSWER_BYTES), CONNECT_S + REQUEST_S)
            check_answer(head, await asyncio.wait_for(_exactly(reader, head[2]), REQUEST_S))
        return pair

    async def close(self) -> None:
        """Do nothing: each connection ends by itself."""


class SharedUpstream:
    """Opens connections within one MSTCP connection to each far proxy: they share its streams as they send.

    Args:
        upstream: How the far proxies are reached.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._connecting: dict[str, asyncio.Task[SharedConnection]] = {}
        self._running: dict[SharedConnection, asyncio.Task[None]] = {}

    async def open(self, to: Destination | None) -> Pair:
        """As `Upstream.open`; without a destination nothing is shared."""
        if to is None:
            return await self._upstream.open(None)
        channel = (await self._connection(self._upstream.host or to.host)).open(encode_request(to))
        with _breaking_on_error(channel.pair):
            answer = await asyncio.wait_for(channel.answer, CONNECT_S + REQUEST_S)
            check_answer(answer[:ANSWER_BYTES], answer[ANSWER_BYTES:])
        return channel.pair

    async def _connection(self, host: str) -> SharedConnection:
        """Return the connection to a far proxy; several that need it wait for the same."""
        connecting = self._connecting.get(host)
        if connecting is None or _is_over(connecting):
            connecting = self._connecting[host] = asyncio.ensure_future(self._connect(host))
        return await asyncio.shield(connecting)

    async def _connect(self, host: str) -> SharedConnection:
        shared = SharedConnection(await self._upstream.ask(host, CHANNELS_REQUEST))
        self._running[shared] = asyncio.ensure_future(self._run(shared))
        return shared

    async def _run(self, shared: SharedConnection) -> None:
        # Each of its connections tells how it ended.
        with contextlib.suppress(MstcpError, OSError):
            await shared.run()

    async def close(self) -> None:
        """Close all connections once their peers have everything; those still open in them break."""
        for connecting in self._connecting.values():
            connecting.cancel()
        running, self._running = self._running, {}
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), *self._connecting.values(), return_exceptions=True)
        await asyncio.gather(*(shared.close() for shared in running), return_exceptions=True)


def _is_over(connecting: asyncio.Task[SharedConnection]) -> bool:
    if not connecting.done():
        return False
    return connecting.cancelled() or connecting.exception() is not None or connecting.result().is_over


@contextlib.contextmanager
def _breaking_on_error(pair: Pair) -> Iterator[None]:
    """Break a connection whose far proxy does not answer as it should."""
    try:
        yield
    except asyncio.TimeoutError:
        abort(pair)
        raise DestinationRefused(TIMED_OUT, "the far proxy gave no answer in time") from None
    except BaseException:
        abort(pair)
        raise


async def _exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    try:
        return await reader.readexactly(count)
    except asyncio.IncompleteReadError:
        raise ConnectionLost("the peer ended the connection before it said what was awaited") from None


class Entry:
    """Accepts TCP connections and carries each over an MSTCP connection of its own.

    Args:
        upstream: The far proxy.
        to: Where that connects to; None: it knows.
        report: Gets a sentence for each connection that fails.
        transparent: nftables leads connections here, and the far proxy connects to where they went.
    """

    def __init__(
        self,
        upstream: Upstream | SharedUpstream,
        to: Destination | None,
        report: Report,
        *,
        transparent: bool = False,
    ) -> None:
        self._upstream = upstream
        self._to = to
        self._failed = reporting(report)
        self._is_transparent = transparent

    async def serve(self, host: str, port: int, on_ready: Callable[[Sequence[socket.socket]], None]) -> None:
        """Listen until cancelled; `on_ready` gets the listening sockets.

        Raises:
            OSError: The address is not this host's, or the port is taken.
        """
        async with Tasks(self._failed) as tasks:

            def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                tasks.start(self._carry((reader, writer)))

            server = await asyncio.start_server(accepted, host, port, limit=LIMIT_BYTES)
            try:
                for sock in server.sockets if self._is_transparent else ():
                    sockets.set_transparent(sock)
                on_ready(server.sockets)
                await server.serve_forever()
            finally:
                server.close()

    async def _carry(self, inner: Pair) -> None:
        try:
            outer = await self._upstream.open(self._destination(inner))
        except BaseException:
            abort(inner)
            raise
        await relay(inner, outer)

    def _destination(self, inner: Pair) -> Destination | None:
        if not self._is_transparent:
            return self._to
        sock: socket.socket = inner[1].get_extra_info("socket")
        to = sockets.original_destination(sock)
        if to == sock.getsockname()[:2] and is_own_address(to[0]):
            raise DestinationRefused(
                NOT_ALLOWED, "it was made to the proxy itself, not led to it by nftables"
            )
        return Destination(*to)


class Exit:
    """Accepts MSTCP connections and carries each to a TCP connection.

    Args:
        to: Where to connect to; None: where each connection says, within `allowed`.
        allowed: What connections may ask for; None: this host's own addresses.
        report: Gets a sentence for each connection that fails.
    """

    def __init__(self, to: Destination | None, allowed: Sequence[Rule] | None, report: Report) -> None:
        self._to = to
        self._allowed = allowed
        self._failed = reporting(report)

    async def serve(
        self,
        host: str,
        port: int,
        on_ready: Callable[[Sequence[socket.socket]], None],
        **options: Any,
    ) -> None:
        """Listen until cancelled; `on_ready` gets the listening sockets. Options are those of `start_server`.

        Raises:
            OSError: The address is not this host's, or the port is taken.
        """
        async with Tasks(self._failed) as tasks:

            def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                tasks.start(self._carry((reader, writer)))

            server: Server = await start_server(
                accepted,
                host,
                port,
                limit=LIMIT_BYTES,
                **options,
            )
            async with server:
                on_ready(server.sockets)
                await server.serve_forever()

    async def _carry(self, outer: Pair) -> None:
        try:
            inner = await self._leave(outer)
        except BaseException:
            if self._to is not None:
                abort(outer)  # there is no other way to tell
            else:
                outer[1].close()
            raise
        if inner is None:
            await self._share(outer)
        else:
            await relay(inner, outer)

    async def _leave(self, outer: Pair) -> Pair | None:
        """Connect to where a connection is to go; None: it carries channels that say so themselves."""
        if self._to is not None:
            return await self._connect(self._to, checks=False)
        reader, writer = outer

        def respond(status: int, reason: str = "") -> None:
            writer.write(encode_answer(status, reason))

        try:
            request = await asyncio.wait_for(_read_request(reader), REQUEST_S)
        except (RemoteProtocolError, asyncio.TimeoutError) as error:
            reason = str(error) or "no destination came in time"
            respond(MALFORMED, reason)
            raise RemoteProtocolError(reason) from None
        if request == CHANNELS_REQUEST:
            respond(CONNECTED)
            return None
        return await self._reach(request, respond)

    async def _reach(self, request: bytes, respond: Callable[[int, str], None]) -> Pair:
        """Connect to what a request asks for, and answer it."""
        try:
            to = decode_request(request[:REQUEST_BYTES], request[REQUEST_BYTES:])
            inner = await self._connect(to, checks=True)
        except DestinationRefused as error:
            respond(error.status, error.reason)
            raise
        except RemoteProtocolError as error:
            respond(MALFORMED, error.reason)
            raise
        respond(CONNECTED, "")
        return inner

    async def _share(self, outer: Pair) -> None:
        """Carry each channel of a connection to a TCP connection."""
        async with Tasks(self._failed) as tasks:
            shared = SharedConnection(
                outer, lambda channel, request: tasks.start(self._carry_channel(channel, request))
            )
            try:
                await shared.run()
            except BaseException:
                abort(outer)
                raise
            await shared.close()

    async def _carry_channel(self, channel: Channel, request: bytes) -> None:
        def respond(status: int, reason: str) -> None:
            channel.respond(encode_answer(status, reason), refuses=status != CONNECTED)

        await relay(await self._reach(request, respond), channel.pair)

    async def _connect(self, to: Destination, *, checks: bool) -> Pair:
        loop = asyncio.get_running_loop()
        try:
            resolved = await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise DestinationRefused(UNKNOWN_NAME, f"{to}: {error.strerror or error}") from None
        addresses = [str(entry[4][0]) for entry in resolved]
        if checks:
            addresses = [address for address in addresses if self._is_allowed(address, to.port)]
            if not addresses:
                raise DestinationRefused(NOT_ALLOWED, f"{to} is not among the destinations allowed here")
        problem = DestinationRefused(UNREACHABLE, f"{to} has no address")
        for address in addresses:
            result = await _try(to, address)
            if not isinstance(result, DestinationRefused):
                return result
            problem = result
        raise problem

    def _is_allowed(self, address: str, port: int) -> bool:
        if self._allowed is None:
            return is_own_address(address)
        return any(rule.fits(address, port) for rule in self._allowed)


async def _try(to: Destination, address: str) -> Pair | DestinationRefused:
    try:
        connecting = asyncio.open_connection(address, to.port, limit=LIMIT_BYTES)
        return await asyncio.wait_for(connecting, CONNECT_S)
    except asyncio.TimeoutError:
        return DestinationRefused(TIMED_OUT, f"{to} did not answer within {CONNECT_S:g} s")
    except ConnectionRefusedError:
        return DestinationRefused(REFUSED, f"{to} refused the connection")
    except OSError as error:
        return DestinationRefused(UNREACHABLE, f"{to}: {error.strerror or error}")


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await _exactly(reader, REQUEST_BYTES)
    return head + await _exactly(reader, host_bytes(head))
