"""Opening a client's connection: what the driver is asked for, which dials, greets and races by itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mstcp import _core, sockets
from mstcp.options import ClientOptions
from mstcp.stream_requests import STREAM, Address, StreamRequest, socket_addresses, stream_request
from mstcp.streams import StreamSpec
from mstcp.tls import TlsSettings
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup


class DriverOptions(NamedTuple):
    """How the connection is to be, as the driver takes it."""

    secret: bytes
    authenticate_frames: bool
    segment_bytes: int
    is_plain: bool
    opens_early: bool
    early_data: bytes
    congestion_control: str | None
    receive_buffer_bytes: int | None
    connect_timeout_s: float
    handshake_timeout_s: float
    reconnect_timeout_s: float
    scheduler: str
    seed: int | None
    send_queue_bytes: int
    reorder_buffer_bytes: int
    interfaces: tuple[int, list[tuple[str, StreamRequest]]] | None
    most_announced: int


async def resolve(host: str, port: int) -> list[Address]:
    """Return the families and socket addresses of a destination; OSError if its name is unknown."""
    loop = asyncio.get_running_loop()
    try:
        # An address needs no thread, which would cost more than all the rest of opening a connection.
        with contextlib.suppress(socket.gaierror):
            return socket_addresses(socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST, **STREAM))
        return socket_addresses(await loop.getaddrinfo(host, port, **STREAM))
    except socket.gaierror as error:
        raise socket.gaierror(error.errno, f"{host}: {error.strerror}") from None


async def open_transport(
    destinations: Sequence[Address],
    specs: Sequence[StreamSpec],
    options: ClientOptions,
    tls: TlsSettings | None,
    socks: Sequence[socket.socket] = (),
    on_closed: Callable[[], asyncio.Future[None]] | None = None,
) -> ConnectionTransport:
    """Open a connection to one of some addresses, over sockets where some are given; it is to be started.

    Raises:
        MstcpError, OSError: No stream could be opened; the error is that of the first.
    """
    family = destinations[0][0]
    if options.congestion_control is not None:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            sockets.set_options(probe, options.congestion_control, None)
    given: Sequence[socket.socket | None] = socks or [None] * len(specs)
    asked = [
        stream_request(spec, family, options.source_host, sock)
        for spec, sock in zip(specs, given, strict=True)
    ]
    # When nothing can fail any more: a descriptor that is detached is nobody's.
    asked = [stream if sock is None else stream.over(sock) for stream, sock in zip(asked, given, strict=True)]
    may_grow = options.may_grow or options.max_announced > 0
    is_plain = len(specs) == 1 and not options.authenticate_frames and not may_grow
    core = _core.Connection.connect(
        time.monotonic_ns(),
        [address for _, address in destinations],
        asked,
        _options(family, options, is_plain),
        None if tls is None else tls.stream,
    )
    transport = ConnectionTransport(
        Setup(
            asyncio.get_running_loop(),
            asyncio.Protocol(),
            core,
            specs=dict(enumerate(specs)),
            send_buffer_bytes=options.send_buffer_bytes,
            on_closed=on_closed,
        )
    )
    try:
        await transport.shell.wait_opened()
        if options.join_s:
            await transport.shell.wait_joined(options.join_s)
    except BaseException:
        transport.abort()
        raise
    return transport


def _options(family: socket.AddressFamily, options: ClientOptions, is_plain: bool) -> DriverOptions:
    return DriverOptions(
        options.secret or b"",
        options.authenticate_frames,
        options.packet_bytes - sockets.segment_overhead_bytes(family),
        is_plain,
        options.opens_early and not is_plain,
        options.early_data,
        options.congestion_control,
        options.receive_buffer_bytes,
        options.connect_timeout,
        options.handshake_timeout,
        options.reconnect_timeout,
        options.scheduler,
        options.seed,
        HARD_QUEUE_BYTES,
        options.reorder_buffer_bytes,
        _interfaces(options),
        options.max_announced,
    )


def _interfaces(options: ClientOptions) -> tuple[int, list[tuple[str, StreamRequest]]] | None:
    if (interfaces := options.interfaces) is None:
        return None
    specs = interfaces.specs.items()
    return options.max_paths, [
        (name, StreamRequest(None, None, spec.rate_bps, spec.priority)) for name, spec in specs
    ]


@contextlib.contextmanager
def closing_on_error() -> Iterator[list[socket.socket]]:
    """Close the sockets that are put into the list if something goes wrong."""
    socks: list[socket.socket] = []
    try:
        yield socks
    except BaseException:
        for sock in socks:
            sock.close()
        raise


def bind(family: socket.AddressFamily, address: str | None, options: ClientOptions) -> socket.socket:
    """Bind a socket for a stream whose port a controller is to know."""
    return sockets.bind_stream(
        family,
        address,
        0,
        congestion_control=options.congestion_control,
        receive_buffer_bytes=options.receive_buffer_bytes,
    )
