"""Asks a switch what it has counted, and reads the answers (ONF TS-012, sections 7.3.5.2 and 7.3.5.6)."""

from __future__ import annotations

import struct
from functools import lru_cache

from controller.model.counters import PinnedBy, PinnedCount, PortCounters
from controller.model.rules import (
    COUNTED_COOKIES,
    TcpConnection,
    is_counted,
    port_of_group,
)
from controller.openflow.decoding import Malformed, read_match
from controller.openflow.encoding import header

MULTIPART_REPLY = 19
_MULTIPART_REQUEST = 18
_FLOWS, _AGGREGATE, _PORTS = 1, 2, 4

_MULTIPART = struct.Struct("!HH4x")  # type, flags
_REQUEST_MORE = 1
_HEADER_BYTES = 8
_PORTS_REQUEST = struct.Struct("!I4x")
_FLOWS_REQUEST = struct.Struct("!B3xII4xQQHH4x")  # the match has no fields
_ANY = 0xFFFF_FFFF
_ALL_TABLES = 0xFF
_COUNT = struct.Struct("!16xI4x")  # packets and bytes; rules
_LAST_PORT = 0xFFFF_FF00
# Port; packets, bytes, dropped and errors, each received and sent; four kinds of errors; its age.
_PORT = struct.Struct("!I4x8Q32xII")
_FLOW = struct.Struct("!H22xQ8xQ")  # length; cookie; bytes
_APPLY_ACTIONS, _OUTPUT, _GROUP = 4, 0, 22

_MAX_MESSAGES = 4096
"""A switch that answers with more, some two million rules, is asked for its counters no more."""


class CounterReading:
    """One switch's counters: the questions, and the answers until they are complete.

    Args:
        ports_transaction: Number of the question for its ports.
        pinned_transaction: Number of the question for the rules that pin connections; None: it is not asked.
        rules_transaction: Number of the question how many rules there are; None: it is not asked.
    """

    def __init__(
        self, ports_transaction: int, pinned_transaction: int | None, rules_transaction: int | None = None
    ) -> None:
        self._ports_transaction = ports_transaction
        self._pinned_transaction = pinned_transaction
        self._rules_transaction = rules_transaction
        asked = (ports_transaction, pinned_transaction, rules_transaction)
        self.unanswered = {transaction for transaction in asked if transaction is not None}
        self.rules: int | None = None  # how many
        self.messages = len(self.unanswered)
        self.ports: dict[int, PortCounters] = {}
        self.pinned: dict[PinnedBy, PinnedCount] = {}

    def requests(self) -> bytes:
        """Return the questions."""
        asked = statistics_request(_PORTS, self._ports_transaction, _PORTS_REQUEST.pack(_ANY))
        if self._pinned_transaction is not None:
            cookie, mask = COUNTED_COOKIES
            body = _FLOWS_REQUEST.pack(_ALL_TABLES, _ANY, _ANY, cookie, mask, 1, 4)
            asked += statistics_request(_FLOWS, self._pinned_transaction, body)
        if self._rules_transaction is not None:
            body = _FLOWS_REQUEST.pack(_ALL_TABLES, _ANY, _ANY, 0, 0, 1, 4)
            asked += statistics_request(_AGGREGATE, self._rules_transaction, body)
        return asked

    def take(self, transaction: int, whole: bytes) -> bool:
        """Take a message of an answer in; returns whether that was the last of all.

        Raises:
            Malformed: it is not what was asked for.
        """
        self.messages += 1
        if self.messages > _MAX_MESSAGES:
            raise Malformed(f"an answer of more than {_MAX_MESSAGES} messages")
        try:
            kind, flags = _MULTIPART.unpack_from(whole, _HEADER_BYTES)
            wanted = {self._ports_transaction: _PORTS, self._rules_transaction: _AGGREGATE}
            if kind != wanted.get(transaction, _FLOWS):
                raise Malformed(f"statistics of type {kind} that were not asked for")
            body = whole[_HEADER_BYTES + _MULTIPART.size :]
            if kind == _PORTS:
                self._take_ports(body)
            elif kind == _AGGREGATE:
                (self.rules,) = _COUNT.unpack_from(body)
            else:
                self._take_flows(body)
        except struct.error as error:
            raise Malformed(f"statistics: {error}") from None
        if not flags & _REQUEST_MORE:
            self.unanswered.discard(transaction)
        return not self.unanswered

    def _take_ports(self, body: bytes) -> None:
        if len(body) % _PORT.size:
            raise Malformed(f"statistics of ports of {len(body)} bytes")
        for number, *counts, seconds, nanoseconds in _PORT.iter_unpack(body):
            if number <= _LAST_PORT:
                values = (*counts, seconds + 1e-9 * nanoseconds)
                self.ports[number] = PortCounters(*values)

    def _take_flows(self, body: bytes) -> None:
        place = 0
        while place < len(body):
            length, cookie, total = _FLOW.unpack_from(body, place)
            match_at = place + _FLOW.size
            match_bytes = int.from_bytes(body[match_at + 2 : match_at + 4], "big")
            actions_at = match_at + (match_bytes + 7) // 8 * 8
            end = place + length
            if not match_at + 8 <= actions_at <= end <= len(body):
                raise Malformed(f"statistics of a rule of {length} bytes, its match of {match_bytes}")
            by = _pinned_by(body[match_at + 4 : match_at + match_bytes]) if is_counted(cookie) else None
            if by is not None:
                self.pinned[by] = PinnedCount(_out_port(body[actions_at:end]), total)
            place = end


def statistics_request(kind: int, transaction: int, body: bytes) -> bytes:
    """Return a question for statistics of a type (`OFPMP_*`)."""
    head = header(_MULTIPART_REQUEST, _HEADER_BYTES + _MULTIPART.size + len(body), transaction)
    return head + _MULTIPART.pack(kind, 0) + body


@lru_cache(maxsize=1 << 16)
def _pinned_by(fields: bytes) -> PinnedBy | None:
    """Read what a rule that counts flows' packets looks at; None where it is not such a rule."""
    match = read_match(fields)
    if match is None:
        return None
    if match.source_mac is not None:
        return match.source_mac
    if match.destination_mac is not None:
        return fields.hex()  # a label: nobody asks for it by its name
    ends = match.source_ip, match.destination_ip, match.source_port, match.destination_port
    return None if None in ends else TcpConnection(*ends, match.ip_protocol)  # type: ignore[arg-type]


@lru_cache(maxsize=1 << 14)
def _out_port(instructions: bytes) -> int | None:
    """Return the port that actions send to, by a fast-failover group too; None for any other group."""
    place = 0
    while place + 8 <= len(instructions):
        kind, length = struct.unpack_from("!HH", instructions, place)
        if kind == _APPLY_ACTIONS:
            return _first_output(instructions[place + 8 : place + length])
        place += max(length, 8)
    return None


def _first_output(actions: bytes) -> int | None:
    place = 0
    while place + 8 <= len(actions):
        kind, length, target = struct.unpack_from("!HHI", actions, place)
        if kind == _OUTPUT:
            return int(target)
        if kind == _GROUP:
            return port_of_group(target)
        place += max(length, 8)
    return None
