"""Opening connections: bind the source ports, ask the controller, connect, say hello."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mstcp import sockets
from mstcp.aio.connect_context import ConnectContext
from mstcp.aio.streams import DEFAULT_LIMIT, StreamProtocol, StreamReader, StreamWriter
from mstcp.checks import check_address
from mstcp.control.allocation import Allocation, AllocationChanged
from mstcp.errors import ControllerError, LocalProtocolError
from mstcp.open.allocated_streams import AllocatedStreams
from mstcp.open.connect import bind, closing_on_error, open_transport, resolve
from mstcp.options import ClientArguments, ClientOptions, check_limit
from mstcp.stream_requests import Address
from mstcp.tls import TlsSettings, client_settings
from mstcp.transport import ConnectionTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mstcp.control import ControllerAddress, ControllerClient

LOGGER = logging.getLogger("mstcp")
P = TypeVar("P", bound=asyncio.BaseProtocol)


def open_connection(
    host: str | None = None,
    port: int | None = None,
    *,
    limit: int = DEFAULT_LIMIT,
    **options: Unpack[ClientArguments],
) -> ConnectContext:
    """Open a connection of one or more streams; use it as one of asyncio's.

        reader, writer = await mstcp.open_connection(host, port, streams=streams)

        async with mstcp.open_connection(host, port, streams=streams) as (reader, writer):
            ...

    With a `controller`, the source ports are bound, the flow is requested, and the streams it allocates are
    connected from those ports. With `streams`, these are opened as they are. With neither, one stream is
    opened. A connection of one stream is plain TCP.

    Args:
        host: Name or address of the destination.
        port: TCP port of the destination.
        limit: Buffer limit of the StreamReader, in bytes.
        options: See below.

    Options:
        rate: Goodput in bit/s to ask the controller for; without one, what the single stream is paced at.
        controller: `address:port` of the controller (of several, with commas between), a
            `mstcp.control.ControllerAddress` that also says how to speak to it (TLS, token), or a
            `ControllerClient` to share.
        streams: The streams to open, given by hand.
        sock: A socket that is connected already, or a list of some: one stream each, in the place of host and
            port.
        source_address: Our address, or a pair of address and port (0: any) as in `socket`; by default the
            address that the system would use for the destination.
        packet_bytes: Ethernet frame of a full segment, without checksum (1514). A frame of ours fills one, or
            the kernel's maximum segment if that is smaller.
        objective: What the controller optimises; None: its default.
        paths: Paths to ask the controller for instead of letting it compute them. Without a controller
            "interfaces", or an `Interfaces`: a stream from each address of this host that may lead to the
            destination, also as addresses come and go; the peer must speak MSTCP.
        max_paths: The most paths that the controller may allocate (this many source ports are bound), or the
            most streams that follow the interfaces.
        max_announced: To how many of the addresses that the server announces a further stream goes (0). The
            peer must speak MSTCP then; it may name whatever address it likes.
        may_grow: The controller may add streams, up to `max_paths`, and remove some while the connection
            runs: when a link fails or returns, or others need its place. The ports that are not used stay
            bound for that, and a connection of one stream is no plain TCP: its peer must speak MSTCP.
        on_allocation_changed: Called by the event loop, with an `AllocationChanged`, after the controller has
            changed the rates of the open connection or ended its flow; it may come before this returns.
        seed: Of the scheduler's draws; None: a random one.
        send_buffer_bytes: See `ConnectionTransport`.
        receive_buffer_bytes: SO_RCVBUF of each stream; None: the kernel's choice.
        reorder_buffer_bytes: Bound of the memory for frames that are ahead of the next one.
        congestion_control: Of each stream, as `reno`; None: the system's default.
        secret: Shared with the server, which then refuses streams of others.
        scheduler: What picks the stream of each frame that we send: `stochastic` (the paper's draw by the
            rates), `weighted` (deterministic, smooth), `earliest` (the stream on which it would arrive
            first), `redundant` (small frames on every stream).
        connect_timeout: Seconds that connecting a stream may take (10).
        handshake_timeout: Seconds that TLS and the hello of a stream may take (10).
        join_timeout: Seconds that the other streams are waited for once the server has answered on the first.
            None: for a moment where a controller allocated them, since its rates are for all. Else this
            returns when the first is connected, and what is written goes with the hello: if a server
            refuses it, `read` raises RemoteProtocolError. With `secret`, `ssl` or `early_data` the answer
            is awaited.
        authenticate_frames: Authenticate every byte of both directions by the secret, also on a single path:
            what is changed or put in on the way breaks the stream and never comes to the application. For who
            has no certificates; nothing is encrypted. TLS does both.
        reconnect_timeout: Seconds that the connection lives on without any stream, while those that were lost
            are opened again.
        early_data: The first bytes to send, 15,360 at most: they go with the first hello, a round trip before
            any others. A server may get them twice, so they must ask for nothing that matters if done twice.
        ssl: TLS on every stream: a context, or True for the system's certificate authorities. The server
            proves itself on each stream.
        server_hostname: Whom the server's certificate must name; by default `host`.

    Returns:
        When awaited the reader and the writer. `writer.transport` is a `ConnectionTransport` (`try_write`,
        `stats`).

    Raises:
        LocalProtocolError: The arguments contradict each other or are out of range.
        ControllerError: The controller refused the request, or could not be reached.
        OSError: A stream could not be bound or connected; ssl.SSLError if TLS failed on it.
    """
    return ConnectContext(_open_streams(host, port, limit, options))


async def _open_streams(
    host: str | None, port: int | None, limit: int, options: ClientArguments
) -> tuple[StreamReader, StreamWriter]:
    check_limit(limit)
    loop = asyncio.get_running_loop()
    transport, protocol = await create_connection(lambda: StreamProtocol(loop, limit), host, port, **options)
    return protocol.reader, protocol.writer(transport)


async def create_connection(
    protocol_factory: Callable[[], P],
    host: str | None = None,
    port: int | None = None,
    **options: Unpack[ClientArguments],
) -> tuple[ConnectionTransport, P]:
    """Open a connection for a protocol, as the event loop's method of this name does.

    Args:
        protocol_factory: Makes the asyncio.Protocol or asyncio.BufferedProtocol that gets the bytes.
        host: Name or address of the destination.
        port: TCP port of the destination.
        options: Those of `open_connection`, without `limit`.

    Raises:
        LocalProtocolError: The arguments contradict each other or are out of range.
        ControllerError: The controller refused the request, or could not be reached.
        OSError: No stream could be connected.
    """
    transport = await _open_transport(host, port, ClientOptions(**options))
    try:
        protocol = protocol_factory()
        transport.set_protocol(protocol)
        transport.start()
    except BaseException:
        # What the application raises reaches the caller; neither streams nor an allocation stay behind.
        transport.set_protocol(asyncio.Protocol())
        transport.abort()
        await transport.wait_closed()
        raise
    return transport, protocol


async def _open_transport(host: str | None, port: int | None, options: ClientOptions) -> ConnectionTransport:
    """Open a connection that has no protocol yet and was not started; see `open_connection`."""
    if options.sock is not None:
        return await _open_given(host, port, options)
    if host is None or port is None:
        raise LocalProtocolError("host and port are missing, and no sock is given")
    check_address(host, port, least_port=1)
    tls = client_settings(options.ssl, options.server_hostname, host)
    addresses = await resolve(host, port)
    if options.controller is None:
        return await open_transport(addresses, options.specs, options, tls)
    return await _FlowOpening(options.controller, addresses[0], options, tls).open()


async def _open_given(host: str | None, port: int | None, options: ClientOptions) -> ConnectionTransport:
    """Make a connection of sockets that the application has connected."""
    if host is not None or port is not None:
        raise LocalProtocolError("host and port are given, and so is sock: leave one of them out")
    if options.ssl and options.server_hostname is None:
        raise LocalProtocolError(
            "sock with ssl needs server_hostname: the name that the certificate must have"
        )
    tls = client_settings(options.ssl, options.server_hostname, "")
    with closing_on_error() as socks:
        socks += options.given_sockets
        for sock in socks:
            sockets.set_options(sock, options.congestion_control, None)
        # Each is opened again from where it came, to where it went.
        specs = [
            replace(spec, local=sock.getsockname()[0], remote=sock.getpeername()[:2])
            for sock, spec in zip(socks, options.specs, strict=True)
        ]
        destination = [(socks[0].family, socks[0].getpeername())]
        return await open_transport(destination, specs, options, tls, socks)


class _FlowOpening:
    """A connection whose streams a controller allocates, and which follows the controller's changes."""

    def __init__(
        self,
        controller: str | ControllerAddress | ControllerClient,
        address: Address,
        options: ClientOptions,
        tls: TlsSettings | None,
    ) -> None:
        # The control channel's packages are an extra.
        from mstcp.control import ControllerAddress

        if isinstance(controller, str):
            controller = ControllerAddress(controller)
        self._own_client = isinstance(controller, ControllerAddress)
        self._client = controller.client() if isinstance(controller, ControllerAddress) else controller
        self._family, self._destination = address
        self._options = options
        self._tls = tls
        self._allocation: Allocation | None = None
        self._transport: ConnectionTransport | None = None
        self._growing: AllocatedStreams | None = None
        self._spare: dict[int, socket.socket] = {}
        self._closed = asyncio.Event()
        self._keeper: asyncio.Task[None]

    async def open(self) -> ConnectionTransport:
        options, count = self._options, self._options.path_count
        source = options.source_host or sockets.local_address(self._family, self._destination)
        self._keeper = asyncio.create_task(self._keep())
        try:
            await asyncio.sleep(0)  # the keeper has begun
            with closing_on_error() as socks:
                for _ in range(count):
                    socks.append(bind(self._family, source, options))
                allocation = await self._client.request(
                    source=source,
                    destination=self._destination[0],
                    destination_port=self._destination[1],
                    source_ports=[sock.getsockname()[1] for sock in socks],
                    rate_bps=options.rate or sum(path.rate_bps for path in options.requested_paths),
                    packet_bytes=options.packet_bytes,
                    objective=options.objective or "",
                    paths=options.requested_paths,
                    max_paths=count,
                    segment_overhead_bytes=sockets.segment_overhead_bytes(self._family),
                    may_grow=options.may_grow,
                    on_changed=self._on_changed,
                    on_ended=self._on_ended,
                )
                self._allocation = allocation
                others = _keep_allocated(socks, allocation)
                if options.may_grow:
                    self._spare = {sock.getsockname()[1]: sock for sock in others}
                else:
                    _close_all(others)
                address = (self._family, self._destination)
                self._transport = await open_transport(
                    [address], allocation.streams, options, self._tls, socks, self._give_back
                )
        except BaseException:
            self._keeper.cancel()
            _close_all(self._spare.values())
            await self._release()
            raise
        if options.may_grow:
            self._growing = self._grow(self._transport, source)
        self._follow(self._transport, self._allocation)
        return self._transport

    def _grow(self, transport: ConnectionTransport, source: str) -> AllocatedStreams:
        loop, report = asyncio.get_running_loop(), self._client.report_streams
        another = partial(bind, self._family, source, self._options)
        return AllocatedStreams(loop, transport, self._spare, another, report)

    def _follow(self, transport: ConnectionTransport, allocation: Allocation | None) -> None:
        """Give the connection the rates and streams that are allocated.

        Raises:
            LocalProtocolError: No stream is left with a rate.
        """
        if allocation is not None:
            transport.set_rates({stream.source_port: stream.rate_bps or 0.0 for stream in allocation.streams})
        transport.set_allocation(allocation)
        if self._growing is not None and allocation is not None:
            self._growing.follow(allocation)

    def _on_changed(self, allocation: Allocation) -> None:
        self._change(allocation, "")

    def _on_ended(self, reason: str) -> None:
        """Go on without an allocation: the streams live, on the network's default routes."""
        LOGGER.warning("the controller ended the flow of a running connection: %s", reason)
        self._change(None, reason)

    def _change(self, allocation: Allocation | None, reason: str) -> None:
        """Follow a change; while the streams are being connected, once they are."""
        if self._transport is not None:
            self._follow(self._transport, allocation)
        before, self._allocation = self._allocation, allocation
        told = self._options.on_allocation_changed
        if self._transport is not None and before is not None and told is not None:
            # By the loop, so that what it raises does not hit the control channel.
            event = AllocationChanged(before, allocation, reason)
            asyncio.get_running_loop().call_soon(told, event)

    async def _keep(self) -> None:
        """Keep the allocation until the connection is closed.

        A task that runs from the beginning: when the connection closes, the loop may run no more.
        """
        await self._closed.wait()
        await self._release()

    def _give_back(self) -> asyncio.Future[None]:
        if self._growing is not None:
            self._growing.stop()
        self._closed.set()
        return self._keeper

    async def _release(self) -> None:
        """Give the allocation back; a controller that is gone lets the lease run out."""
        allocation, self._allocation = self._allocation, None
        try:
            if allocation is not None:
                with contextlib.suppress(ControllerError):
                    await self._client.release(allocation.flow_id)
        finally:
            if self._own_client:
                await self._client.close()


def _keep_allocated(socks: list[socket.socket], allocation: Allocation) -> list[socket.socket]:
    """Put the sockets of the streams that were allocated into that order, and return the others."""
    by_port = {sock.getsockname()[1]: sock for sock in socks}
    ports = [stream.source_port for stream in allocation.streams]
    if not ports or len(set(ports)) < len(ports) or not by_port.keys() >= set(ports):
        reason = f"the controller allocated source ports {ports}, which are not those asked for"
        raise ControllerError("INVALID", "streams", reason)
    socks[:] = [by_port.pop(port) for port in ports]
    return list(by_port.values())


def _close_all(socks: Iterable[socket.socket]) -> None:
    for sock in socks:
        sock.close()
