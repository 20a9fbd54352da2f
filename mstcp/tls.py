"""TLS on one stream: the hello and the frames inside it.

Each stream of a connection is a TLS connection of its own, whose peer's certificate is checked. What is wrong
with one of them (a path that alters bytes) costs that stream and not the connection.
"""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass
from typing import Any

from mstcp.errors import ConnectionLost, LocalProtocolError

READ_BYTES = 1 << 18

# Record header, content type and tag of TLS 1.3; TLS 1.2 sends a nonce and no content type.
_OVERHEAD_BYTES = {"TLSv1.3": 5 + 1 + 16}
_OLD_OVERHEAD_BYTES = 5 + 8 + 16


@dataclass(frozen=True)
class TlsSettings:
    """What every stream of a connection or server uses.

    Attributes:
        context: Certificates, verification, ciphers, ALPN.
        server_hostname: What the server's certificate must be for; None on the server.
    """

    context: ssl.SSLContext
    server_hostname: str | None = None

    def stream(self) -> TlsStream:
        """Return the TLS of a new stream."""
        return TlsStream(self)


def client_settings(
    context: ssl.SSLContext | bool | None, server_hostname: str | None, host: str
) -> TlsSettings | None:
    """Return what a client's `ssl` and `server_hostname` ask for; None: no TLS.

    Raises:
        LocalProtocolError: A server's name is given without TLS, or `ssl` is no context.
    """
    if context is None or context is False:
        if server_hostname is not None:
            raise LocalProtocolError("server_hostname is for TLS, and ssl is not given")
        return None
    if context is True:
        context = ssl.create_default_context()
    if not isinstance(context, ssl.SSLContext):
        raise LocalProtocolError(f"ssl must be an ssl.SSLContext or True, not {context!r}")
    return TlsSettings(context, host if server_hostname is None else server_hostname)


def server_settings(context: ssl.SSLContext | None) -> TlsSettings | None:
    """Return what a server's `ssl` asks for; LocalProtocolError if it is no context."""
    if context is None:
        return None
    if not isinstance(context, ssl.SSLContext):
        raise LocalProtocolError(
            f"a server's ssl must be an ssl.SSLContext with a certificate, not {context!r}"
        )
    return TlsSettings(context)


class TlsStream:
    """TLS of one stream, which the driver calls for each piece of bytes that comes or goes."""

    def __init__(self, settings: TlsSettings) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = settings.context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=settings.server_hostname is None,
            server_hostname=settings.server_hostname or None,
        )
        self._ahead = b""
        self._ended = False
        self.is_open = False

    def begin(self) -> bytes:
        """Return what a client says first."""
        self._shake_hands()
        return self.answer()

    @property
    def ended(self) -> bool:
        """Whether the peer has ended its direction."""
        return self._ended

    def encrypt(self, data: bytes) -> bytes:
        """Return what stands for `data` on the wire."""
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                at += self._tls.write(rest[at:])
        return self._outgoing.read()

    def end(self) -> bytes:
        """Return what ends this direction (close_notify)."""
        with contextlib.suppress(ssl.SSLError):
            # OpenSSL would take bytes that wait here for an error.
            self._ahead += self._decrypt()
            self._tls.unwrap()
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Take bytes of the socket, none of them at TCP's end, and return what they carry.

        Raises:
            ssl.SSLError: The bytes were altered, or TCP ended without TLS's end: who is on the path may have
                cut the stream short.
        """
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        if not (self.is_open or self._shake_hands()):
            return b""
        ahead, self._ahead = self._ahead, b""
        return ahead + self._decrypt()

    def _shake_hands(self) -> bool:
        """Go on with the handshake; return whether it is done."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLEOFError:
            raise ConnectionLost("the stream ended within the TLS handshake") from None
        self.is_open = True
        return True

    def answer(self) -> bytes:
        """Return what TLS has to say of its own."""
        return self._outgoing.read()

    def _decrypt(self) -> bytes:
        pieces = []
        while not self._ended and (piece := self._read()):
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read(self) -> bytes | None:
        """Return some of what came; None: there is none yet, b"": the end."""
        try:
            data = self._tls.read(READ_BYTES)
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            data = b""
        self._ended = not data
        return data

    # --- what it is -----------------------------------------------------------------------------------------
    @property
    def overhead_bytes(self) -> int:
        """What TLS adds to each frame."""
        return _OVERHEAD_BYTES.get(self._tls.version() or "", _OLD_OVERHEAD_BYTES)

    def information(self) -> dict[str, Any]:
        """Return what asyncio's transports tell of TLS."""
        return {
            "sslcontext": self._tls.context,
            "ssl_object": self._tls,
            "peercert": self._tls.getpeercert(),
            "cipher": self._tls.cipher(),
            "compression": self._tls.compression(),
        }
