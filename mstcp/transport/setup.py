"""What a transport is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mstcp import _core
from mstcp.streams import StreamSpec


def wake_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake those that wait, and empty the list."""
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
        core: The driver, with the connection's state.
        specs: Of a client: the streams that the driver is opening, by their numbers.
        send_buffer_bytes: Bound on the bytes that `try_write` took and the peer's kernel has not acknowledged
            yet, headers included; None bounds only those that no socket has taken (256 KiB).
        extra: What `get_extra_info` knows beside sockets and streams.
        on_closed: Called when the sockets are closed; `wait_closed` and `connection_lost` wait for the future
            that it returns, if any. It must begin no task: the loop may run no more.
    """

    loop: asyncio.AbstractEventLoop
    protocol: asyncio.BaseProtocol
    core: _core.Connection
    specs: Mapping[int, StreamSpec] | None = None
    send_buffer_bytes: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    on_closed: Callable[[], asyncio.Future[None] | None] | None = None
