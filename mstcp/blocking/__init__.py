"""Connections for programs without an event loop: `create_connection` and `create_server`, as in `socket`.

    with mstcp.blocking.create_connection(("10.0.0.3", 9000), streams=streams) as sock:
        sock.sendall(data)

All connections are carried by one event loop in a thread of its own (mstcp/background.py), so that
acknowledgements, streams that are lost and rates that change do not wait for the application.
"""

from __future__ import annotations

import socket as _socket
from typing import TYPE_CHECKING, Any

from mstcp.background import background
from mstcp.blocking.bridge import Bridge
from mstcp.blocking.deadline import check_timeout
from mstcp.blocking.listener import Listener
from mstcp.blocking.socket import Socket
from mstcp.open.client import create_connection as _open
from mstcp.open.server import create_server as _serve

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mstcp.options import ClientArguments, ServerArguments, SocketArguments

__all__ = ["Listener", "Socket", "create_connection", "create_server"]

DEFAULT_BACKLOG = 128
_DEFAULT_TIMEOUT: Any = _socket._GLOBAL_DEFAULT_TIMEOUT  # type: ignore[attr-defined]
"""What `socket` and `http.client` pass where nobody named a timeout."""


def create_connection(
    address: tuple[str, int],
    timeout: float | None = _DEFAULT_TIMEOUT,
    source_address: str | tuple[str, int] | None = None,
    **options: Unpack[SocketArguments],
) -> Socket:
    """Open a connection of one or more streams; use it as a connected socket.

    Args:
        address: Host name or address, and port.
        timeout: Seconds that opening may take, and the socket's timeout after; None: no limit of ours. By
            default `socket.getdefaulttimeout()`.
        source_address: Our address, or a pair of it and a port.
        options: Those of `mstcp.open_connection`, without `limit`: `rate`, `controller`, `streams` …

    Raises:
        TimeoutError: The connection was not there in time.
        LocalProtocolError: The arguments contradict each other or are out of range.
        ValueError: The timeout is none.
        ControllerError: The controller refused the request, or could not be reached.
        OSError: No stream could be connected.
    """
    if timeout is _DEFAULT_TIMEOUT:
        timeout = _socket.getdefaulttimeout()
    check_timeout(timeout)
    host, port = address[:2]
    # The caller writes after this returns: nothing can go with the hello.
    more: ClientArguments = {"join_timeout": 0.0, **options, "source_address": source_address}
    sock = background().run(connecting(host, port, more), timeout)
    sock.settimeout(timeout)
    return sock


async def connecting(host: str, port: int, options: ClientArguments) -> Socket:
    """Open a connection, in the library's thread."""
    loop = background()
    _, bridge = await _open(lambda: Bridge(loop), host, port, **options)
    return Socket(bridge, None)


def create_server(
    address: tuple[str | None, int],
    *,
    timeout: float | None = None,
    **options: Unpack[ServerArguments],
) -> Listener:
    """Listen for connections, MSTCP and plain TCP; `accept` returns them.

    Args:
        address: Host name or address ("": all of IPv4's as in `socket`, None: 127.0.0.1), and port (0: the
            system chooses).
        timeout: Seconds that `accept` may wait; None: for ever.
        options: Those of `mstcp.start_server`, without `limit` and `client_connected_cb`. `backlog` is also
            how many connections may wait for `accept`; more are reset.

    Raises:
        LocalProtocolError: The arguments contradict each other.
        ValueError: The timeout is none.
        OSError: The address is not this host's, or the port is taken.
    """
    check_timeout(timeout)
    host, port = address[:2]
    if host == "":
        host = "0.0.0.0"  # noqa: S104  # as `socket` has it
    listener = background().run(listening(host, port, options))
    listener.settimeout(timeout)
    return listener


async def listening(host: str | None, port: int, options: ServerArguments) -> Listener:
    """Listen, in the library's thread."""
    listener = Listener(background(), None, options.get("backlog", DEFAULT_BACKLOG))
    listener.serve(await _serve(listener.make_bridge, host, port, **options))
    return listener
