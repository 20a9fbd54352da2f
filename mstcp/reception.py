"""From an accepted socket to a connection: TLS, the hello, who may come in, and which connection it joins."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from ssl import SSLError
from typing import Any

from mstcp import _core, sockets
from mstcp.admission import Admission, Ended, Joining, Refused
from mstcp.connecting import socket_extra
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError, sentence
from mstcp.hello import LIMIT_EXCEEDED, UNKNOWN_CONNECTION, Opening, PlainOpening, read_confirm, read_opening
from mstcp.limits import ServerLimits, Turns
from mstcp.open_stream import OpenStream
from mstcp.options import OnRejected, ServerOptions
from mstcp.records import RecordStream
from mstcp.streams import UNLIMITED_BPS, StreamSpec
from mstcp.tls import TlsSettings, TlsStream
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup

ProtocolFactory = Callable[[], asyncio.BaseProtocol]

_REFUSAL_S = 0.2
_FAREWELL_S = 2.0
"""How long a client may take to hear that its connection has ended."""


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
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._options = options
        self._limits = limits
        self._tls = tls
        self._on_rejected = on_rejected
        self._admission = Admission(options.secret, limits.connections, options.authenticate_frames)
        self._turns = Turns(limits.hellos_per_s)
        # MSTCP connections by the peer's address.
        self._hosts: Counter[str] = Counter()

    async def take(self, sock: socket.socket, peer: Any) -> None:
        """Make a connection of an accepted socket, or have it join one; close it if it may not come in."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = OpenStream(sock, StreamSpec(source_port=_peer_port(sock)))
            if self._tls is not None:
                if not await self._has_turn():
                    raise RemoteProtocolError(self._too_fast())
                stream.layer = await self._shake_hands(sock, self._tls)
            opening = await self._read_opening(stream)
            if isinstance(opening, PlainOpening):
                self._connect_plain(stream, opening)
            else:
                await self._take_hello(opening, stream)
        except MstcpError as error:
            sockets.reset(sock)
            self._on_rejected(error, peer)
        except BaseException:
            sock.close()
            raise

    async def _read_opening(self, stream: OpenStream) -> bytes | PlainOpening:
        options = self._options
        return await read_opening(
            self._loop,
            stream.sock,
            options.plain,
            silence_s=options.plain_after,
            timeout_s=options.hello_timeout,
            layer=stream.layer,
            # The other streams of a busy client may say their hellos late.
            is_expected=lambda: stream.host in self._hosts,
        )

    async def _shake_hands(self, sock: socket.socket, settings: TlsSettings) -> TlsStream:
        tls = settings.stream()
        try:
            await tls.handshake(self._loop, sock, self._options.hello_timeout)
        except SSLError as error:
            raise RemoteProtocolError(sentence(error)) from error
        except asyncio.TimeoutError:
            raise RemoteProtocolError("the TLS handshake was not done in time") from None
        except ConnectionLost:
            raise
        except OSError as error:
            raise ConnectionLost(error.strerror or str(error)) from error
        return tls

    async def _has_turn(self) -> bool:
        """Wait for a turn to look at a hello; False if it would not come in time."""
        wait_s = self._turns.take(self._loop.time(), self._options.hello_timeout)
        if wait_s:
            await asyncio.sleep(wait_s)
        return wait_s is not None

    def _too_fast(self) -> str:
        return f"more than {self._limits.hellos_per_s:g} hellos come in a second"

    async def _take_hello(self, opening: bytes, stream: OpenStream) -> None:
        """Open a connection, or let a stream join one; what is refused is told why."""
        try:
            if stream.layer is None and not await self._has_turn():
                raise self._admission.refuse(opening, LIMIT_EXCEEDED, self._too_fast())
            joining = self._admission.admit(opening)
        except Ended as ended:
            await self._tell_ended(stream, ended.answer)
            return
        except Refused as refusal:
            await self._refuse(stream, refusal)
            kind = ConnectionLost if refusal.code == UNKNOWN_CONNECTION else RemoteProtocolError
            raise kind(refusal.reason) from None
        known = joining.known
        try:
            await self._loop.sock_sendall(stream.sock, _on_wire(joining.verdict.answer, stream))
            if (records := joining.verdict.records()) is not None:
                stream.layer = RecordStream(records)
            if joining.verdict.stream_id == 0:
                await self._open(joining, stream)
            else:
                await self._join(joining, stream)
        except OSError as error:
            raise ConnectionLost(error.strerror or str(error)) from error
        finally:
            if joining.verdict.stream_id == 0 and known.transport is None:
                self._admission.forget(known)

    async def _open(self, joining: Joining, stream: OpenStream) -> None:
        """Open a connection once its client has proved that its hello is no recorded one."""
        if (transport := joining.known.transport) is not None:
            # The client says the same hello on another path.
            transport.membership.replace_first(stream, joining.verdict.confirm)
            if joining.verdict.early_data and not transport.is_closing():
                transport.membership.take_early(joining.verdict.early_data)
            return
        came = b""
        if not (self._admission.is_open_to_all or self._options.early_data):
            came = await self._proof(joining, stream)
        self._connect_first(joining, stream, came)

    async def _proof(self, joining: Joining, stream: OpenStream) -> bytes:
        """Wait for CONFIRM, or for a stream that joins: its hello proves as much. Return what was read."""
        known, reader = joining.known, Opening(self._loop, stream.sock, stream.layer)
        timeout_s = self._options.hello_timeout
        waits = [
            asyncio.ensure_future(read_confirm(reader, timeout_s)),
            asyncio.ensure_future(known.proved.wait()),
        ]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if not known.proved.is_set() and reader.data != joining.verdict.confirm_frame:
            raise RemoteProtocolError(
                "the stream's first frame does not prove that its sender read the answer"
                if len(reader.data) == _core.CONFIRM_BYTES
                else "the answer to the hello was not confirmed in time"
            )
        return reader.data

    async def _join(self, joining: Joining, stream: OpenStream) -> None:
        """Add a stream to its connection, as soon as that is open."""
        known, verdict = joining.known, joining.verdict
        known.proved.set()
        try:
            await asyncio.wait_for(known.opened.wait(), self._options.hello_timeout)
        except asyncio.TimeoutError:
            raise ConnectionLost("its connection did not open") from None
        if known.transport is None or known.transport.is_closed:
            raise ConnectionLost("its connection ended meanwhile")
        stream.spec = replace(stream.spec, priority=verdict.priority)
        known.transport.membership.add_stream(stream, verdict.stream_id, verdict.confirm)

    async def _refuse(self, stream: OpenStream, refusal: Refused) -> None:
        """Tell a peer by an answer and a CLOSE that its stream is not let in."""
        with contextlib.suppress(OSError):
            stream.sock.send(_on_wire(refusal.answer, stream))
            # A reset would overtake the answer.
            stream.sock.shutdown(socket.SHUT_WR)
            await asyncio.sleep(_REFUSAL_S)

    async def _tell_ended(self, stream: OpenStream, answer: bytes) -> None:
        """Tell a client that its connection ended well; what it says on the stream is thrown away."""
        with stream.sock as sock, contextlib.suppress(OSError, asyncio.TimeoutError):
            await self._loop.sock_sendall(sock, _on_wire(answer, stream))
            if stream.layer is not None:
                await self._loop.sock_sendall(sock, stream.layer.end())
            sock.shutdown(socket.SHUT_WR)
            await asyncio.wait_for(self._read_out(sock), _FAREWELL_S)

    async def _read_out(self, sock: socket.socket) -> None:
        # What is not read when a socket is closed resets it, and that could overtake what was sent.
        while await self._loop.sock_recv(sock, 1 << 12):
            pass

    # --- connections ----------------------------------------------------------------------------------------
    def _connect_first(self, joining: Joining, stream: OpenStream, came: bytes) -> None:
        known, verdict = joining.known, joining.verdict
        core = _core.Connection(
            [UNLIMITED_BPS],
            verdict.frame_payload_bytes,
            scheduler=self._options.scheduler,
            seed=secrets.randbits(64) if self._options.seed is None else self._options.seed,
            send_queue_bytes=HARD_QUEUE_BYTES,
            reorder_buffer_bytes=self._options.reorder_buffer_bytes,
        )
        core.expect_confirm(0, verdict.confirm)
        if self._admission.is_open_to_all:
            core.take_unconfirmed()
        core.set_priority(0, verdict.priority, False)
        stream.spec = replace(stream.spec, priority=verdict.priority)
        extra = {"connection_id": known.connection_id, "is_server": True}
        host = stream.host
        self._hosts[host] += 1

        def forget() -> None:
            self._admission.forget(known)
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

        known.transport = self._transport(core, stream, verdict.frame_payload_bytes, extra, forget)
        self._start(known.transport, came)
        if verdict.early_data and not known.transport.is_closing():
            known.transport.membership.take_early(verdict.early_data)
        known.opened.set()

    def _connect_plain(self, stream: OpenStream, opening: PlainOpening) -> None:
        sock = stream.sock
        overhead = sockets.segment_overhead_bytes(sock.family)
        payload = min(self._options.packet_bytes - overhead, sockets.maximum_segment_bytes(sock))
        core = _core.Connection.plain(payload, send_queue_bytes=HARD_QUEUE_BYTES, is_decided=opening.decided)
        self._admission.admit_plain()
        transport = self._transport(core, stream, payload, {}, self._admission.forget_plain)
        self._start(transport, opening.data)

    def _transport(
        self,
        core: _core.Connection,
        stream: OpenStream,
        payload: int,
        extra: dict[str, Any],
        forget: Callable[[], None],
    ) -> ConnectionTransport:
        extra |= socket_extra([stream.sock])
        setup = Setup(
            self._loop,
            asyncio.Protocol(),
            core,
            [stream],
            frame_payload_bytes=payload,
            send_buffer_bytes=self._options.send_buffer_bytes,
            extra=extra,
            on_closed=forget,
            reconnect_s=self._options.reconnect_timeout,
        )
        try:
            transport = ConnectionTransport(setup)
        except BaseException:
            forget()
            raise
        self.connections.add(transport)
        return transport

    def _start(self, transport: ConnectionTransport, opening: bytes = b"") -> None:
        """Give a connection its protocol; if the application fails it is given up, and its peer told."""
        protocol: asyncio.BaseProtocol | None = None
        try:
            protocol = self._protocol_factory()
            transport.set_protocol(protocol)
            transport.start(opening)
        except Exception as error:
            self._loop.call_exception_handler(
                {
                    "message": "The application failed to take a new connection.",
                    "exception": error,
                    "transport": transport,
                    "protocol": protocol,
                }
            )
            transport.set_protocol(asyncio.Protocol())
            transport.abort()


def _on_wire(plain: bytes, stream: OpenStream) -> bytes:
    return plain if stream.layer is None else stream.layer.encrypt(plain)


def _peer_port(sock: socket.socket) -> int:
    try:
        return int(sock.getpeername()[1])
    except OSError:  # the peer is gone already; reading tells
        return 0
