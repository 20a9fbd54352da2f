"""What switches do with packets of no flow: which of them go to the controller, and which nowhere.

Where a switch has meters, each port that hosts may be behind has one for what it sends to the controller.
"""

from __future__ import annotations

from collections.abc import Collection

from controller.model.dhcp import CLIENT_PORT, SERVER_PORT
from controller.model.labels import DEFAULT, LABEL_BITS, format_mac
from controller.model.packet_limits import BURST_PACKETS, PACKETS_PER_S
from controller.model.rules import (
    COOKIE_CLASSIFY,
    COOKIE_GROUPS,
    ETH_TYPE_ARP,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    ETH_TYPE_LLDP,
    ICMPV6_NEIGHBOUR_TYPES,
    IP_PROTO_ICMPV6,
    IP_PROTO_UDP,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    PRIORITY_NEIGHBOURS,
    TABLE_CLASSIFY,
    TABLE_CONTROLLER,
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
"""Priority of a port's own rule to the controller, above that for all ports."""

_UNKNOWN = 10
_NEVER_ASKED_FOR = 30
_PRIORITY_NO_ROUTE = 35
"""Priorities below those of hosts: of IP packets whose host has no route, of what goes nowhere, and of
neighbour discovery, which the controller has seen."""

_ANY_GROUP = "01:00:00:00:00:00/01:00:00:00:00:00"
"""A match for Ethernet addresses of multicast and broadcast: nothing is flooded, its packets are counted."""

_ENDED = format_mac(DEFAULT << LABEL_BITS)
"""A label of a default route that has ended, which is for nobody here."""

_DISCOVERY = tuple(Match(ETH_TYPE_IPV6, IP_PROTO_ICMPV6, icmp_type=kind) for kind in ICMPV6_NEIGHBOUR_TYPES)

_ASKED = (
    (TABLE_CLASSIFY, PRIORITY_LLDP, Match(ETH_TYPE_LLDP)),
    *((TABLE_CLASSIFY, PRIORITY_NEIGHBOURS, match) for match in (Match(ETH_TYPE_ARP), *_DISCOVERY)),
    (TABLE_DEFAULT, _UNKNOWN, Match(ETH_TYPE_IPV4)),
    (TABLE_DEFAULT, _UNKNOWN, Match(ETH_TYPE_IPV6)),
)
"""What the controller is asked about: table, priority and match."""


_DHCP = tuple(
    (
        TABLE_CLASSIFY,
        PRIORITY_NEIGHBOURS,
        Match(ETH_TYPE_IPV4, IP_PROTO_UDP, destination_port=port, destination_mac="ff:ff:ff:ff:ff:ff"),
    )
    for port in (SERVER_PORT, CLIENT_PORT)
)


def classification(metered_ports: Collection[int], relays_dhcp: bool) -> tuple[Meter | Rule, ...]:
    """Return what every switch has from the moment it connects: meters, then rules.

    A meter of the same number limits what each of the metered ports sends to the controller.
    """
    meters = [Meter(port, PACKETS_PER_S, BURST_PACKETS) for port in sorted(metered_ports)]
    return (
        *meters,
        *(
            _rule(TABLE_CONTROLLER, _METERED, Match(in_port=m.number), ToController(), m.number)
            for m in meters
        ),
        _rule(TABLE_CONTROLLER, PRIORITY_MISS, Match(), ToController()),
        *(_rule(*asked, GotoTable(TABLE_CONTROLLER)) for asked in (*_ASKED, *(_DHCP if relays_dhcp else ()))),
        *(_rule(TABLE_DEFAULT, _PRIORITY_NO_ROUTE, match, Drop()) for match in _DISCOVERY),
        _rule(TABLE_DEFAULT, _NEVER_ASKED_FOR, Match(destination_mac=_ENDED), Drop()),
        Rule(TABLE_DEFAULT, _NEVER_ASKED_FOR, Match(destination_mac=_ANY_GROUP), Drop(), COOKIE_GROUPS),
        _rule(TABLE_CLASSIFY, PRIORITY_MISS, Match(), GotoTable(TABLE_PINNED)),
        _rule(TABLE_PINNED, PRIORITY_MISS, Match(), GotoTable(TABLE_DEFAULT)),
    )


def _rule(
    table: int, priority: int, match: Match, action: Drop | GotoTable | ToController, meter: int | None = None
) -> Rule:
    return Rule(table, priority, match, action, COOKIE_CLASSIFY, meter=meter)
