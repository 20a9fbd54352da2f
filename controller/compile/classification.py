"""The first table of every switch: LLDP and ARP go to the controller, what has no label to the pinned paths.

Where a switch has meters, each port that hosts may be behind has one for what it sends to the controller.
"""

from __future__ import annotations

from collections.abc import Collection

from controller.model.packet_limits import BURST_PACKETS, PACKETS_PER_S
from controller.model.rules import (
    COOKIE_CLASSIFY,
    ETH_TYPE_ARP,
    ETH_TYPE_LLDP,
    PRIORITY_ARP,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    TABLE_CLASSIFY,
    TABLE_DEFAULT,
    TABLE_PINNED,
    GotoTable,
    Match,
    Meter,
    Rule,
    ToController,
)

__all__ = ["classification"]

_METERED = 10
"""Priority of a port's own rule above that of the rule for all ports."""


def classification(metered_ports: Collection[int] = ()) -> tuple[Meter | Rule, ...]:
    """Return what every switch has from the moment it connects: meters, then rules.

    Args:
        metered_ports: Ports whose packets to the controller a meter of the same number limits.
    """
    meters = [Meter(port, PACKETS_PER_S, BURST_PACKETS) for port in sorted(metered_ports)]
    rules = [
        Rule(TABLE_CLASSIFY, priority, Match(eth_type=kind, in_port=meter.number), metered, COOKIE_CLASSIFY)
        for meter in meters
        for metered in (ToController(meter.number),)
        for priority, kind in (
            (PRIORITY_LLDP + _METERED, ETH_TYPE_LLDP),
            (PRIORITY_ARP + _METERED, ETH_TYPE_ARP),
        )
    ]
    return (
        *meters,
        *rules,
        Rule(TABLE_CLASSIFY, PRIORITY_LLDP, Match(eth_type=ETH_TYPE_LLDP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, PRIORITY_ARP, Match(eth_type=ETH_TYPE_ARP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, PRIORITY_MISS, Match(), GotoTable(TABLE_PINNED), COOKIE_CLASSIFY),
        Rule(TABLE_PINNED, PRIORITY_MISS, Match(), GotoTable(TABLE_DEFAULT), COOKIE_CLASSIFY),
    )
