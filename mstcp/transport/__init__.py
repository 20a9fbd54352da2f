"""The asyncio transport of a connection: sockets and event loop around a sans-IO core.

A class for each idea, each on top of those before it; what one needs of a class above it is declared by
`TransportBase`.

| module | |
|---|---|
| `base` | the core, the streams, how far the connection is |
| `health` | figures, traces, keepalive |
| `sending` | from the core into the sockets, back-pressure, the core's timer |
| `delivery`, `receiving` | from the sockets through the core to the protocol |
| `membership` | streams that come, go and change their rates |
| `ending` | closing, breaking, and what is said of it |
| `lending` | threads that drive the connection in the loop's stead |
| `connection` | asyncio's interface: `ConnectionTransport` |
"""

from mstcp.transport.base import Setup
from mstcp.transport.connection import ConnectionTransport
from mstcp.transport.defaults import (
    HARD_QUEUE_BYTES,
    RECONNECT_S,
    REORDER_BUFFER_BYTES,
    SCHEDULER,
    SEND_QUEUE_BYTES,
    USER_TIMEOUT_S,
)

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
