"""Connections over the kernel's MPTCP, with the transport of the other sources and sinks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from experiments.apps import stream_progress
from experiments.apps.config import SinkConfig, SocketSettings, SourceConfig
from experiments.apps.path_manager import create_subflow, token_of
from experiments.apps.transports import Accepting
from mstcp import ConnectionTransport, ServerLimits, StreamSpec, sockets
from mstcp.open.connect import open_transport
from mstcp.open.reception import Reception
from mstcp.options import ClientOptions, ServerOptions
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
        source, port = sock.getsockname()[:2]
        for identity, further in enumerate(source_ports[1:], start=1):
            create_subflow(token, identity, (source, further), destination)
    except BaseException:
        sock.close()
        raise
    overhead = sockets.segment_overhead_bytes(sock.family)
    options = ClientOptions(
        packet_bytes=config.payload_bytes + overhead, send_buffer_bytes=config.sockets.send_buffer_bytes
    )
    destinations = [(sock.family, destination)]
    transport = await open_transport(destinations, [StreamSpec(source_port=port)], options, None, [sock])
    transport.shell.information["subflows"] = partial(
        stream_progress.by_port, transport.get_extra_info("socket")
    )
    transport.start()
    return transport


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
        sock, peer = await loop.sock_accept(listener)
        await loop.sock_sendall(sock, WELCOME)
        options = ServerOptions(plain=True, send_buffer_bytes=settings.send_buffer_bytes)
        reception = Reception(
            loop, lambda: protocol, options, ServerLimits(), None, lambda error, _: protocol.failed(error)
        )
        reception.accept(sock, peer, lambda _: None)
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
