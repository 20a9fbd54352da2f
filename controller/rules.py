"""Forwarding rules without an OpenFlow library: what the core writes and a shell translates.

Three tables: `TABLE_CLASSIFY` sends LLDP and ARP to the controller and all else on, `TABLE_PINNED` holds one
rule per TCP 5-tuple, direction and switch, `TABLE_DEFAULT` one per destination host. A packet that no rule of
the last table matches is dropped; nothing is ever flooded.

Every rule carries a cookie that says what it is for, so that a flow's rules go by its cookie alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = [
    "COOKIE_CLASSIFY",
    "ETH_TYPE_ARP",
    "ETH_TYPE_IPV4",
    "ETH_TYPE_LLDP",
    "TABLE_CLASSIFY",
    "TABLE_DEFAULT",
    "TABLE_PINNED",
    "Action",
    "FiveTuple",
    "GotoTable",
    "Match",
    "Output",
    "Rule",
    "ToController",
    "classification_rules",
    "default_route_rule",
    "flow_cookie",
    "host_cookie",
    "merge_stages",
    "pinned_path_stages",
    "pinned_rule",
]

TABLE_CLASSIFY = 0
TABLE_PINNED = 1
TABLE_DEFAULT = 2

ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_ARP = 0x0806
ETH_TYPE_LLDP = 0x88CC
IP_PROTO_TCP = 6

# The upper half of a cookie says what kind of rule it is, the lower half which one ("MS" marks them as ours).
COOKIE_CLASSIFY = 0x4D53_0000_0000_0000
_COOKIE_HOST = 0x4D53_0001_0000_0000
_COOKIE_FLOW = 0x4D53_0002_0000_0000

_PRIORITY_LLDP = 300
_PRIORITY_ARP = 200
_PRIORITY_ROUTE = 100
_PRIORITY_MISS = 0


@dataclass(frozen=True)
class FiveTuple:
    """The addresses of a TCP segment (always TCP, so four values)."""

    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int

    @property
    def reverse(self) -> FiveTuple:
        """The same connection seen from the other end."""
        return FiveTuple(self.destination_ip, self.source_ip, self.destination_port, self.source_port)


@dataclass(frozen=True)
class Match:
    """What a rule looks at; None matches anything."""

    eth_type: int | None = None
    ip_protocol: int | None = None
    source_ip: str | None = None
    destination_ip: str | None = None
    source_port: int | None = None
    destination_port: int | None = None


@dataclass(frozen=True)
class Output:
    """Send the packet out of a port."""

    port: int


@dataclass(frozen=True)
class ToController:
    """Send the whole packet to the controller."""


@dataclass(frozen=True)
class GotoTable:
    """Go on in a later table."""

    table: int


Action = Output | ToController | GotoTable


@dataclass(frozen=True)
class Rule:
    """One entry of a table: the matching rule of highest priority applies."""

    table: int
    priority: int
    match: Match
    action: Action
    cookie: int


def flow_cookie(number: int) -> int:
    """Return the cookie of all rules of the flow with this number (below 2**32)."""
    return _COOKIE_FLOW | number


def host_cookie(ip: str) -> int:
    """Return the cookie of the default routes to a host."""
    return _COOKIE_HOST | int(ipaddress.IPv4Address(ip))


def classification_rules() -> tuple[Rule, ...]:
    """Return the rules that every switch has from the moment it connects."""
    return (
        Rule(TABLE_CLASSIFY, _PRIORITY_LLDP, Match(eth_type=ETH_TYPE_LLDP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, _PRIORITY_ARP, Match(eth_type=ETH_TYPE_ARP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, _PRIORITY_MISS, Match(), GotoTable(TABLE_PINNED), COOKIE_CLASSIFY),
        Rule(TABLE_PINNED, _PRIORITY_MISS, Match(), GotoTable(TABLE_DEFAULT), COOKIE_CLASSIFY),
    )


def pinned_rule(segment: FiveTuple, port: int, cookie: int) -> Rule:
    """Return the rule that sends one direction of a TCP connection out of a port."""
    match = Match(
        eth_type=ETH_TYPE_IPV4,
        ip_protocol=IP_PROTO_TCP,
        source_ip=segment.source_ip,
        destination_ip=segment.destination_ip,
        source_port=segment.source_port,
        destination_port=segment.destination_port,
    )
    return Rule(TABLE_PINNED, _PRIORITY_ROUTE, match, Output(port), cookie)


def default_route_rule(destination_ip: str, port: int) -> Rule:
    """Return the rule that sends all IP packets for a host out of a port."""
    match = Match(eth_type=ETH_TYPE_IPV4, destination_ip=destination_ip)
    return Rule(TABLE_DEFAULT, _PRIORITY_ROUTE, match, Output(port), host_cookie(destination_ip))


def pinned_path_stages(
    nodes: tuple[str, ...],
    segment: FiveTuple,
    ports: Mapping[tuple[str, str], int],
    cookie: int,
) -> list[dict[str, list[Rule]]]:
    """Return the rules of a path in the order in which they may be installed.

    Each direction is complete from its far end to its near end, so that a packet which meets a rule finds all
    that follow: stage k holds the forward rule of the k-th switch from the destination and the reverse rule
    of the k-th switch from the source.

    Args:
        nodes: Host, switches, host.
        segment: The connection's addresses, from the first node to the last.
        ports: The port of each node towards each neighbour, by (node, neighbour).
        cookie: Of the flow.
    """
    switches = range(1, len(nodes) - 1)
    stages: list[dict[str, list[Rule]]] = [{} for _ in switches]
    for i in switches:
        forward = pinned_rule(segment, ports[nodes[i], nodes[i + 1]], cookie)
        backward = pinned_rule(segment.reverse, ports[nodes[i], nodes[i - 1]], cookie)
        stages[len(switches) - i].setdefault(nodes[i], []).append(forward)
        stages[i - 1].setdefault(nodes[i], []).append(backward)
    return stages


def merge_stages(paths: Iterable[list[dict[str, list[Rule]]]]) -> list[dict[str, tuple[Rule, ...]]]:
    """Merge the stages of several paths, so that they are installed side by side."""
    merged: list[dict[str, list[Rule]]] = []
    for stages in paths:
        for k, stage in enumerate(stages):
            if k == len(merged):
                merged.append({})
            for switch, rules in stage.items():
                merged[k].setdefault(switch, []).extend(rules)
    return [{switch: tuple(rules) for switch, rules in stage.items()} for stage in merged]
