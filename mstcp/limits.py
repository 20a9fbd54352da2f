"""What unknown clients may cost a server, and how much all connections of the process may receive."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from mstcp import _core
from mstcp.errors import LocalProtocolError

T = TypeVar("T", bound=Hashable)

GRACE_S = 1.0
"""How long a stream may be half open though others wait for its place."""


def limit_receive_memory(limit_bytes: int) -> None:
    """Bound the memory for received bytes, over all connections of this process.

    A peer may always send 256 KiB that the application has not read; what all windows allow beyond that stays
    within `limit_bytes` together (1 GiB unless this is called). While less than half is granted every
    connection gets the window it asks for (`reorder_buffer_bytes`), then an equal part at most.

    Args:
        limit_bytes: The bound; windows that were granted before stay granted.

    Raises:
        LocalProtocolError: It is negative, or no whole number.
    """
    if not isinstance(limit_bytes, int) or not 0 <= limit_bytes < 1 << 62:
        raise LocalProtocolError(f"the bound is a number of bytes from 0 on, not {limit_bytes!r}")
    _core.limit_receive_memory(limit_bytes)


@dataclass(frozen=True)
class ServerLimits:
    """What unknown clients may cost a server before it answers LIMIT_EXCEEDED or lets them wait.

    Attributes:
        hellos_per_s: Hellos that are looked at in a second (TLS handshakes too); further ones wait for their
            turn, up to `hello_timeout`.
        half_open_streams: Accepted streams that are no part of a connection yet. When there are this many, no
            more are accepted, and those that are older than a second are dropped, of the address with most
            of them first.
        connections: Connections at a time, MSTCP and plain TCP together; further ones are refused.
    """

    hellos_per_s: float = 4000.0
    half_open_streams: int = 1024
    connections: int = 1 << 16

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 1:
                raise LocalProtocolError(f"{field.name} must be a number from 1 on, not {value!r}")


@dataclass(frozen=True)
class _Entry:
    address: str
    since_s: float
    drop: Callable[[], None]


class HalfOpen(Generic[T]):
    """The streams that were accepted and are no part of a connection yet, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[T, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def streams(self) -> list[T]:
        """Return the streams, oldest first."""
        return list(self._entries)

    @property
    def is_full(self) -> bool:
        """Whether no more may be accepted."""
        return len(self._entries) >= self._most

    def add(self, key: T, address: str, now_s: float, drop: Callable[[], None]) -> None:
        """Note a stream; `drop` ends it."""
        self._entries[key] = _Entry(address, now_s, drop)

    def discard(self, key: T) -> None:
        """Forget a stream."""
        self._entries.pop(key, None)

    def make_room(self, now_s: float) -> int:
        """If it is full, drop streams that had their time until a quarter is free; return how many."""
        if not self.is_full:
            return 0
        by_address: dict[str, list[T]] = {}
        for key, entry in self._entries.items():
            by_address.setdefault(entry.address, []).append(key)
        wanted = max(1, self._most // 4)
        dropped = 0
        for keys in sorted(by_address.values(), key=len, reverse=True):
            for key in keys:
                entry = self._entries[key]
                if dropped == wanted or now_s - entry.since_s < GRACE_S:
                    break
                del self._entries[key]
                entry.drop()
                dropped += 1
        return dropped
