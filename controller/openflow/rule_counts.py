"""Asks a switch what its rules have counted, and reads the answer (ONF TS-012, section 7.3.5.2)."""

from __future__ import annotations

import struct

from controller.model.counters import RuleCount, RuleKey
from controller.openflow.counters import statistics_request
from controller.openflow.decoding import Malformed, read_match

_FLOWS = 1
_HEADER_BYTES = 8
_MULTIPART = struct.Struct("!HH4x")  # type, flags
_REPLY_MORE = 1
_REQUEST = struct.Struct("!B3xII4xQQHH4x")  # the match has no fields
_ALL_TABLES = 0xFF
_ANY = 0xFFFF_FFFF
_ENTRY = struct.Struct("!HBx8xH18xQQ")  # length, table, priority, packets, bytes

_MAX_MESSAGES = 1024
"""Messages of an answer that are read, some half a million rules."""


class RuleCountReading:
    """What the rules of one switch have counted: the question, and the answer until it is complete.

    Args:
        transaction: Number of the question.
    """

    def __init__(self, transaction: int) -> None:
        self._transaction = transaction
        self.unanswered = frozenset({transaction})
        self.counts: dict[RuleKey, RuleCount] = {}
        self._messages = 0

    def request(self) -> bytes:
        """Return the question."""
        body = _REQUEST.pack(_ALL_TABLES, _ANY, _ANY, 0, 0, 1, 4)
        return statistics_request(_FLOWS, self._transaction, body)

    def take(self, whole: bytes) -> bool:
        """Take a message of the answer in; returns whether that was the last.

        Raises:
            Malformed: it is not what was asked for.
        """
        self._messages += 1
        try:
            kind, flags = _MULTIPART.unpack_from(whole, _HEADER_BYTES)
            if kind != _FLOWS:
                raise Malformed(f"statistics of type {kind} that were not asked for")
            self._take_entries(whole[_HEADER_BYTES + _MULTIPART.size :])
        except struct.error as error:
            raise Malformed(f"statistics of rules: {error}") from None
        return not flags & _REPLY_MORE or self._messages >= _MAX_MESSAGES

    def _take_entries(self, body: bytes) -> None:
        place = 0
        while place < len(body):
            length, table, priority, packets, size = _ENTRY.unpack_from(body, place)
            match_at = place + _ENTRY.size
            match_bytes = int.from_bytes(body[match_at + 2 : match_at + 4], "big")
            if match_bytes < 4 or match_at + match_bytes > place + length or place + length > len(body):
                raise Malformed(f"statistics of a rule of {length} bytes, its match of {match_bytes}")
            match = read_match(body[match_at + 4 : match_at + match_bytes])
            if match is not None:
                self.counts[RuleKey(table, priority, match)] = RuleCount(packets, size)
            place += length
