"""Requests to the driver: streams to open."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

from mstcp.streams import StreamSpec

Address = tuple[socket.AddressFamily, Any]

STREAM: dict[str, Any] = {"type": socket.SOCK_STREAM}


class StreamRequest(NamedTuple):
    """A stream for the driver to open.

    Attributes:
        source: Our socket address; None: the system chooses.
        remote: The peer's socket address; None: the connection's.
        rate_bps: Goodput that it is paced at; None: it is not.
        priority: Its priority.
        descriptor: A bound or connected socket to use first, which is the driver's then.
    """

    source: Any
    remote: Any
    rate_bps: float | None
    priority: int
    descriptor: int | None = None

    def over(self, sock: socket.socket) -> StreamRequest:
        """Return the request with a socket to use first; the driver owns it afterwards."""
        return self._replace(descriptor=sock.detach())


def socket_addresses(addresses: Iterable[tuple[Any, ...]]) -> list[Address]:
    """Return the families and socket addresses of what `getaddrinfo` returned."""
    return [(family, address) for family, _, _, _, address in addresses]


def source_address(family: socket.AddressFamily, host: str | None, port: int) -> Any:
    """Return the socket address of an own host and port, of this family if it has one; None: any.

    Raises:
        socket.gaierror: The host is unknown.
    """
    if host is None and not port:
        return None
    try:
        own = socket_addresses(socket.getaddrinfo(host, port, flags=socket.AI_PASSIVE, **STREAM))
    except socket.gaierror as error:
        raise socket.gaierror(error.errno, f"cannot connect from address {host}: {error.strerror}") from None
    return next((address for one, address in own if one == family), own[0][1])


def stream_request(
    spec: StreamSpec, family: socket.AddressFamily, host: str | None, sock: socket.socket | None = None
) -> StreamRequest:
    """Return the driver's request for a stream, from a socket if given, else from `spec.local` or `host`."""
    remote = None
    if spec.remote is not None:
        ((family, remote),) = socket_addresses(
            socket.getaddrinfo(*spec.remote, flags=socket.AI_NUMERICHOST, **STREAM)
        )
    if sock is not None:
        source = (*sock.getsockname()[:1], spec.source_port, *sock.getsockname()[2:])
    else:
        source = source_address(family, spec.local or host, spec.source_port)
    return StreamRequest(source, remote, spec.rate_bps, spec.priority)
