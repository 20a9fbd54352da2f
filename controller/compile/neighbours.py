"""What known hosts ask each other (ARP, IPv6's neighbour discovery) goes to those hosts by their routes.

The controller sees it too, but no host waits for it: those that have routes to each other find each other
while it is down. What others say goes to the controller alone, so nobody speaks for a host at another port.
"""

from __future__ import annotations

from dataclasses import replace

from controller.model.rules import (
    ETH_TYPE_ARP,
    ETH_TYPE_IPV6,
    ICMPV6_NEIGHBOUR_TYPES,
    IP_PROTO_ICMPV6,
    PRIORITY_ASKED_FOR,
    PRIORITY_KNOWN,
    TABLE_CLASSIFY,
    TABLE_CONTROLLER,
    TABLE_DEFAULT,
    Match,
    Output,
    Rule,
    ToGroup,
    ToTables,
    host_cookie,
)
from topologies.model import ip_version

_SOLICITATION, _ADVERTISEMENT = ICMPV6_NEIGHBOUR_TYPES


def asking_rule(ip: str, action: Output | ToGroup) -> Rule:
    """Return the rule that brings a question for a host to it, and an answer by ARP."""
    if ip_version(ip) == 4:
        match = Match(ETH_TYPE_ARP, destination_ip=ip)
    else:  # advertisements are packets to the host as all others
        match = Match(ETH_TYPE_IPV6, IP_PROTO_ICMPV6, icmp_type=_SOLICITATION, neighbour_ip=ip)
    return Rule(TABLE_DEFAULT, PRIORITY_ASKED_FOR, match, action, host_cookie(ip))


def speaking_rules(ip: str, port: int) -> tuple[Rule, ...]:
    """Return the rules for what a host says of itself at its own port."""
    if ip_version(ip) == 4:
        matches = [Match(ETH_TYPE_ARP, source_ip=ip, in_port=port)]
    else:
        discovery = Match(ETH_TYPE_IPV6, IP_PROTO_ICMPV6, in_port=port)
        matches = [
            replace(discovery, icmp_type=_SOLICITATION, source_ip=ip),
            replace(discovery, icmp_type=_ADVERTISEMENT, neighbour_ip=ip),
        ]
    action = ToTables(TABLE_CONTROLLER, TABLE_DEFAULT)
    return tuple(Rule(TABLE_CLASSIFY, PRIORITY_KNOWN, match, action, host_cookie(ip)) for match in matches)
