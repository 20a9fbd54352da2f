"""Forwarding rules without an OpenFlow library: what the core writes and a shell translates.

Three tables: `TABLE_CLASSIFY` sends LLDP and ARP to the controller and all else on, `TABLE_PINNED` holds one
rule per TCP 5-tuple (or path stamp), direction and switch, `TABLE_DEFAULT` one per destination host. A packet
that no rule of the last table matches is dropped; nothing is ever flooded.

Every rule carries a cookie that says what it is for, so that a flow's rules go by its cookie alone. Groups
have no cookies; their numbers say the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "COOKIE_CLASSIFY",
    "ETH_TYPE_ARP",
    "ETH_TYPE_IPV4",
    "ETH_TYPE_LLDP",
    "TABLE_CLASSIFY",
    "TABLE_DEFAULT",
    "TABLE_PINNED",
    "Action",
    "Bucket",
    "Entry",
    "FiveTuple",
    "GotoTable",
    "Group",
    "GroupChange",
    "Match",
    "Output",
    "Rule",
    "Stage",
    "Stages",
    "ToController",
    "ToGroup",
    "classification_rules",
    "default_route_rule",
    "ecmp_group_number",
    "flow_cookie",
    "host_cookie",
    "merge_stages",
    "path_stages",
    "pinned_path_stages",
    "pinned_rule",
    "split_group_number",
    "stamp_rule",
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

# The same for the numbers of groups.
_GROUP_ECMP = 0x0100_0000
_GROUP_SPLIT = 0x0200_0000

_PRIORITY_LLDP = 300
_PRIORITY_ARP = 200
_PRIORITY_STAMP = 150
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
    source_mac: str | None = None


@dataclass(frozen=True)
class Output:
    """Send the packet out of a port, with another Ethernet source if one is given."""

    port: int
    source_mac: str | None = None


@dataclass(frozen=True)
class ToGroup:
    """Do what one bucket of a group says."""

    group: int


@dataclass(frozen=True)
class ToController:
    """Send the whole packet to the controller."""


@dataclass(frozen=True)
class GotoTable:
    """Go on in a later table."""

    table: int


Action = Output | ToGroup | ToController | GotoTable


@dataclass(frozen=True)
class Rule:
    """One entry of a table: the matching rule of highest priority applies."""

    table: int
    priority: int
    match: Match
    action: Action
    cookie: int


@dataclass(frozen=True)
class Bucket:
    """One choice of a group."""

    weight: int
    output: Output


@dataclass(frozen=True)
class Group:
    """A select group: the switch chooses a bucket for each connection, by a hash and the weights."""

    number: int
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True)
class GroupChange:
    """New buckets for a group that the switch has already."""

    group: Group


Entry = Rule | Group | GroupChange
"""What a switch can be given; a group must come before the rules that lead to it."""

Stage = dict[str, list[Entry]]
"""Entries that may be installed at the same time, by switch."""

Stages = list[dict[str, tuple[Entry, ...]]]
"""All entries of a flow in the order of their installation."""


def ecmp_group_number(datapath_id: int) -> int:
    """Return the number of the group that leads to the hosts of a switch (datapath ids below 2**24)."""
    return _GROUP_ECMP | datapath_id


def split_group_number(tag: int) -> int:
    """Return the number of the group that splits the flow with this tag."""
    return _GROUP_SPLIT | tag


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


def pinned_rule(segment: FiveTuple, action: Output | ToGroup, cookie: int) -> Rule:
    """Return the rule for one direction of a TCP connection."""
    match = Match(
        eth_type=ETH_TYPE_IPV4,
        ip_protocol=IP_PROTO_TCP,
        source_ip=segment.source_ip,
        destination_ip=segment.destination_ip,
        source_port=segment.source_port,
        destination_port=segment.destination_port,
    )
    return Rule(TABLE_PINNED, _PRIORITY_ROUTE, match, action, cookie)


def stamp_rule(stamp: str, output: Output, cookie: int) -> Rule:
    """Return the rule for the IP packets that carry a path's stamp as their Ethernet source."""
    match = Match(eth_type=ETH_TYPE_IPV4, source_mac=stamp)
    return Rule(TABLE_PINNED, _PRIORITY_STAMP, match, output, cookie)


def default_route_rule(destination_ip: str, action: Output | ToGroup) -> Rule:
    """Return the rule for all IP packets to a host."""
    match = Match(eth_type=ETH_TYPE_IPV4, destination_ip=destination_ip)
    return Rule(TABLE_DEFAULT, _PRIORITY_ROUTE, match, action, host_cookie(destination_ip))


def path_stages(
    nodes: tuple[str, ...], ports: Mapping[tuple[str, str], int], rule: Callable[[str, int], Rule]
) -> list[Stage]:
    """Return one direction of a path in the order in which its rules may be installed.

    The far end comes first, so that a packet which meets a rule finds all that follow.

    Args:
        nodes: Host, switches, host, as a packet meets them.
        ports: The port of each node towards each neighbour, by (node, neighbour).
        rule: Makes the rule of a switch with its port towards the next node.
    """
    steps = list(pairwise(nodes[1:]))
    return [{node: [rule(node, ports[node, following])]} for node, following in reversed(steps)]


def pinned_path_stages(
    nodes: tuple[str, ...],
    segment: FiveTuple,
    ports: Mapping[tuple[str, str], int],
    cookie: int,
) -> list[Stage]:
    """Return the rules that pin one direction of a TCP connection to a path, as `path_stages`."""
    return path_stages(nodes, ports, lambda _, port: pinned_rule(segment, Output(port), cookie))


def merge_stages(paths: Iterable[list[Stage]]) -> Stages:
    """Merge the stages of several paths, so that they are installed side by side."""
    merged: list[Stage] = []
    for stages in paths:
        for k, stage in enumerate(stages):
            if k == len(merged):
                merged.append({})
            for switch, entries in stage.items():
                merged[k].setdefault(switch, []).extend(entries)
    return [{switch: tuple(entries) for switch, entries in stage.items()} for stage in merged]
