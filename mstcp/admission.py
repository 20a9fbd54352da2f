"""Which streams may open a connection or join one: ids, proofs, replays, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mstcp import _core
from mstcp.errors import RemoteProtocolError
from mstcp.hello import (
    KEY_BYTES,
    LIMIT_EXCEEDED,
    NOT_AUTHORISED,
    UNKNOWN_CONNECTION,
    Hello,
    proof_key,
)
from mstcp.transport import ConnectionTransport

MAX_JOINS = 1 << 16
"""Streams that may join one connection in its life."""
MAX_RECENT_IDS = 1 << 16
"""Connections whose first hello is known again after they ended."""


class Refused(Exception):
    """A stream is not let in.

    Attributes:
        code: Error code of docs/protocol.md.
        reason: The sentence that the peer is told.
        answer: The hello that tells the code.
    """

    def __init__(self, code: int, reason: str, answer: bytes) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.answer = answer


@dataclass
class Known:
    """A connection that further streams may join; without a transport as long as it is not open."""

    prover: bytes
    first: Hello
    used_ids: set[int] = field(default_factory=lambda: {0})
    transport: ConnectionTransport | None = None

    def answer(self, hello: Hello) -> bytes:
        """Return the answer to a hello that was let in."""
        return replace(hello, key=b"", proof=b"").sealed(self.prover, answer=True).encode()


class Admission:
    """The connections of a server by their ids, and who may come in.

    Args:
        secret: What both sides know beforehand, if anything.
        most_connections: How many there may be at a time, plain TCP connections included.
    """

    def __init__(self, secret: bytes | None, most_connections: int) -> None:
        self._secret = secret
        self._most = most_connections
        self._by_id: dict[bytes, Known] = {}
        self._plain = 0
        # So that a first hello that was overheard opens no second connection.
        self._recent_ids: dict[bytes, None] = {}

    def admit(self, hello: Hello) -> Known:
        """Return the stream's connection, which from then on knows its id; Refused if it may not come in."""
        known = self._by_id.get(hello.connection_id)
        check = self._check_first if hello.stream_id == 0 else self._check_join
        problem = check(hello, known)
        if problem is not None:
            raise refused(hello, *problem)
        if known is None:
            known = Known(proof_key(hello.key, self._secret), hello)
            self._by_id[hello.connection_id] = known
            self._recent_ids[hello.connection_id] = None
            if len(self._recent_ids) > MAX_RECENT_IDS:
                del self._recent_ids[next(iter(self._recent_ids))]
        known.used_ids.add(hello.stream_id)
        return known

    def forget(self, connection_id: bytes) -> None:
        """Let no more streams join a connection."""
        self._by_id.pop(connection_id, None)

    def admit_plain(self) -> None:
        """Count a plain TCP connection, until `forget_plain`.

        Raises:
            RemoteProtocolError: There are too many connections.
        """
        if (full := self._full()) is not None:
            raise RemoteProtocolError(full)
        self._plain += 1

    def forget_plain(self) -> None:
        """Count a plain TCP connection no more."""
        self._plain -= 1

    def _full(self) -> str | None:
        """Return why no connection is let in any more, if none is."""
        is_full = len(self._by_id) + self._plain >= self._most
        return f"the server has {self._most} connections" if is_full else None

    def _check_first(self, hello: Hello, known: Known | None) -> tuple[int, str] | None:
        if known is not None or hello.connection_id in self._recent_ids:
            return NOT_AUTHORISED, "a first hello came again"
        if len(hello.key) != KEY_BYTES:
            return NOT_AUTHORISED, "the first hello has no key"
        if (full := self._full()) is not None:
            return LIMIT_EXCEEDED, full
        return _check_proof(hello, lambda: proof_key(hello.key, self._secret))

    def _check_join(self, hello: Hello, known: Known | None) -> tuple[int, str] | None:
        if known is None or known.transport is None or known.transport.is_closing():
            return UNKNOWN_CONNECTION, "a stream wants to join a connection that is not here"
        wrong = _check_proof(hello, lambda: known.prover)
        if wrong is not None:
            return wrong
        if hello.stream_id in known.used_ids:
            return NOT_AUTHORISED, f"stream {hello.stream_id} of the connection came twice"
        if hello.frame_payload_bytes != known.first.frame_payload_bytes:
            return NOT_AUTHORISED, "the hello contradicts the first of its connection"
        if len(known.used_ids) >= MAX_JOINS:
            return LIMIT_EXCEEDED, f"the connection had {MAX_JOINS} streams"
        if known.transport.alive_streams >= _core.MAX_STREAMS:
            return LIMIT_EXCEEDED, f"the connection has {_core.MAX_STREAMS} streams"
        return None


def refused(hello: Hello, code: int, reason: str) -> Refused:
    """Return what turns a hello down."""
    return Refused(code, reason, replace(hello, key=b"", proof=b"", refusal=code + 1).encode())


def _check_proof(hello: Hello, prover: Callable[[], bytes]) -> tuple[int, str] | None:
    try:
        hello.check_proof(prover())
    except RemoteProtocolError as error:
        return NOT_AUTHORISED, error.reason
    return None
