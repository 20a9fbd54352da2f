"""Bound sockets to one connection of the library: the streams' hellos, the core, the transport."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from ssl import SSLError
from typing import Any, TypeVar

from mstcp import _core, sockets
from mstcp.open_stream import OpenStream
from mstcp.opening import HELLO_DELAY_S, HelloTurns, Joined, Opener, named
from mstcp.options import ClientOptions
from mstcp.streams import StreamSpec, weights_of
from mstcp.tls import TlsSettings
from mstcp.transport import HARD_QUEUE_BYTES, ConnectionTransport, Setup

T = TypeVar("T")
Address = tuple[socket.AddressFamily, Any]


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


def bind_all(
    socks: list[socket.socket],
    family: socket.AddressFamily,
    address: str | None,
    ports: Sequence[int],
    options: ClientOptions,
) -> None:
    """Bind a socket for each port; one by one, so that those bound already are in `socks` when one fails."""
    for port in ports:
        socks += [_bind(family, address, port, options)]


def bind_specs(
    socks: list[socket.socket],
    family: socket.AddressFamily,
    address: str | None,
    specs: Sequence[StreamSpec],
    options: ClientOptions,
) -> None:
    """As `bind_all` for streams that may have addresses of their own."""
    for spec in specs:
        own = _family(spec.remote[0]) if spec.remote is not None else family
        socks.append(_bind(own, spec.local or address, spec.source_port, options))


def _bind(
    family: socket.AddressFamily, address: str | None, port: int, options: ClientOptions
) -> socket.socket:
    return sockets.bind_stream(
        family,
        address,
        port,
        congestion_control=options.congestion_control,
        receive_buffer_bytes=options.receive_buffer_bytes,
    )


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


async def race(
    addresses: Sequence[Address], attempt: Callable[[socket.AddressFamily, Any], Awaitable[T]]
) -> T:
    """Try a name's addresses as Happy Eyeballs does (RFC 8305): one after the other, without waiting.

    The families take turns, that of the first address first; the next address is tried when one has failed or
    has not answered for a quarter of a second. The first that works wins, and the others are cancelled.

    Raises:
        OSError: None works; the error is that of the first.
    """
    errors: dict[int, BaseException] = {}
    tasks: dict[asyncio.Task[T], int] = {}
    rest = list(enumerate(in_turns(addresses)))
    try:
        while rest or tasks:
            if rest:
                place, (family, address) = rest.pop(0)
                tasks[asyncio.ensure_future(_run(attempt, family, address))] = place
            timeout = HELLO_DELAY_S if rest else None
            done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                place = tasks.pop(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, OSError) or isinstance(error, SSLError):
                    raise error
                errors[place] = error
    finally:
        for task in tasks:
            task.cancel()
        for late in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(late, asyncio.Transport):
                late.abort()  # it was there when nobody wanted it any more
    raise errors[min(errors)]


async def _run(attempt: Callable[[socket.AddressFamily, Any], Awaitable[T]], *address: Any) -> T:
    return await attempt(*address)


def in_turns(addresses: Sequence[Address]) -> list[Address]:
    """Return addresses with their families taking turns, the first address first (RFC 8305, section 4)."""
    by_family: dict[socket.AddressFamily, list[Address]] = {}
    for address in addresses:
        by_family.setdefault(address[0], []).append(address)
    queues = list(by_family.values())
    ordered: list[Address] = []
    while any(queues):
        ordered += [queue.pop(0) for queue in queues if queue]
    return ordered


async def connect(
    socks: list[socket.socket],
    specs: Sequence[StreamSpec],
    destination: Any,
    options: ClientOptions,
    tls: TlsSettings | None,
    on_closed: Callable[[], asyncio.Future[None]] | None = None,
    turns: HelloTurns | None = None,
) -> tuple[ConnectionTransport, Opener | None]:
    """Connect bound sockets and make one connection of them; it has not been started yet."""
    loop = asyncio.get_running_loop()
    family, address = socks[0].family, socks[0].getsockname()[0]
    segment_bytes = options.packet_bytes - sockets.segment_overhead_bytes(family)

    def payload_bytes(stream: OpenStream) -> int:
        segment = min(segment_bytes, sockets.maximum_segment_bytes(stream.sock))
        if options.authenticate_frames:
            return segment - _core.RECORD_OVERHEAD_BYTES
        return segment - (0 if stream.layer is None else stream.layer.overhead_bytes)

    named_ports = {spec.source_port for spec in specs}

    def bind(spec: StreamSpec, port: int) -> socket.socket:
        bound: list[socket.socket] = []
        bind_specs(bound, family, address, [replace(spec, source_port=port)], options)
        return bound[0]

    def may_move(port: int) -> bool:
        return options.controller is None and port not in named_ports

    opener = Opener(
        loop,
        destination,
        bind,
        turns or HelloTurns(),
        may_move,
        options.secret,
        lambda stream: payload_bytes(stream) - _core.FRAME_HEADER_BYTES,
        tls,
        options.early_data,
        connect_s=options.connect_timeout,
        handshake_s=options.handshake_timeout,
        join_s=options.join_s,
        has_records=options.authenticate_frames,
        opens_early=options.opens_early,
    )
    is_plain = len(specs) == 1 and not options.authenticate_frames and not options.may_grow
    if is_plain:
        stream = await _connect_plain(opener, socks[0], specs[0])
        streams, payload, extra = [stream], payload_bytes(stream), {}
        core = _core.Connection.plain(payload, send_queue_bytes=HARD_QUEUE_BYTES)
    else:
        joined = await opener.open(socks, specs)
        streams, payload = [each.stream for each in joined], opener.frame_payload_bytes
        core = _make_core(joined, payload, options)
        extra = {"connection_id": opener.connection_id}
        if opener.first_client is not None:
            core.open_by(opener.first_client)
    transport = ConnectionTransport(
        Setup(
            loop,
            asyncio.Protocol(),
            core,
            streams,
            frame_payload_bytes=payload,
            send_buffer_bytes=options.send_buffer_bytes,
            extra=extra,
            on_closed=_stopping(opener, on_closed),
            reconnect_s=options.reconnect_timeout,
            on_stream_lost=opener.reopen,
            on_opened=None if opener.first_client is None else opener.on_answered,
        )
    )
    if is_plain:
        return transport, None
    opener.follow(transport)
    return transport, opener


async def _connect_plain(opener: Opener, sock: socket.socket, spec: StreamSpec) -> OpenStream:
    try:
        return named(sock, spec, await opener.connect(sock, spec))
    except asyncio.TimeoutError as error:
        raise TimeoutError(str(error) or "the connection timed out") from None


def _make_core(joined: Sequence[Joined], payload: int, options: ClientOptions) -> _core.Connection:
    core = _core.Connection(
        weights_of([joined[0].stream.spec]),
        payload,
        scheduler=options.scheduler,
        seed=secrets.randbits(64) if options.seed is None else options.seed,
        send_queue_bytes=HARD_QUEUE_BYTES,
        reorder_buffer_bytes=options.reorder_buffer_bytes,
    )
    core.reopen_streams()
    if options.early_data:
        core.write(options.early_data)
        core.skip_early(len(options.early_data))
    core.set_priority(0, joined[0].stream.spec.priority, False)
    for each in joined[1:]:
        slot = core.add_stream(each.stream_id, weights_of([each.stream.spec])[0])
        core.set_priority(slot, each.stream.spec.priority, False)
    return core


def _stopping(
    opener: Opener, on_closed: Callable[[], asyncio.Future[None]] | None
) -> Callable[[], asyncio.Future[None] | None]:
    def stop() -> asyncio.Future[None] | None:
        opener.stop()
        return None if on_closed is None else on_closed()

    return stop
