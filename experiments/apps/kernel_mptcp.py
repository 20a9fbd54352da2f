"""Connections over the kernel's MPTCP, with the transport of the other sources and sinks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from experiments.apps.config import SocketSettings
from experiments.apps.path_manager import create_subflow, token_of
from mstcp import StreamSpec, _core, sockets
from mstcp.open_stream import OpenStream
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup

_SO_RCVBUFFORCE = 33
IPPROTO_MPTCP = 262
CONNECT_TIMEOUT_S = 10.0
WELCOME = b"\0"
"""Sent by the side that accepts: before it has heard from its peer, a client may open no subflow (RFC 8684,
section 3.1)."""
_READER_LIMIT_BYTES = 1 << 20


async def open_connection(
    destination: tuple[str, int], source_ports: Sequence[int], settings: SocketSettings, payload_bytes: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, from the first port; each further port becomes a subflow of its own.

    Without ports the kernel chooses one, and its path manager may add subflows.

    Raises:
        OSError: something was refused, or the peer has no MPTCP.
    """
    loop = asyncio.get_running_loop()
    sock = _socket(settings)
    try:
        if source_ports:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("", source_ports[0]))
        # Not by the loop, which would look the address up for a protocol that getaddrinfo does not know.
        sock.settimeout(CONNECT_TIMEOUT_S)
        sock.connect(destination)
        if sock.recv(1) != WELCOME:
            raise ConnectionError("the peer closed before it said that it is there")
        sock.setblocking(False)
        token = token_of(sock)
        source = sock.getsockname()[0]
        for identity, port in enumerate(source_ports[1:], start=1):
            create_subflow(token, identity, (source, port), destination)
    except BaseException:
        sock.close()
        raise
    reader = asyncio.StreamReader(limit=_READER_LIMIT_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = _start(protocol, sock, settings, payload_bytes)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def listen(address: tuple[str, int], settings: SocketSettings) -> socket.socket:
    """Return a listening socket. It has to stay open, or the kernel takes no more subflows."""
    listener = _socket(settings)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen()
    return listener


async def accept(listener: socket.socket, settings: SocketSettings, protocol: asyncio.Protocol) -> None:
    """Take one connection, and give it to a protocol."""
    loop = asyncio.get_running_loop()
    sock, _ = await loop.sock_accept(listener)
    await loop.sock_sendall(sock, WELCOME)
    _start(protocol, sock, settings, payload_bytes=1)


def _socket(settings: SocketSettings) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    sock.setblocking(False)
    sockets.set_options(sock, settings.congestion_control, settings.receive_buffer_bytes)
    _insist_on_buffer(sock, settings.receive_buffer_bytes)
    return sock


def _insist_on_buffer(sock: socket.socket, size_bytes: int | None) -> None:
    """See that the receive buffer is what was asked for: above net.core.rmem_max it takes CAP_NET_ADMIN.

    With less an MPTCP connection can come to a stand (see `Scenario.mptcp_receive_buffer_bytes`).
    """
    # The kernel doubles what it is given, for the memory that packets take beside their payload (socket(7)).
    if size_bytes is not None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) < 2 * size_bytes:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size_bytes)


def _start(
    protocol: asyncio.Protocol, sock: socket.socket, settings: SocketSettings, payload_bytes: int
) -> ConnectionTransport:
    transport = ConnectionTransport(
        Setup(
            asyncio.get_running_loop(),
            protocol,
            _core.Connection.plain(payload_bytes, send_queue_bytes=HARD_QUEUE_BYTES),
            [OpenStream(sock, StreamSpec(source_port=sock.getsockname()[1]))],
            frame_payload_bytes=payload_bytes,
            send_buffer_bytes=settings.send_buffer_bytes,
            extra={"socket": sock},
        )
    )
    transport.start()
    return transport
