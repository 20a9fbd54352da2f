"""What the parts of a connection's transport share, and what a transport is made of."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mstcp import _core
from mstcp.open_stream import OpenStream
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
        core: Protocol state.
        streams: In the order of the core's stream indices.
        frame_payload_bytes: Application bytes that fill one packet.
        send_buffer_bytes: Bound on the bytes that `try_write` took and the peer's kernel has not acknowledged
            yet, headers included; None bounds only those that no socket has taken (256 KiB).
        extra: What `get_extra_info` knows beside sockets and streams.
        on_closed: Called when the sockets are closed; `wait_closed` and `connection_lost` wait for the future
            that it returns, if any. It must begin no task: the loop may run no more.
        reconnect_s: How long the connection waits without any stream before it is lost.
        on_stream_lost: Told of each stream that broke, so that it can be opened again.
        on_opened: Told that the first hello was answered; None where that was before.
    """

    loop: asyncio.AbstractEventLoop
    protocol: asyncio.BaseProtocol
    core: _core.Connection
    streams: Sequence[OpenStream]
    frame_payload_bytes: int
    send_buffer_bytes: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    on_closed: Callable[[], asyncio.Future[None] | None] | None = None
    reconnect_s: float = RECONNECT_S
    on_stream_lost: Callable[[StreamSpec], None] | None = None
    on_opened: Callable[[], None] | None = None


class State:
    """The core, the streams, and how far the connection is. The parts change it; it does nothing itself.

    Attributes:
        core: Protocol state; `mstcp` is the same where it is no plain connection, and `direct` where it reads
            and writes the sockets itself, in one call a wake-up.
        streams: By index in the core; those that are gone stay until another takes their place.
        ended_streams: Streams (bits) that TCP has ended.
        shut_streams: Streams (bits) that we have ended.
        removed_streams: Streams (bits) that were taken out and are not opened again.
        is_lent: Threads have the sockets now.
        lost: Why the connection ended, if it was not closed.
        information: What `get_extra_info` knows.
    """

    def __init__(self, setup: Setup) -> None:
        core = setup.core
        self.loop = setup.loop
        self.core = core
        # As asyncio's own transports do: the caller passes an asyncio.Protocol.
        self.protocol: asyncio.Protocol = setup.protocol  # type: ignore[assignment]
        self.streams = list(setup.streams)
        self.is_plain = core.is_plain
        self.mstcp = None if core.is_plain else core
        has_layer = any(stream.layer is not None for stream in setup.streams)
        self.direct = None if has_layer else core
        self.ended_streams = 0
        self.shut_streams = 0
        self.removed_streams = 0
        self.is_closing = False
        self.is_closed = False
        self.is_lent = False
        self.lost: BaseException | None = None
        self.information: dict[str, Any] = dict(setup.extra)
        if (layer := self.streams[0].layer) is not None:
            self.information |= layer.information()

    def is_alive(self, stream: int) -> bool:
        """Return whether a stream carries bytes."""
        return bool(self.core.alive >> stream & 1)

    def shut(self, stream: int) -> None:
        """Note that a stream's last byte was sent, and end TCP's direction."""
        self.shut_streams |= 1 << stream
        self.streams[stream].shut()
