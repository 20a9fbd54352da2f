"""Asks a switch what it has counted, and reads the answers (ONF TS-012, sections 7.3.5.2 and 7.3.5.6)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

from controller.model.counters import PinnedBy, PinnedCount, PortCounters
from controller.model.rules import (
    COOKIE_GROUPS,
    COUNTED_COOKIES,
    Output,
    TcpConnection,
    ToGroup,
    is_counted,
    port_of_group,
)
from controller.openflow.actions import read_instructions
from controller.openflow.decoding import Malformed, read_match
from controller.openflow.statistics import AGGREGATE, FLOWS, PORTS, Reading, flows_request, read_flows

_PORTS_REQUEST = struct.pack("!I4x", 0xFFFF_FFFF)  # all of them
_COUNT = struct.Struct("!16xI4x")  # packets and bytes; rules
_LAST_PORT = 0xFFFF_FF00
# Port; packets, bytes, dropped and errors, each received and sent; four kinds of errors; its age.
_PORT = struct.Struct("!I4x8Q32xII")


class CounterReading(Reading):
    """The counters of one switch's ports, how many rules it has, and others."""

    def __init__(self, new_transaction: Callable[[], int], pinned: bool, groups: bool) -> None:
        super().__init__(new_transaction)
        self.rules: int | None = None  # how many
        self.dropped: int | None = None  # packets to groups
        self.ports: dict[int, PortCounters] = {}
        self.pinned: dict[PinnedBy, PinnedCount] = {}
        self._ask(PORTS, _PORTS_REQUEST, self._take_ports)
        if pinned:
            self._ask(FLOWS, flows_request(*COUNTED_COOKIES), self._take_flows)
        self._ask(AGGREGATE, flows_request(), self._take_count)
        if groups:
            self._ask(FLOWS, flows_request(COOKIE_GROUPS, 2**64 - 1), self._take_dropped)

    def _take_ports(self, body: bytes) -> None:
        if len(body) % _PORT.size:
            raise Malformed(f"statistics of ports of {len(body)} bytes")
        for number, *counts, seconds, nanoseconds in _PORT.iter_unpack(body):
            if number <= _LAST_PORT:
                values = (*counts, seconds + 1e-9 * nanoseconds)
                self.ports[number] = PortCounters(*values)

    def _take_flows(self, body: bytes) -> None:
        for flow in read_flows(body):
            by = _pinned_by(flow.match) if is_counted(flow.cookie) else None
            if by is not None:
                self.pinned[by] = PinnedCount(_out_port(flow.instructions), flow.total_bytes)

    def _take_dropped(self, body: bytes) -> None:
        for flow in read_flows(body):
            self.dropped = flow.packets

    def _take_count(self, body: bytes) -> None:
        (self.rules,) = _COUNT.unpack_from(body)


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


def _out_port(instructions: bytes) -> int | None:
    """Return the port that a rule sends to, by a fast-failover group too; None for any other group."""
    action, _ = read_instructions(instructions)
    if isinstance(action, ToGroup):
        return port_of_group(action.group)
    return action.port if isinstance(action, Output) else None
