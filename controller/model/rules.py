"""Forwarding rules without an OpenFlow library: what the core writes and a shell translates.

Three tables: `TABLE_CLASSIFY` sends LLDP and ARP to the controller and all else on, `TABLE_PINNED` holds one
rule per TCP 5-tuple (or path stamp), direction and switch, `TABLE_DEFAULT` one per destination host. A packet
that no rule of the last table matches is dropped; nothing is ever flooded.

Every rule carries a cookie that says what it is for, so that a flow's rules go by its cookie alone. Groups
have no cookies; their numbers say the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "COOKIE_CLASSIFY",
    "ETH_TYPE_ARP",
    "ETH_TYPE_IPV4",
    "ETH_TYPE_LLDP",
    "FLOW_COOKIES",
    "IP_PROTOCOLS",
    "IP_PROTO_TCP",
    "IP_PROTO_UDP",
    "PRIORITY_ARP",
    "PRIORITY_BYPASS",
    "PRIORITY_LLDP",
    "PRIORITY_MISS",
    "PRIORITY_ROUTE",
    "PRIORITY_STAMP",
    "TABLE_CLASSIFY",
    "TABLE_DEFAULT",
    "TABLE_PINNED",
    "Action",
    "Bucket",
    "Entry",
    "FlowEntry",
    "GotoTable",
    "Group",
    "GroupChange",
    "Match",
    "Meter",
    "MeterChange",
    "Output",
    "Restamp",
    "Rule",
    "Stage",
    "Stages",
    "TcpConnection",
    "ToController",
    "ToGroup",
    "bypass_cookie",
    "ecmp_group_number",
    "flow_cookie",
    "flow_number",
    "host_cookie",
    "is_bypass_cookie",
    "is_flow_cookie",
    "merge_stages",
    "port_group_number",
    "port_of_group",
    "split_group_number",
]

TABLE_CLASSIFY = 0
TABLE_PINNED = 1
TABLE_DEFAULT = 2

ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_ARP = 0x0806
ETH_TYPE_LLDP = 0x88CC
IP_PROTO_TCP = 6
IP_PROTO_UDP = 17
IP_PROTOCOLS = {"tcp": IP_PROTO_TCP, "udp": IP_PROTO_UDP}

# The upper half of a cookie says what kind of rule it is, the lower half which one ("MS" marks them as ours).
COOKIE_CLASSIFY = 0x4D53_0000_0000_0000
_COOKIE_HOST = 0x4D53_0001_0000_0000
_COOKIE_FLOW = 0x4D53_0002_0000_0000
_COOKIE_BYPASS = 0x4D53_0003_0000_0000
FLOW_COOKIES = (_COOKIE_FLOW, 0xFFFF_000F_0000_0000)
"""Value and mask of the cookies of all flows' rules."""
_GENERATIONS = 1 << 12  # in the twelve bits above the kind's four

# The same for the numbers of groups.
_GROUP_ECMP = 0x0100_0000
_GROUP_SPLIT = 0x0200_0000
_GROUP_PORT = 0x0300_0000

PRIORITY_LLDP = 300
PRIORITY_BYPASS = 250
PRIORITY_ARP = 200
PRIORITY_STAMP = 150
PRIORITY_ROUTE = 100
PRIORITY_MISS = 0


@dataclass(frozen=True)
class Match:
    """What a rule looks at; None matches anything.

    `packed` is the same as bytes once a shell has made them: a connection's rules share one match.
    """

    eth_type: int | None = None
    ip_protocol: int | None = None
    source_ip: str | None = None
    destination_ip: str | None = None
    source_port: int | None = None
    destination_port: int | None = None
    source_mac: str | None = None
    in_port: int | None = None
    packed: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def fields(self) -> dict[str, int | str]:
        """Return what it looks at, by name."""
        values = vars(self).items()
        return {name: value for name, value in values if value is not None and name != "packed"}


@dataclass(frozen=True)
class Output:
    """Send the packet out of a port, with another Ethernet source if one is given.

    Without `may_return` a packet is dropped that has come in by this port.
    """

    port: int
    source_mac: str | None = None
    may_return: bool = False


@dataclass(frozen=True)
class Restamp:
    """Give the packet another Ethernet source, and go on in a later table."""

    source_mac: str
    table: int


@dataclass(frozen=True)
class ToGroup:
    """Do what one bucket of a group says."""

    group: int


@dataclass(frozen=True)
class ToController:
    """Send the whole packet to the controller; with a meter, no more than it lets pass."""

    meter: int | None = None


@dataclass(frozen=True)
class GotoTable:
    """Go on in a later table."""

    table: int


Action = Output | ToGroup | ToController | GotoTable | Restamp


class Rule(NamedTuple):  # a tuple is made in a third of the time that a frozen dataclass takes
    """One entry of a table: the matching rule of highest priority applies."""

    table: int
    priority: int
    match: Match
    action: Action
    cookie: int


@dataclass(frozen=True)
class Bucket:
    """One choice of a group; one with a port to watch is taken only while that port is up."""

    weight: int
    output: Output
    watch_port: int | None = None


@dataclass(frozen=True)
class Group:
    """A select group: the switch chooses a bucket for each connection, by a hash and the weights.

    Where its buckets watch ports, it is a fast-failover group: the first that is live is taken.
    """

    number: int
    buckets: tuple[Bucket, ...]

    @property
    def is_failover(self) -> bool:
        """Whether its buckets watch ports."""
        return any(bucket.watch_port is not None for bucket in self.buckets)


@dataclass(frozen=True)
class GroupChange:
    """New buckets for a group that the switch has already."""

    group: Group


@dataclass(frozen=True)
class Meter:
    """Lets so many packets a second pass, and a burst of some more; others are dropped."""

    number: int
    packets_per_s: int
    burst_packets: int


@dataclass(frozen=True)
class MeterChange:
    """New rates for a meter that the switch has already."""

    meter: Meter


FlowEntry = Rule | Group | GroupChange
"""What a switch can be given for a flow; a group must come before the rules that lead to it."""

Entry = FlowEntry | Meter | MeterChange
"""What a switch can be given; a meter must come before the rules that use it."""

Stage = dict[str, list[FlowEntry]]
"""Entries that may be installed at the same time, by switch."""

Stages = list[dict[str, tuple[FlowEntry, ...]]]
"""All entries of a flow in the order of their installation."""


def ecmp_group_number(switch_number: int) -> int:
    """Return the number of the group that leads to the hosts of a switch, by its place in the file."""
    return _GROUP_ECMP | switch_number


def split_group_number(tag: int) -> int:
    """Return the number of the group that splits the flow with this tag."""
    return _GROUP_SPLIT | tag


def port_group_number(port: int) -> int:
    """Return the number of the fast-failover group of a port (below 2**24)."""
    return _GROUP_PORT | port


def port_of_group(number: int) -> int | None:
    """Return the port whose fast-failover group has a number; None for other groups."""
    return number ^ _GROUP_PORT if number & 0xFF00_0000 == _GROUP_PORT else None


def bypass_cookie(number: int) -> int:
    """Return the cookie of the rules of a bypass."""
    return _COOKIE_BYPASS | number


def flow_cookie(number: int, generation: int = 0) -> int:
    """Return the cookie of the rules of a flow (number below 2**32) since its paths changed so often."""
    return _COOKIE_FLOW | generation % _GENERATIONS << 36 | number


def flow_number(cookie: int) -> int:
    """Return the number of the flow whose rule has this cookie."""
    return cookie & 0xFFFF_FFFF


def is_bypass_cookie(cookie: int) -> bool:
    """Return whether a cookie is that of a bypass."""
    return cookie & 0xFFFF_FFFF_0000_0000 == _COOKIE_BYPASS


def is_flow_cookie(cookie: int) -> bool:
    """Return whether a cookie is that of a flow's rules."""
    value, mask = FLOW_COOKIES
    return cookie & mask == value


def host_cookie(ip: str) -> int:
    """Return the cookie of the default routes to a host."""
    return _COOKIE_HOST | int(ipaddress.IPv4Address(ip))


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


class TcpConnection(NamedTuple):
    """The addresses of a TCP connection or, by its protocol, of datagrams of UDP between two sockets."""

    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int
    ip_protocol: int = IP_PROTO_TCP

    @property
    def reverse(self) -> TcpConnection:
        """The same connection seen from the other end."""
        ends = self.destination_ip, self.source_ip, self.destination_port, self.source_port
        return TcpConnection(*ends, self.ip_protocol)
