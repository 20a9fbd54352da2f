"""The asyncio transport of a connection: event loop and protocol around the driver (`mstcp_net::Driver`).

| module | |
|---|---|
| `connection` | asyncio's interface: `ConnectionTransport` |
| `shell` | applies what the driver says to the event loop |
| `delivery` | gives the protocol what is in order |
| `membership` | streams that come, go and change their rates |
| `health` | figures, traces, keepalive |
| `setup` | what a transport is made of |
"""

from mstcp.transport.connection import ConnectionTransport
from mstcp.transport.defaults import (
    HARD_QUEUE_BYTES,
    RECONNECT_S,
    REORDER_BUFFER_BYTES,
    SCHEDULER,
    SEND_QUEUE_BYTES,
)
from mstcp.transport.setup import Setup

__all__ = [
    "HARD_QUEUE_BYTES",
    "RECONNECT_S",
    "REORDER_BUFFER_BYTES",
    "SCHEDULER",
    "SEND_QUEUE_BYTES",
    "ConnectionTransport",
    "Setup",
]
