"""Connections over the kernel's MPTCP, with the transport of the other sources and sinks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from experiments.apps import carried
from experiments.apps.config import SinkConfig, SocketSettings, SourceConfig
from experiments.apps.path_manager import create_subflow, token_of
from experiments.apps.transports import Accepting
from mstcp import StreamSpec, _core, sockets
from mstcp.open_stream import OpenStream
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup
from topologies.model import ip_version

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
IPPROTO_MPTCP = 262
CONNECT_TIMEOUT_S = 10.0
WELCOME = b"\0"
"""Sent by the side that accepts: before it has heard from its peer, a client may open no subflow (RFC 8684,
section 3.1)."""


async def connect(config: SourceConfig, source_ports: Sequence[int]) -> ConnectionTransport:
    """Connect, from the first port; each further port becomes a subflow of its own.

    Without ports the kernel chooses one, and its path manager may add subflows.

    Raises:
        OSError: something was refused, or the peer has no MPTCP.
    """
    destination = (config.host, config.port)
    sock = _socket(config.host, config.sockets)
    try:
        if "send_buffer_bytes" in config.connection:
            sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, config.connection["send_buffer_bytes"])
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
    return _start(asyncio.Protocol(), sock, config.sockets, config.payload_bytes)


async def serve(config: SinkConfig, protocol: Accepting, stack: AsyncExitStack) -> None:
    """Accept one connection, and give it to a protocol; the stack ends that.

    The listening socket has to stay open, or the kernel takes no more subflows.
    """
    listener = stack.enter_context(_socket(config.host, config.sockets))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((config.host, config.port))
    listener.listen()
    accepting = asyncio.ensure_future(_accept(listener, config.sockets, protocol))
    stack.callback(accepting.cancel)


async def _accept(listener: socket.socket, settings: SocketSettings, protocol: Accepting) -> None:
    loop = asyncio.get_running_loop()
    try:
        sock, _ = await loop.sock_accept(listener)
        await loop.sock_sendall(sock, WELCOME)
        _start(protocol, sock, settings, payload_bytes=1)
    except Exception as error:
        protocol.failed(error)


def _socket(host: str, settings: SocketSettings) -> socket.socket:
    family = socket.AF_INET6 if ip_version(host) == 6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP)
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
            send_buffer_bytes=settings.send_buffer_bytes,
            extra={"socket": sock, "subflows": partial(carried.by_port, sock)},
        )
    )
    transport.start()
    return transport
