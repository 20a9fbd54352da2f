"""The connections of a server by their ids, and which streams the core lets open or join one."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass

from mstcp import _core
from mstcp.errors import RemoteProtocolError
from mstcp.hello import NONCE_BYTES
from mstcp.transport import ConnectionTransport
from mstcp.transport.setup import wake_all


class Refused(Exception):
    """A stream is not let in.

    Attributes:
        code: Error code of docs/protocol.md.
        reason: The sentence that the peer is told.
        answer: The bytes that tell it: answer and CLOSE.
    """

    def __init__(self, verdict: _core.Verdict) -> None:
        super().__init__(verdict.code, verdict.reason)
        self.code = verdict.code
        self.reason = verdict.reason
        self.answer = verdict.answer


class Ended(Exception):
    """A stream's connection was closed with everything delivered.

    Attributes:
        answer: The bytes that say so, and all that is to be sent on the stream.
    """

    def __init__(self, answer: bytes) -> None:
        super().__init__("the connection was closed with everything delivered")
        self.answer = answer


class Milestone:
    """Something that comes once, and can be waited for; an `asyncio.Event` costs 0.7 KB more."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Return whether it has come."""
        return self._is_set

    def set(self) -> None:
        """Let all go on who wait for it."""
        self._is_set = True
        wake_all(self._waiters)

    async def wait(self) -> None:
        """Wait for it."""
        if not self._is_set:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


class Known:
    """A connection that further streams may join; without a transport as long as it is not open.

    Attributes:
        connection_id: Its id.
        transport: The connection, once it is open.
        proved: Done when a stream has proved that the hello was no replay.
        opened: Done when the connection is open, or will not be.
    """

    def __init__(self, connection_id: bytes) -> None:
        self.connection_id = connection_id
        self.transport: ConnectionTransport | None = None
        self.proved = Milestone()
        self.opened = Milestone()

    @property
    def is_unconfirmed(self) -> bool:
        """Whether its first hello may come again, on another path."""
        transport = self.transport
        return transport is not None and not transport.is_closed and transport.membership.is_unconfirmed

    @property
    def alive_streams(self) -> int | None:
        """How many streams it has; None if it takes no more."""
        if self.transport is None:
            return None if self.opened.is_set() else 1
        return None if self.transport.is_closed else self.transport.alive_streams


@dataclass(frozen=True)
class Joining:
    """A stream that was let in, and its connection."""

    verdict: _core.Verdict
    known: Known


class Admission:
    """The connections of a server, and who may come in.

    Args:
        secret: What both sides know beforehand, if anything.
        most_connections: How many there may be at a time, plain TCP connections included.
        requires_records: Whether streams must authenticate their frames.
    """

    def __init__(self, secret: bytes | None, most_connections: int, requires_records: bool = False) -> None:
        self.is_open_to_all = not secret
        self._core = _core.Admission(secret or b"", most_connections, requires_records)
        self._by_id: dict[bytes, Known] = {}

    def admit(self, opening: bytes) -> Joining:
        """Look at a hello, which from then on is good no more.

        Raises:
            Refused: It may not come in.
            Ended: Its connection has ended, and it is to be told so.
            RemoteProtocolError: It is no hello.
        """
        connection_id = _core.hello_connection_id(opening)
        known = self._by_id.get(connection_id)
        alive = None if known is None else known.alive_streams
        if known is not None:
            self._core.admit_again(connection_id, known.is_unconfirmed)
        verdict = self._core.admit(time.monotonic_ns(), opening, secrets.token_bytes(NONCE_BYTES), alive)
        if verdict.code is not None:
            raise Refused(verdict)
        if verdict.has_ended:
            raise Ended(verdict.answer)
        if verdict.stream_id == 0 and known is None:
            known = self._by_id[connection_id] = Known(connection_id)
        assert known is not None, "the core lets streams join connections that live"
        return Joining(verdict, known)

    def refuse(self, opening: bytes, code: int, reason: str) -> Refused:
        """Return what turns a hello down.

        Raises:
            RemoteProtocolError: It is no hello.
        """
        return Refused(self._core.refuse(opening, secrets.token_bytes(NONCE_BYTES), code, reason))

    def forget(self, known: Known) -> None:
        """Let no more streams join a connection; one that ended well is remembered for some time."""
        known.opened.set()
        if self._by_id.get(known.connection_id) is not known:
            return
        del self._by_id[known.connection_id]
        if known.transport is None:
            self._core.withdraw(known.connection_id)
            return
        farewell = known.transport.membership.farewell
        if farewell is None:
            self._core.forget(known.connection_id)
        else:
            self._core.remember(time.monotonic_ns(), known.connection_id, farewell)

    def admit_plain(self) -> None:
        """Count a plain TCP connection, until `forget_plain`.

        Raises:
            RemoteProtocolError: There are too many connections.
        """
        if (full := self._core.admit_plain()) is not None:
            raise RemoteProtocolError(full)

    def forget_plain(self) -> None:
        """Count a plain TCP connection no more."""
        self._core.forget_plain()
