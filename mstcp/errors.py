"""What can go wrong in mstcp.

MstcpError
├── ProtocolError
│   ├── LocalProtocolError      the application uses the library in a way the protocol does not allow
│   └── RemoteProtocolError     the peer broke the protocol
│       └── UnsupportedVersion  it speaks other versions of it
├── ConnectionClosed            the connection is closed on our side
│   └── ConnectionLost          it broke: a stream failed, or the peer vanished (also a ConnectionResetError)
├── BufferLimitExceeded         the application wrote on and on without waiting for drain()
├── ControllerError             the controller refused, or cannot be reached
└── DependencyMissing           an optional package is not installed (also an ImportError)
"""

from __future__ import annotations

import asyncio
import os
import re
from ssl import SSLCertVerificationError, SSLError


class MstcpError(Exception):
    """Root of the errors of this package."""


class ProtocolError(MstcpError):
    """One side does not keep to the protocol.

    Attributes:
        reason: What is wrong, as a sentence without its full stop.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class LocalProtocolError(ProtocolError):
    """This application asked for something that the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that breaks the protocol; the connection is closed."""


class UnsupportedVersion(RemoteProtocolError):
    """The peer speaks other versions of the protocol.

    Attributes:
        least: The lowest version that it speaks.
        highest: The highest.
    """

    def __init__(self, reason: str, least: int, highest: int) -> None:
        super().__init__(reason)
        self.least = least
        self.highest = highest


class ConnectionClosed(MstcpError):
    """The connection is closed."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "the connection is closed"


class ConnectionLost(ConnectionClosed, ConnectionResetError):
    """A stream of the connection failed, and the connection with it.

    Attributes:
        stream: Index of the stream, from 0; None where it was no single stream's.
        reason: What happened.
    """

    def __init__(self, reason: str, stream: int | None = None) -> None:
        super().__init__(reason, stream)
        self.reason = reason
        self.stream = stream

    def __str__(self) -> str:
        where = "" if self.stream is None else f" on stream {self.stream}"
        return f"connection lost{where}: {self.reason}"


class BufferLimitExceeded(MstcpError):
    """More was written than the connection may hold.

    Attributes:
        queued_bytes: Bytes that waited already.
        limit_bytes: The bound.
    """

    def __init__(self, queued_bytes: int, limit_bytes: int) -> None:
        super().__init__(queued_bytes, limit_bytes)
        self.queued_bytes = queued_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"{self.queued_bytes} bytes wait to be sent and the bound is {self.limit_bytes}: "
            "await writer.drain() between writes"
        )


class ControllerError(MstcpError):
    """The controller refused a request, or cannot be reached.

    Attributes:
        code: `INVALID`, `NOT_FOUND`, `CONFLICT`, `INFEASIBLE` or `UNAVAILABLE`, as in control.proto.
        field: The field of the request that is at fault; empty if none is.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, code: str, field: str, reason: str) -> None:
        super().__init__(code, field, reason)
        self.code = code
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        field = f" ({self.field})" if self.field else ""
        return f"controller: {self.code}{field}: {self.reason}"


class DependencyMissing(MstcpError, ImportError):
    """An optional package is not installed.

    Attributes:
        package: What is missing.
        extra: The extra of mstcp that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.package} is not installed: pip install 'mstcp[{self.extra}]'"


_TLS = {
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept our certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust our certificate",
    "WRONG_VERSION_NUMBER": "the peer does not speak it",
}


_CONNECT = re.compile(r"Connect call failed \('([^']+)', (\d+)")


def sentence(error: BaseException) -> str:
    """Return what went wrong as a sentence for people."""
    if isinstance(error, SSLCertVerificationError):
        return f"the peer's certificate is not trusted: {error.verify_message.rstrip('.')}"
    if isinstance(error, SSLError):
        return f"TLS failed: {_TLS.get(error.reason, error.reason or str(error))}"
    if isinstance(error, asyncio.TimeoutError) and not str(error):
        return "it took too long"
    if isinstance(error, MstcpError) or not isinstance(error, OSError) or error.strerror is None:
        return str(error) or type(error).__name__
    why = error.strerror
    if error.errno is not None and (address := _CONNECT.match(why)):
        # asyncio names only the address of a connect that did not fail at once.
        why = f"{address[1]} port {address[2]}: {os.strerror(error.errno)}"
    return why if error.filename is None else f"{error.filename}: {why}"
