"""The asyncio transport of a connection: sockets and event loop around a sans-IO core.

`ConnectionTransport` is asyncio's interface and owns the parts, which share a `State` and know of each other
only what they are given.

| module | |
|---|---|
| `connection` | asyncio's interface: `ConnectionTransport` |
| `parts` | how the parts are put together |
| `state` | the core, the streams, how far the connection is; what a transport is made of |
| `watching` | what the event loop watches the sockets for |
| `sending` | from the core into the sockets, back-pressure, the core's timer |
| `delivery`, `receiving` | from the sockets through the core to the protocol |
| `membership` | streams that come, go and change their rates |
| `health` | figures, traces, keepalive |
| `ending` | closing, breaking, and what is said of it |
| `lending` | threads that drive the connection in the loop's stead |
"""

from mstcp.transport.connection import ConnectionTransport
from mstcp.transport.defaults import (
    HARD_QUEUE_BYTES,
    RECONNECT_S,
    REORDER_BUFFER_BYTES,
    SCHEDULER,
    SEND_QUEUE_BYTES,
    USER_TIMEOUT_S,
)
from mstcp.transport.state import Setup

__all__ = [
    "HARD_QUEUE_BYTES",
    "RECONNECT_S",
    "REORDER_BUFFER_BYTES",
    "SCHEDULER",
    "SEND_QUEUE_BYTES",
    "USER_TIMEOUT_S",
    "ConnectionTransport",
    "Setup",
]
