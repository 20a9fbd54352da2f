"""Accepting connections: a stream with a hello opens one or joins one by its id, others are plain TCP."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mstcp import sockets
from mstcp.aio.streams import DEFAULT_LIMIT, StreamProtocol, StreamReader, StreamWriter
from mstcp.checks import check_address
from mstcp.errors import ConnectionLost, LocalProtocolError, MstcpError, RemoteProtocolError
from mstcp.limits import HalfOpen, ServerLimits
from mstcp.open.reception import Arrival, ProtocolFactory, Reception
from mstcp.options import ServerArguments, ServerOptions, check_limit
from mstcp.tls import TlsSettings, server_settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

LOGGER = logging.getLogger("mstcp")

ClientConnected = Callable[[StreamReader, StreamWriter], Awaitable[None] | None]

_FULL_S = 0.1
"""How often a full table of half-open streams is looked at."""


async def start_server(
    client_connected_cb: ClientConnected,
    host: str | None = None,
    port: int | None = None,
    *,
    limit: int = DEFAULT_LIMIT,
    **options: Unpack[ServerArguments],
) -> Server:
    """Listen for connections, MSTCP and plain TCP, and call back for each with a reader and a writer.

    Args:
        client_connected_cb: Called with (StreamReader, StreamWriter) of each connection; may be a coroutine
            function.
        host: Name or address to listen on; None: 127.0.0.1, "": all addresses.
        port: TCP port; 0: the system chooses.
        limit: Buffer limit of the StreamReaders, in bytes.
        options: See below.

    Options:
        sock: A bound socket to listen on, in the place of host and port.
        reuse_port: Whether other sockets may listen on the port too (SO_REUSEPORT), as in a server of several
            processes: those from one address of a client reach the same one, as all of a connection must.
        announce: Further pairs of IP address and port that lead to this server, 16 at most: clients that want
            it (`max_announced`) open a stream to each. `ConnectionTransport.announce` changes them.
        seed: Of the draws for what the server sends; None: random ones.
        send_buffer_bytes: See `ConnectionTransport`.
        receive_buffer_bytes: SO_RCVBUF of each stream; None: the kernel's choice.
        reorder_buffer_bytes: Bound of the memory for frames that are ahead of the next one, for each
            connection.
        packet_bytes: Ethernet frame of a full segment; what `frame_payload_bytes` says of plain connections.
        congestion_control: Of each stream; None: the system's default.
        backlog: As `socket.listen`.
        plain: "auto": a stream that does not begin with the MSTCP magic, or stays silent for `plain_after`,
            is plain TCP. True: all are plain, whatever they begin with. False: none is, and what is no hello
            is rejected. Choose True or False where the kind is known: with "auto" a plain client whose data
            begins with the eight bytes of the magic is rejected, and so is an MSTCP client whose first hello
            is later than `plain_after` and the first of its address.
        plain_after: Seconds, see `plain`.
        early_data: Take what comes with a client's first hello at once, a round trip earlier, though that may
            be a recorded one: for applications where the first bytes do no harm if they come twice. By
            default a connection with a secret opens once its client has answered the server's nonce.
        hello_timeout: Seconds that a hello may take.
        secret: Reject streams that do not prove that they know it. Plain TCP proves nothing: use plain=False
            with it.
        scheduler: See `open_connection`; for what the server sends.
        authenticate_frames: Let only clients in that authenticate every byte by the secret, as this server
            then does; without it each client may choose. For who has no certificates; nothing is encrypted.
        reconnect_timeout: Seconds that a connection lives on without any stream.
        ssl: TLS on every stream, with this context's certificate; streams without TLS are rejected. Plain TCP
            means TLS as any client speaks it.
        limits: What unknown clients may cost; None: the defaults of `ServerLimits`.
        on_rejected: Called with (error, peer address) for each stream that was rejected; by default it is
            logged as a warning of logger `mstcp`.
        start_serving: Whether to accept at once; else from `start_serving()` or `serve_forever()` on.

    Raises:
        LocalProtocolError: The kernel does not allow `congestion_control`, or a secret is to be checked on
            plain TCP.
        OSError: The address is not this host's, or the port is taken.
    """
    check_limit(limit)
    loop = asyncio.get_running_loop()
    return await create_server(
        lambda: StreamProtocol(loop, limit, client_connected_cb), host, port, **options
    )


async def create_server(
    protocol_factory: ProtocolFactory,
    host: str | None = None,
    port: int | None = None,
    **options: Unpack[ServerArguments],
) -> Server:
    """Listen for connections and make a protocol for each, as the event loop's method of this name does.

    Args:
        protocol_factory: Makes the asyncio.Protocol or asyncio.BufferedProtocol of each connection.
        host: Name or address to listen on; None: 127.0.0.1, "": all addresses.
        port: TCP port; 0 or None: the system chooses.
        options: Those of `start_server`, without `limit`.

    Raises:
        LocalProtocolError: The kernel does not allow `congestion_control`, or a secret is to be checked on
            plain TCP.
        OSError: The address is not this host's, or the port is taken.
    """
    return await _serve(protocol_factory, host, port, ServerOptions(**options))


async def _serve(
    protocol_factory: ProtocolFactory, host: str | None, port: int | None, options: ServerOptions
) -> Server:
    """Listen; see `start_server`."""
    loop = asyncio.get_running_loop()
    tls = server_settings(options.ssl)
    if options.sock is not None:
        if host is not None or port is not None:
            raise LocalProtocolError("host and port are given, and so is sock: leave one of them out")
        options.sock.setblocking(False)
        server = Server(loop, [options.sock], protocol_factory, options, tls)
        if options.start_serving:
            await server.start_serving()
        return server
    check_address(host, port, least_port=0)
    listeners: list[socket.socket] = []
    try:
        addresses = await loop.getaddrinfo(
            "127.0.0.1" if host is None else host or None,
            port or 0,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
        for family, _, _, _, address in dict.fromkeys(addresses):
            listeners.append(_listener(family, address, options))
    except BaseException:
        for sock in listeners:
            sock.close()
        raise
    server = Server(loop, listeners, protocol_factory, options, tls)
    if options.start_serving:
        await server.start_serving()
    return server


def _listener(family: int, address: Any, options: ServerOptions) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sockets.set_options(sock, options.congestion_control, options.receive_buffer_bytes)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _log_rejected(error: MstcpError, peer: Any) -> None:
    # A client that went away, or whose connection has ended meanwhile, did nothing wrong.
    level = logging.DEBUG if isinstance(error, ConnectionLost) else logging.WARNING
    LOGGER.log(level, "stream from %s rejected: %s", peer, error)


class Server(asyncio.AbstractServer):
    """A listening server; an asynchronous context manager that closes it.

    Made by `start_server` and `create_server`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listeners: list[socket.socket],
        protocol_factory: ProtocolFactory,
        options: ServerOptions,
        tls: TlsSettings | None,
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._backlog = options.backlog
        self._reuses_port = options.reuse_port
        self._on_rejected = options.on_rejected or _log_rejected
        self._serving = False
        self._limits = options.limits or ServerLimits()
        self._reception = Reception(loop, protocol_factory, options, self._limits, tls, self._on_rejected)
        self._half_open = HalfOpen[Arrival](self._limits.half_open_streams)
        self._closed = asyncio.Event()

    # --- asyncio.Server -------------------------------------------------------------------------------------
    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The listening sockets; none after close()."""
        return tuple(self._listeners)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        return self._loop

    def is_serving(self) -> bool:
        """Return whether the server accepts connections."""
        return self._serving

    async def start_serving(self) -> None:
        """Accept connections from now on."""
        if self._serving:
            return
        for sock in self._listeners:
            sock.listen(self._backlog)
            if self._reuses_port:
                sockets.steer_by_source(sock)
        self._serving = bool(self._listeners)
        self._watch()

    async def serve_forever(self) -> None:
        """Accept connections until cancelled or closed."""
        await self.start_serving()
        try:
            await self._closed.wait()
        finally:
            self.close()
            await self.wait_closed()

    def close(self) -> None:
        """Stop accepting, and drop streams that are not part of a connection yet; connections go on."""
        if self._closed.is_set():
            return
        self._serving = False
        for sock in self._listeners:
            self._loop.remove_reader(sock)
            sock.close()
        self._listeners = []
        for arrival in self._half_open.streams():
            arrival.close()
        self._closed.set()

    def close_clients(self) -> None:
        """Close all connections that the server has accepted; see `ConnectionTransport.close`."""
        for connection in list(self._reception.connections):
            connection.close()

    def abort_clients(self) -> None:
        """Close them at once, sending nothing more; see `ConnectionTransport.abort`."""
        for connection in list(self._reception.connections):
            connection.abort()

    async def wait_closed(self) -> None:
        """Wait until the server is closed, and the connections whose closing has begun; others go on."""
        await self._closed.wait()
        closing = [connection for connection in self._reception.connections if connection.is_closing()]
        await asyncio.gather(*(connection.wait_closed() for connection in closing))

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()

    # --- accepting ------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        for sock in self._listeners:
            if self._serving and not self._half_open.is_full:
                self._loop.add_reader(sock, self._on_acceptable, sock)
            else:
                self._loop.remove_reader(sock)

    def _on_acceptable(self, listener: socket.socket) -> None:
        for _ in range(self._backlog):
            if self._half_open.is_full:
                self._watch()
                self._loop.call_later(_FULL_S, self._make_room)
                return
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of descriptors or memory: try again when some may be free, instead of spinning.
                LOGGER.error("cannot accept a connection: %s; trying again in 1 s", error)
                self._loop.remove_reader(listener)
                self._loop.call_later(1.0, self._watch)
                return
            sock.setblocking(False)
            arrival = self._reception.accept(sock, peer, self._on_done)
            if arrival is not None:
                drop = functools.partial(self._drop_half_open, arrival, peer)
                self._half_open.add(arrival, str(peer[0]), self._loop.time(), drop)

    def _on_done(self, arrival: Arrival) -> None:
        was_full = self._half_open.is_full
        self._half_open.discard(arrival)
        if was_full and self._serving:
            self._watch()

    def _make_room(self) -> None:
        """Drop streams that stay half open, as long as there are too many of them."""
        self._half_open.make_room(self._loop.time())
        if self._half_open.is_full:
            self._loop.call_later(_FULL_S, self._make_room)
        else:
            self._watch()

    def _drop_half_open(self, arrival: Arrival, peer: Any) -> None:
        arrival.close()
        reason = f"dropped for others: {self._limits.half_open_streams} streams were half open"
        self._on_rejected(RemoteProtocolError(reason), peer)
