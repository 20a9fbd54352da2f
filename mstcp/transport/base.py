"""What all parts of a connection's transport share."""

from __future__ import annotations

import asyncio
import errno
from asyncio import constants
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mstcp import _core
from mstcp.errors import RemoteProtocolError
from mstcp.open_stream import OpenStream
from mstcp.plain import Core, PlainConnection
from mstcp.streams import StreamSpec
from mstcp.transport.defaults import RECONNECT_S

NOT_NOW = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
"""The errors of a socket that is only not ready."""


def wake_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake those that wait, and empty the list.

    An idle connection has lists of them: each `asyncio.Event` would cost it 0.7 KB.
    """
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


@dataclass(frozen=True)
class Setup:
    """What a transport is made of.

    Attributes:
        loop: The event loop; it must have add_reader and add_writer.
        protocol: Gets the bytes in order.
        core: Protocol state, `mstcp._core.Connection` or `PlainConnection`.
        streams: In the order of the core's stream indices.
        frame_payload_bytes: Application bytes that fill one packet.
        send_buffer_bytes: Bound on the bytes that `try_write` took and the peer's kernel has not acknowledged
            yet, headers included; None bounds only those that no socket has taken (256 KiB).
        extra: What `get_extra_info` knows beside sockets and streams.
        on_closed: Called when the sockets are closed; `wait_closed` and `connection_lost` wait for the future
            that it returns, if any. It must begin no task: the loop may run no more.
        reconnect_s: How long the connection waits without any stream before it is lost.
        on_stream_lost: Told of each stream that broke, so that it can be opened again.
    """

    loop: asyncio.AbstractEventLoop
    protocol: asyncio.BaseProtocol
    core: Core
    streams: Sequence[OpenStream]
    frame_payload_bytes: int
    send_buffer_bytes: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    on_closed: Callable[[], asyncio.Future[None] | None] | None = None
    reconnect_s: float = RECONNECT_S
    on_stream_lost: Callable[[StreamSpec], None] | None = None


# `loop.sendfile` takes no transport that is not of this class.
class TransportBase(asyncio.transports._FlowControlMixin):
    """The core, the streams, and how far the connection is; what a part needs of those above it."""

    # `loop.sendfile` reads the file and writes it; `loop.start_tls` puts TLS into the connection, end to end.
    _sendfile_compatible = constants._SendfileMode.FALLBACK
    _start_tls_compatible = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(loop=setup.loop)
        core = setup.core
        self._loop = setup.loop
        self._core = core
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self._protocol: asyncio.Protocol = setup.protocol  # type: ignore[assignment]
        # By index in the core; those that are gone stay until another takes their place.
        self._streams = list(setup.streams)
        self._is_plain = isinstance(core, PlainConnection)
        self._mstcp = core if isinstance(core, _core.Connection) else None
        # Streams (bits) that TCP has ended, and that we have ended.
        self._ended_streams = 0
        self._shut_streams = 0
        self._closing = False
        self._closed = False
        # What threads drive the connection by, and whether they have the sockets now.
        self._loan: _core.Loan | None = None
        self._is_lent = False
        self._information: dict[str, Any] = dict(setup.extra)
        if (layer := self._streams[0].layer) is not None:
            self._information |= layer.information()

    # --- of the parts above ---------------------------------------------------------------------------------
    def _pump(self) -> None:
        """Send until nothing is queued or no stream has room."""
        raise NotImplementedError

    def _drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        raise NotImplementedError

    def _lose(self, stream: int, error: OSError) -> None:
        """Go on without a stream that broke, or end; what it brought before is read out.

        While the protocol is being given bytes that waits until it has them.
        """
        raise NotImplementedError

    def _take_events(self) -> None:
        """Do what the core says has happened."""
        raise NotImplementedError

    def _refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol, and say so."""
        raise NotImplementedError

    def _fail(self, error: Exception) -> None:
        """End a connection whose protocol failed: what it did not take must not be missing unseen."""
        raise NotImplementedError

    def _finish(self, error: Exception | None, *, reset: bool) -> None:
        """Close the sockets and tell the application."""
        raise NotImplementedError

    def _changed(self) -> None:
        """Note that there may be bytes to receive, or room, that were not there before."""
        raise NotImplementedError
