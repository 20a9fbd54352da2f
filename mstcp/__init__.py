"""Multi-Stream TCP: one connection over several TCP streams, each on a path of its own.

    reader, writer = await mstcp.open_connection(host, port, rate=8.5e6, controller="10.255.0.1:50051")
    server = await mstcp.start_server(client_connected_cb, host, port)

Reader and writer are asyncio's own; `mstcp.blocking` has sockets for programs without an event loop.
See docs/mstcp.md.
"""

import logging

try:
    import mstcp._core  # noqa: F401  (first, so that what is missing has a name)
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "the compiled core of mstcp is missing: run `make setup` in a clone, or install the package again",
        name="mstcp._core",
    ) from None

from mstcp import blocking
from mstcp.aio.streams import StreamReader, StreamWriter
from mstcp.control.allocation import Allocation, AllocationChanged, RequestedPath
from mstcp.errors import (
    BufferLimitExceeded,
    ConnectionClosed,
    ConnectionLost,
    ControllerError,
    DependencyMissing,
    LocalProtocolError,
    MstcpError,
    ProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from mstcp.limits import ServerLimits, limit_receive_memory
from mstcp.network import Interfaces
from mstcp.open.client import create_connection, open_connection
from mstcp.open.server import Server, create_server, start_server
from mstcp.stats import ConnectionStats, StreamStats, TcpInfo
from mstcp.streams import ConnectionCounters, StreamCounters, StreamInfo, StreamSpec
from mstcp.transport import ConnectionTransport

__version__ = "1.0.0"

# Nothing is said unless the application configures logging.
logging.getLogger("mstcp").addHandler(logging.NullHandler())

__all__ = [
    "Allocation",
    "AllocationChanged",
    "BufferLimitExceeded",
    "ConnectionClosed",
    "ConnectionCounters",
    "ConnectionLost",
    "ConnectionStats",
    "ConnectionTransport",
    "ControllerError",
    "DependencyMissing",
    "Interfaces",
    "LocalProtocolError",
    "MstcpError",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestedPath",
    "Server",
    "ServerLimits",
    "StreamCounters",
    "StreamInfo",
    "StreamReader",
    "StreamSpec",
    "StreamStats",
    "StreamWriter",
    "TcpInfo",
    "UnsupportedVersion",
    "blocking",
    "create_connection",
    "create_server",
    "limit_receive_memory",
    "open_connection",
    "start_server",
]
