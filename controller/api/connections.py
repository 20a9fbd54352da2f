"""Connections of the REST server: how many there are, how long a request may take, and their end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from controller.connection_limits import ConnectionLimits, is_passing
from controller.logs import SparingLog

_LOG = SparingLog(logging.getLogger("controller.api"))

BACKLOG = 32
"""Connections accepted at a time, before those that are too many are closed."""

HANDSHAKE_S = 10.0
"""Of TLS."""

REQUEST_S = 20.0
"""Time for a request to arrive whole, from its connection, or the request before it."""

UNREAD_S = 60.0
"""A client that reads nothing of an answer for this time loses its connection."""


class LimitedProtocol(H11Protocol):
    """A connection, unless there are too many; ended if requests do not arrive or answers are not read."""

    def __init__(self, limits: ConnectionLimits, **named: Any) -> None:
        super().__init__(**named)
        self._limits = limits
        self._host: str | None = None  # None: it is not served
        self._arriving: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request, or end the connection at once."""
        transport = cast(asyncio.Transport, transport)
        host = (transport.get_extra_info("peername") or ("unknown",))[0]
        refused = self._limits.take(host)
        if refused is not None:
            _LOG.warning("limit", "the REST client at %s is disconnected: %s", host, refused)
            transport.abort()
            return
        self._host = host
        super().connection_made(transport)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for timer in (self._arriving, self._unread):
            if timer is not None:
                timer.cancel()
        if self._host is not None:
            self._limits.free(self._host)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle what has arrived of a request."""
        if self._host is not None:
            super().data_received(data)

    def handle_events(self) -> None:
        """Handle what is complete of a request, and wait for the rest."""
        super().handle_events()
        self._follow()

    def _follow(self) -> None:
        is_arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_arriving and self._arriving is None:
            self._arriving = self.loop.call_later(REQUEST_S, self._abort, "sent no whole request")
        elif not is_arriving and self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def pause_writing(self) -> None:
        """Wait until the client reads, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_S, self._abort, "did not read its answer")

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _abort(self, reason: str) -> None:
        _LOG.warning(reason, "the REST client at %s is disconnected: it %s", self.client, reason)
        self.transport.abort()


class RestServer(uvicorn.Server):
    """uvicorn on sockets that listen already, where a TLS handshake does not take for ever."""

    def __init__(
        self, config: uvicorn.Config, limits: ConnectionLimits, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(config)
        self._limits = limits
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            return LimitedProtocol(
                self._limits,
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )

        handshake_s = None if self._tls is None else HANDSHAKE_S
        self.servers = [
            await loop.create_server(
                protocol, sock=each, ssl=self._tls, ssl_handshake_timeout=handshake_s, backlog=BACKLOG
            )
            for each in sockets or ()
        ]
        self.started = True


def handle_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what goes wrong in a loop; that no connection can be accepted for now is one line, now and then."""
    error = context.get("exception")
    if isinstance(error, OSError) and is_passing(error):
        _LOG.warning("accept", "no client can be accepted for now: %s", error.strerror)
    else:
        loop.default_exception_handler(context)


async def abort_connections(server: uvicorn.Server) -> None:
    """Close what a server that has ended left open: connections that came as it ended, for example."""
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    await asyncio.sleep(0)  # the loop closes the sockets
