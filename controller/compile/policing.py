"""Policing: a meter for each flow, where it enters the network, drops what exceeds its rate."""

from __future__ import annotations

import math
from collections.abc import Iterable

from controller.compile.pinned import connection_match
from controller.model.rules import (
    PRIORITY_POLICED,
    TABLE_CLASSIFY,
    TABLE_PINNED,
    GotoTable,
    Match,
    Meter,
    Rule,
    TcpConnection,
    flow_meter_number,
    policing_cookie,
)

_MIN_BURST_PACKETS = 16
"""A host that sends several segments at once loses none of them."""


def policing(
    number: int, wire_bps: float, packet_bytes: int, burst_s: float, connections: Iterable[TcpConnection]
) -> tuple[Meter, tuple[Rule, ...]]:
    """Return the meter of a flow at one switch, and the rules that lead its packets through it.

    It may send at once what the rate carries in `burst_s`, and a few packets at least.
    """
    burst_bits = max(wire_bps * burst_s, _MIN_BURST_PACKETS * packet_bytes * 8)
    rate_kbps = max(1, math.ceil(wire_bps / 1e3))  # switches refuse a rate of 0
    meter = Meter(flow_meter_number(number), rate_kbps, math.ceil(burst_bits / 1e3), in_kilobits=True)
    rule = Rule(
        TABLE_CLASSIFY,
        PRIORITY_POLICED,
        Match(),
        GotoTable(TABLE_PINNED),
        policing_cookie(number),
        meter=meter.number,
    )
    return meter, tuple(rule._replace(match=connection_match(each)) for each in connections)
