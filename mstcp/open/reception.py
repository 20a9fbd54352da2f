"""From accepted sockets to connections: applies what the core's server says to an event loop."""

from __future__ import annotations

import asyncio
import socket
import time
import weakref
from collections.abc import Callable
from ssl import SSLError
from typing import Any

from mstcp import _core, sockets
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError, sentence
from mstcp.limits import ServerLimits
from mstcp.options import OnRejected, ServerOptions
from mstcp.tls import TlsSettings
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Reception:
    """Makes connections of the streams that a server accepts.

    Args:
        loop: The event loop.
        protocol_factory: Makes the protocol of each connection.
        options: The server's.
        limits: What unknown clients may cost.
        tls: What TLS on each stream needs, if it is wanted.
        on_rejected: Told of each stream that is not let in, and why.

    Attributes:
        connections: Those that were made and are still used.
        by_id: Those that further streams may join, and streams that will open one once they are confirmed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol_factory: ProtocolFactory,
        options: ServerOptions,
        limits: ServerLimits,
        tls: TlsSettings | None,
        on_rejected: OnRejected,
    ) -> None:
        self.connections: weakref.WeakSet[ConnectionTransport] = weakref.WeakSet()
        self.by_id: dict[bytes, ConnectionTransport | Arrival] = {}
        self.loop = loop
        self._protocol_factory = protocol_factory
        self._options = options
        self._tls = tls
        self._on_rejected = on_rejected
        # Where IPv6's headers are longer the kernel's maximum segment says so.
        overhead = sockets.segment_overhead_bytes(socket.AF_INET)
        self._server = _core.Server(
            secret=options.secret or b"",
            authenticate_frames=options.authenticate_frames,
            max_connections=limits.connections,
            plain_after_s=options.plain_after if options.plain == "auto" else 0.0 if options.plain else None,
            plain_payload_bytes=options.packet_bytes - overhead,
            takes_early_data=options.early_data,
            max_hellos_per_s=limits.hellos_per_s,
            hello_timeout_s=options.hello_timeout,
            scheduler=options.scheduler,
            seed=options.seed,
            send_queue_bytes=HARD_QUEUE_BYTES,
            reorder_buffer_bytes=options.reorder_buffer_bytes,
            reconnect_timeout_s=options.reconnect_timeout,
            announced=options.announce,
        )

    def accept(self, sock: socket.socket, peer: Any, on_done: Callable[[Arrival], None]) -> Arrival | None:
        """Begin with an accepted socket; None if it may not come in."""
        layer = None if self._tls is None else self._tls.stream()
        try:
            incoming = self._server.accept(time.monotonic_ns(), sock.detach(), layer)
        except MstcpError as error:
            self._on_rejected(error, peer)
            return None
        arrival = Arrival(self, incoming, peer, on_done)
        # A client in this loop is to see that it is connected before it may see that it is turned away.
        self.loop.call_soon(arrival.step)
        return arrival

    def open(self, core: _core.Connection) -> None:
        """Make a connection, and give it its protocol; if that fails it is given up, and its peer told."""
        connection_id = core.connection_id
        transport = ConnectionTransport(
            Setup(
                self.loop,
                asyncio.Protocol(),
                core,
                send_buffer_bytes=self._options.send_buffer_bytes,
                extra={} if connection_id is None else {"connection_id": connection_id, "is_server": True},
                on_closed=lambda: self._forget(connection_id),
            )
        )
        self.connections.add(transport)
        if connection_id is not None:
            self.by_id[connection_id] = transport
        protocol: asyncio.BaseProtocol | None = None
        try:
            protocol = self._protocol_factory()
            transport.set_protocol(protocol)
            transport.start()
        except Exception as error:
            self.loop.call_exception_handler(
                {
                    "message": "The application failed to take a new connection.",
                    "exception": error,
                    "transport": transport,
                    "protocol": protocol,
                }
            )
            transport.set_protocol(asyncio.Protocol())
            transport.abort()

    def _forget(self, connection_id: bytes | None) -> None:
        if connection_id is not None:
            self.by_id.pop(connection_id, None)

    def join(self, connection_id: bytes) -> None:
        """Have a connection use a stream that has joined it."""
        joined = self.by_id.get(connection_id)
        if isinstance(joined, Arrival):
            joined.step()
        elif joined is not None:
            joined.shell.due()

    def reject(self, error: Exception, peer: Any) -> None:
        """Tell that a stream is not let in."""
        if isinstance(error, SSLError):
            told: MstcpError = RemoteProtocolError(sentence(error))
        elif isinstance(error, MstcpError):
            told = error
        else:
            told = ConnectionLost(str(error))
        told.__cause__ = error if told is not error else None
        self._on_rejected(told, peer)


class Arrival:
    """An accepted socket until it opens a connection, joins one or is closed."""

    def __init__(
        self, reception: Reception, incoming: _core.Incoming, peer: Any, on_done: Callable[[Arrival], None]
    ) -> None:
        self._reception = reception
        self._incoming = incoming
        self._peer = peer
        self._on_done = on_done
        self._descriptor = incoming.fileno()
        self._is_read = self._is_written = False
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns = 0
        self._unconfirmed: bytes | None = None
        self._is_done = False

    def step(self) -> None:
        """Go on."""
        if self._is_done:
            return
        reception, incoming = self._reception, self._incoming
        result = incoming.advance(time.monotonic_ns())
        if isinstance(result, bool):
            self._wait()
            return
        self._leave()
        if isinstance(result, bytes):
            reception.join(result)
        elif result is not None:
            reception.open(result)
        elif (error := incoming.error) is not None:
            reception.reject(error, self._peer)

    def close(self) -> None:
        """Close the socket."""
        self._leave()
        self._incoming.close()

    def _wait(self) -> None:
        loop, incoming = self._reception.loop, self._incoming
        self._watch(incoming.for_bytes, incoming.for_room)
        if incoming.due_ns != self._due_ns:
            self._due_ns = incoming.due_ns
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self._due_ns * 1e-9 + 1e-4, self._on_timer)
        if self._unconfirmed is None and (connection_id := incoming.unconfirmed) is not None:
            self._unconfirmed = connection_id
            self._reception.by_id[connection_id] = self

    def _on_timer(self) -> None:
        self._due_ns = 0
        self.step()

    def _watch(self, for_bytes: bool, for_room: bool) -> None:
        loop = self._reception.loop
        if for_bytes and not self._is_read:
            loop.add_reader(self._descriptor, self.step)
        elif self._is_read and not for_bytes:
            loop.remove_reader(self._descriptor)
        if for_room and not self._is_written:
            loop.add_writer(self._descriptor, self.step)
        elif self._is_written and not for_room:
            loop.remove_writer(self._descriptor)
        self._is_read, self._is_written = for_bytes, for_room

    def _leave(self) -> None:
        """Watch the socket no more: it is another's from now on, or closed."""
        self._is_done = True
        self._watch(False, False)
        if self._timer is not None:
            self._timer.cancel()
        if self._unconfirmed is not None and self._reception.by_id.get(self._unconfirmed) is self:
            del self._reception.by_id[self._unconfirmed]
        self._on_done(self)
