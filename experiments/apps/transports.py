"""How the two ends of a flow connect: what protocols choose among, and what wraps a transport of one's own.

A client is an asyncio transport with `try_write`, `abort`, `wait_closed` and the further information
`frame_payload_bytes`, `streams` (`mstcp.StreamInfo`) and `sockets`; a server calls a protocol's
`connection_made` with one that has `streams` and `counters` (`mstcp.ConnectionCounters`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import mstcp
from experiments.apps.config import SinkConfig, SourceConfig
from experiments.apps.stream_progress import StreamProgress
from mstcp.control import ControllerClient
from mstcp.transport import SCHEDULER

STREAMS_S = 0.25
"""How long all streams are waited for once the first is open."""


class Accepting(asyncio.Protocol):
    """The protocol of a connection that a server waits for."""

    def failed(self, error: Exception) -> None:
        """Learn why none came."""
        raise NotImplementedError


@dataclass
class SharedClients:
    """What the flows of a process share: a client for each controller, and what is closed at the end."""

    stack: AsyncExitStack
    _controllers: dict[str, ControllerClient] = field(default_factory=dict)

    async def controller(self, address: str) -> ControllerClient:
        """Return the client of a controller."""
        if address not in self._controllers:
            client = await self.stack.enter_async_context(ControllerClient(address))
            self._controllers[address] = client
        return self._controllers[address]


def _options(config: SourceConfig) -> dict[str, Any]:
    return {
        "packet_bytes": config.packet_bytes,
        "congestion_control": config.sockets.congestion_control,
        "send_buffer_bytes": config.sockets.send_buffer_bytes,
        "receive_buffer_bytes": config.sockets.receive_buffer_bytes,
        "seed": config.seed,
    }


async def connect_tcp(config: SourceConfig, ports: Sequence[int]) -> Any:
    """Open a plain TCP connection, from a port if one is given."""
    streams = [mstcp.StreamSpec(source_port=port) for port in ports or [0]]
    # Whatever the protocol, the flow begins when its streams are there.
    options = {**_options(config), "streams": streams, "join_timeout": STREAMS_S}
    transport, _ = await mstcp.create_connection(asyncio.Protocol, config.host, config.port, **options)
    return transport


async def connect_mstcp(config: SourceConfig, session: SharedClients) -> Any:
    """Ask a controller for paths, and open a stream over each."""
    told = config.connection
    paths = [mstcp.RequestedPath(tuple(nodes), rate_bps) for nodes, rate_bps in told.get("paths", ())]
    transport, _ = await mstcp.create_connection(
        asyncio.Protocol,
        config.host,
        config.port,
        rate=config.rate_bps,
        controller=await session.controller(told["controller"]),
        objective=told.get("objective"),
        paths=paths or None,
        scheduler=told.get("scheduler") or SCHEDULER,
        **_options(config),
    )
    return transport


async def serve(
    config: SinkConfig, protocol: asyncio.Protocol, stack: AsyncExitStack, *, plain: bool
) -> None:
    """Accept a flow's connection by the library; one that is `plain` is known to be TCP and not MSTCP."""
    server = await mstcp.create_server(
        lambda: protocol,
        config.host,
        config.port,
        plain=True if plain else "auto",
        congestion_control=config.sockets.congestion_control,
        send_buffer_bytes=config.sockets.send_buffer_bytes,
        receive_buffer_bytes=config.sockets.receive_buffer_bytes,
    )
    stack.push_async_callback(server.wait_closed)
    stack.callback(server.close)


class Wrapped(asyncio.Protocol):
    """An asyncio transport as sources and sinks use it; the protocol that the event loop is given for it.

    `payload_bytes` is what a full packet carries; `protocol` gets what arrives (a source sets its own later);
    `streams` are the paths, one unknown by default; `subflows` returns what each has carried, by its port, if
    that is known.
    """

    def __init__(
        self,
        payload_bytes: int,
        protocol: asyncio.Protocol | None = None,
        streams: Sequence[mstcp.StreamInfo] | None = None,
        subflows: Callable[[], Mapping[int, StreamProgress]] | None = None,
    ) -> None:
        self._protocol = protocol or asyncio.Protocol()
        self._inner: asyncio.Transport | None = None
        self._closed = asyncio.get_running_loop().create_future()
        unknown = mstcp.StreamInfo(0, 0, None, None, None, None)
        self._information = {
            "frame_payload_bytes": payload_bytes,
            "streams": tuple(streams or (unknown,)),
            "sockets": (),
            "subflows": subflows,
            "counters": mstcp.ConnectionCounters((), None, None, None, queued_bytes=0),
        }

    # --- towards the event loop
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; a source's protocol is set later, a sink's learns of its connection."""
        self._inner = cast("asyncio.Transport", transport)
        self._protocol.connection_made(cast("asyncio.Transport", self))

    def data_received(self, data: bytes) -> None:
        """Pass on."""
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on."""
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on, and let those go who wait for the end."""
        if not self._closed.done():
            self._closed.set_result(None)
        self._protocol.connection_lost(exc)

    # --- towards sources and sinks
    @property
    def _transport(self) -> asyncio.Transport:
        assert self._inner is not None, "it is connected"
        return self._inner

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give what arrives to another protocol."""
        self._protocol = cast("asyncio.Protocol", protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection."""
        return self._information.get(name, default)

    def try_write(self, data: bytes) -> bool:
        """Write all, or nothing where earlier bytes still wait."""
        if self._transport.get_write_buffer_size():
            return False
        self._transport.write(data)
        return True

    def write(self, data: bytes) -> None:
        """Write all."""
        self._transport.write(data)

    def write_eof(self) -> None:
        """End what is sent."""
        self._transport.write_eof()

    def close(self) -> None:
        """Close when all is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait for the end."""
        await asyncio.shield(self._closed)
