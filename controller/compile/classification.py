"""What switches do with packets of no flow: LLDP, ARP and what is for unknown hosts goes to the controller.

Where a switch has meters, each port that hosts may be behind has one for what it sends to the controller.
"""

from __future__ import annotations

from collections.abc import Collection

from controller.model.labels import ANY_LABEL
from controller.model.packet_limits import BURST_PACKETS, PACKETS_PER_S
from controller.model.rules import (
    COOKIE_CLASSIFY,
    ETH_TYPE_ARP,
    ETH_TYPE_IPV4,
    ETH_TYPE_LLDP,
    PRIORITY_ARP,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    TABLE_CLASSIFY,
    TABLE_DEFAULT,
    TABLE_PINNED,
    Drop,
    GotoTable,
    Match,
    Meter,
    Rule,
    ToController,
)

_METERED = 10
"""Priority of a port's own rule above that of the rule for all ports."""

_UNKNOWN = 10
_NEVER_ASKED_FOR = 30
"""Priorities below those of hosts: of IPv4 packets whose host has no route, and of what goes nowhere."""

_ANY_GROUP = "01:00:00:00:00:00/01:00:00:00:00:00"
"""A match for Ethernet addresses of multicast and broadcast: nothing is flooded, its packets are counted."""


def classification(metered_ports: Collection[int] = ()) -> tuple[Meter | Rule, ...]:
    """Return what every switch has from the moment it connects: meters, then rules.

    Args:
        metered_ports: Ports whose packets to the controller a meter of the same number limits.
    """
    meters = [Meter(port, PACKETS_PER_S, BURST_PACKETS) for port in sorted(metered_ports)]
    asked = (
        (TABLE_CLASSIFY, PRIORITY_LLDP, ETH_TYPE_LLDP),
        (TABLE_CLASSIFY, PRIORITY_ARP, ETH_TYPE_ARP),
        (TABLE_DEFAULT, _UNKNOWN, ETH_TYPE_IPV4),
    )
    rules = [
        Rule(table, priority + _METERED, Match(kind, in_port=meter.number), metered, COOKIE_CLASSIFY)
        for meter in meters
        for metered in (ToController(meter.number),)
        for table, priority, kind in asked
    ]
    unmetered = [
        Rule(table, priority, Match(kind), ToController(), COOKIE_CLASSIFY) for table, priority, kind in asked
    ]
    dropped = [
        Rule(TABLE_DEFAULT, _NEVER_ASKED_FOR, Match(destination_mac=mac), Drop(), COOKIE_CLASSIFY)
        for mac in (ANY_LABEL, _ANY_GROUP)
    ]
    return (
        *meters,
        *rules,
        *unmetered,
        *dropped,
        Rule(TABLE_CLASSIFY, PRIORITY_MISS, Match(), GotoTable(TABLE_PINNED), COOKIE_CLASSIFY),
        Rule(TABLE_PINNED, PRIORITY_MISS, Match(), GotoTable(TABLE_DEFAULT), COOKIE_CLASSIFY),
    )
