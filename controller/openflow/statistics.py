"""Asks a switch for statistics, and takes the answers until all are complete (ONF TS-012, section 7.3.5)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from controller.openflow.decoding import Malformed, parts
from controller.openflow.encoding import header

MULTIPART_REPLY = 19
_MULTIPART_REQUEST = 18
FLOWS, AGGREGATE, PORTS, GROUPS, METERS, METER_FEATURES = 1, 2, 4, 7, 10, 11
REPLY_MORE = 1
"""Flag of an answer of which another part follows."""

_HEADER_BYTES = 8
_MULTIPART = struct.Struct("!HH4x")  # type, flags
_FLOWS_REQUEST = struct.Struct("!B3xII4xQQHH4x")  # the match has no fields
_ANY = 0xFFFF_FFFF
_ALL_TABLES = 0xFF
# Table, priority, timeouts, cookie, packets, bytes; the match: type, length.
_FLOW = struct.Struct("!2xB9xHHH6xQQQHH")
_FLOW_LEAST_BYTES = 56

_MAX_MESSAGES = 4096
"""A switch that answers with more, some two million rules, is disconnected."""


class Reading:
    """Questions to one switch, and the answers until they are complete.

    `requests` are the questions as bytes; `messages` says how many were sent and received.
    """

    def __init__(self, new_transaction: Callable[[], int]) -> None:
        self.requests = b""
        self.messages = 0
        self._new_transaction = new_transaction
        # By transaction: the kind of statistics, and what takes a part of them.
        self._open: dict[int, tuple[int, Callable[[bytes], None]]] = {}

    @property
    def unanswered(self) -> Collection[int]:
        """Transactions whose last part has not come yet."""
        return self._open.keys()

    def _ask(self, kind: int, body: bytes, take: Callable[[bytes], None]) -> int:
        transaction = self._new_transaction()
        self._open[transaction] = kind, take
        self.requests += statistics_request(kind, transaction, body)
        self.messages += 1
        return transaction

    def take(self, transaction: int, whole: bytes) -> bool:
        """Take a message of an answer; returns whether that was the last of all.

        Raises:
            Malformed: it is not what was asked for.
        """
        self.messages += 1
        if self.messages > _MAX_MESSAGES:
            raise Malformed(f"an answer of more than {_MAX_MESSAGES} messages")
        wanted, take = self._open[transaction]
        try:
            kind, flags = _MULTIPART.unpack_from(whole, _HEADER_BYTES)
            if kind != wanted:
                raise Malformed(f"statistics of type {kind} that were not asked for")
            take(whole[_HEADER_BYTES + _MULTIPART.size :])
        except struct.error as error:
            raise Malformed(f"statistics: {error}") from None
        if not flags & REPLY_MORE:
            del self._open[transaction]
        return not self._open


class FlowStatistics(NamedTuple):
    """A rule as a switch describes it; match and instructions as bytes."""

    table: int
    priority: int
    idle_s: int
    hard_s: int
    cookie: int
    packets: int
    total_bytes: int
    match: bytes
    instructions: bytes


def read_flows(body: bytes) -> Iterator[FlowStatistics]:
    """Read the rules in a part of an answer."""
    for start, end in parts(body, 0, len(body), 0, _FLOW_LEAST_BYTES):
        *head, _, match_bytes = _FLOW.unpack_from(body, start)
        match_at = start + _FLOW.size
        actions_at = match_at - 4 + (match_bytes + 7) // 8 * 8
        if match_bytes < 4 or actions_at > end:
            raise Malformed(f"a rule of {end - start} bytes, its match of {match_bytes}")
        match = body[match_at : match_at - 4 + match_bytes]
        yield FlowStatistics._make((*head, match, body[actions_at:end]))


def flows_request(cookie: int = 0, mask: int = 0) -> bytes:
    """Return the body of a question for the rules whose cookie has these bits."""
    return _FLOWS_REQUEST.pack(_ALL_TABLES, _ANY, _ANY, cookie, mask, 1, 4)


def statistics_request(kind: int, transaction: int, body: bytes) -> bytes:
    """Return a question for statistics of a type (`OFPMP_*`)."""
    head = header(_MULTIPART_REQUEST, _HEADER_BYTES + _MULTIPART.size + len(body), transaction)
    return head + _MULTIPART.pack(kind, 0) + body
