"""A transport from outside the package: sockets of asyncio, and in the simulator TCP with a fixed window."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from experiments import protocols
from experiments.apps.config import SinkConfig, SourceConfig
from experiments.apps.transports import Accepting, SharedClients, Wrapped
from experiments.model.scenario import Scenario
from experiments.protocols import ProtocolSpec


class FixedWindow:
    """Twenty segments, whatever happens: a congestion control for the simulator (docs/own-methods.md)."""

    def on_ack(self, window: Any, acked: Any) -> None:
        """Keep to the window."""
        del acked
        window.cwnd_bytes = 20.0 * window.mss_bytes

    def on_loss(self, window: Any, now_s: float, flight_bytes: int) -> None:
        """Leave it as it is."""


class Dummy(ProtocolSpec):
    """What a transport of one's own begins with; its routing is that of plain TCP."""

    name = "dummy"
    description = "a byte stream over asyncio's own sockets on the shortest path"

    async def client(self, config: SourceConfig, ports: Sequence[int], session: SharedClients) -> Any:
        """Connect to the sink."""
        sock = self._socket(config.sockets.congestion_control)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, (config.host, config.port))
        transport = Wrapped(config.payload_bytes)
        await loop.create_connection(lambda: transport, sock=sock)
        return transport

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Listen for the source."""
        sock = self._socket(config.sockets.congestion_control)
        sock.bind((config.host, config.port))
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Wrapped(config.payload_bytes, sink), sock=sock)
        stack.callback(server.close)

    def simulated(self, scenario: Scenario) -> Mapping[str, Any]:
        """Return the simulator's TCP with the congestion control above."""
        return {"protocol": "tcp", "congestion_control": f"{__file__}:FixedWindow"}

    @staticmethod
    def _socket(congestion_control: str) -> socket.socket:
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        sock.setblocking(False)
        return sock


protocols.register(Dummy())
