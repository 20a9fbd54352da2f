"""Forwarding rules without an OpenFlow library: what the core writes and a shell translates.

A packet enters at `TABLE_CLASSIFY`, which sends LLDP, ARP and IPv6's neighbour discovery to the controller
(`TABLE_CONTROLLER` has the meters of its ports); what known hosts say of neighbours also goes on as their
other packets do, so that hosts find each other without the controller. What has a label and comes
from another switch goes on by `TABLE_BYPASS`, which ends bypasses, and `TABLE_LABEL`, which sends it where
its label says, until that has ended; `TABLE_DELIVER` then knows the hosts of the switch, and the labels that
follow. All else is at its ingress: `TABLE_PINNED` holds one rule per TCP 5-tuple (or path stamp) of a flow,
which writes its label, `TABLE_DEFAULT` the hosts of the switch, and a label for each other host that is sent
to; IP packets to others go to the controller. A packet that no rule matches is dropped; nothing is flooded.

Every rule carries a cookie that says what it is for, so that a flow's rules go by its cookie alone. Groups
have no cookies; their numbers say the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from topologies.model import ip_version

_E = TypeVar("_E")

TABLE_CLASSIFY = 0
TABLE_BYPASS = 1
TABLE_LABEL = 2
TABLE_PINNED = 3
TABLE_DEFAULT = 4
TABLE_DELIVER = 5
TABLE_CONTROLLER = 6

ETH_TYPE_IPV4 = 0x0800
ETH_TYPE_ARP = 0x0806
ETH_TYPE_IPV6 = 0x86DD
ETH_TYPE_LLDP = 0x88CC
IP_PROTO_TCP = 6
IP_PROTO_UDP = 17
IP_PROTO_ICMPV6 = 58
IP_PROTOCOLS = {"tcp": IP_PROTO_TCP, "udp": IP_PROTO_UDP}
ICMPV6_NEIGHBOUR_TYPES = (135, 136)
"""Neighbour solicitations and advertisements (RFC 4861, sections 4.3 and 4.4)."""

# The upper half of a cookie says what kind of rule it is, the lower half which one ("MS" marks them as ours).
COOKIE_CLASSIFY = 0x4D53_0000_0000_0000
COOKIE_GROUPS = COOKIE_CLASSIFY | 1
"""Cookie of the rule that drops and counts packets to multicast and broadcast addresses."""
_COOKIE_HOST = 0x4D53_0001_0000_0000
_COOKIE_FLOW = 0x4D53_0002_0000_0000
_LOWER_HALF = 0xFFFF_FFFF
_FLOW_MASK = 0xFFFF_000F_0000_0000
COOKIE_LABEL = 0x4D53_0005_0000_0000
_COOKIE_COUNTED = 0x4D53_0006_0000_0000
_COOKIE_POLICING = 0x4D53_0007_0000_0000
COUNTED_COOKIES = (_COOKIE_FLOW, 0xFFFF_000B_0000_0000)
"""Value and mask of the cookies of all rules that count flows' packets: flows' own, and those for labels."""
_GENERATIONS = 1 << 12  # in the twelve bits above the kind's four

# The same for the numbers of groups.
_GROUP_ECMP = 0x0100_0000
_GROUP_SPLIT = 0x0200_0000
_GROUP_PORT = 0x0300_0000
_METER_FLOW = 0x4000_0000

PRIORITY_TAGGED = 400
PRIORITY_LLDP = 300
PRIORITY_LABEL = 250
PRIORITY_KNOWN = 210
PRIORITY_NEIGHBOURS = 200
PRIORITY_POLICED = 170
PRIORITY_ASKED_FOR = 160
PRIORITY_STAMP = 150
PRIORITY_CONTINUE = 150
PRIORITY_LOCAL = 150
PRIORITY_ROUTE = 100
PRIORITY_MISS = 0


@dataclass(frozen=True)
class Match:
    """What a rule looks at; None matches anything. `destination_mac` may have a mask (`value/mask`).

    `tag` is a VLAN that packets have; `untagged` is 1 once `Untag` has taken it off, 0 before.

    Of ARP packets the addresses are those of the sender and the target; `neighbour_ip` is the target of
    neighbour discovery.
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
    destination_mac: str | None = None
    icmp_type: int | None = None
    neighbour_ip: str | None = None
    tag: int | None = None
    untagged: int | None = None
    packed: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def fields(self) -> dict[str, int | str]:
        """Return what it looks at, by name."""
        values = vars(self).items()
        return {name: value for name, value in values if value is not None and name != "packed"}


@dataclass(frozen=True)
class Output:
    """Send the packet out of a port, with other Ethernet addresses if they are given.

    Before that, its label is shifted up by this many bits, or kept as its Ethernet source (`saves_label`),
    and it gets a VLAN tag if one is given. Without `may_return` a packet is dropped that has come in by this
    port.
    """

    port: int
    source_mac: str | None = None
    may_return: bool = False
    destination_mac: str | None = None
    shift: int = 0
    saves_label: bool = False
    tag: int | None = None


@dataclass(frozen=True)
class ToGroup:
    """Do what one bucket of a group says, after the same changes as of `Output`."""

    group: int
    source_mac: str | None = None
    destination_mac: str | None = None
    shift: int = 0


@dataclass(frozen=True)
class RestoreLabel:
    """Take the label back from the Ethernet source, which gets another value, and go on in a later table.

    The packet may leave by the port by which it has come in.
    """

    source_mac: str
    table: int


@dataclass(frozen=True)
class ToController:
    """Send the whole packet to the controller."""


@dataclass(frozen=True)
class GotoTable:
    """Go on in a later table."""

    table: int


@dataclass(frozen=True)
class ToTables:
    """Do what one table says, then go on, with the packet as it was, in a later one.

    What a meter of the first drops goes no further.
    """

    also: int
    table: int


@dataclass(frozen=True)
class Untag:
    """Take the VLAN tag off and do what a table says, this one or another."""

    table: int


@dataclass(frozen=True)
class Drop:
    """Do nothing more with the packet."""


Action = Drop | Output | ToGroup | ToController | GotoTable | ToTables | Untag | RestoreLabel


class RuleKey(NamedTuple):
    """Which rule of a switch: there is one of these."""

    table: int
    priority: int
    match: Match


class Rule(NamedTuple):  # a tuple is made in a third of the time that a frozen dataclass takes
    """One entry of a table: the matching rule of highest priority applies.

    With `idle_s` the switch removes it, and says so, when no packet has matched it for that long. It does
    nothing with packets that its `meter` drops.
    """

    table: int
    priority: int
    match: Match
    action: Action
    cookie: int
    idle_s: int = 0
    meter: int | None = None

    @property
    def key(self) -> RuleKey:
        """Which of its switch's rules it is."""
        return RuleKey(self.table, self.priority, self.match)


@dataclass(frozen=True)
class Bucket:
    """One choice of a group; one with a port to watch is taken only while that port is up."""

    weight: int
    output: Output | ToGroup
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
    """Lets packets pass up to a rate a second and a burst, of packets or kilobits; others are dropped."""

    number: int
    rate: int
    burst: int
    in_kilobits: bool = False


@dataclass(frozen=True)
class MeterChange:
    """New rates for a meter that the switch has already."""

    meter: Meter


FlowEntry = Rule | Group | GroupChange
"""What a switch can be given for a flow; a group must come before the rules that lead to it."""

Entry = FlowEntry | Meter | MeterChange
"""What a switch can be given; a meter must come before the rules that use it."""

Stages = list[dict[str, tuple[FlowEntry, ...]]]
"""Entries in the order of their installation; those of one stage, by switch, may be installed together."""


def ecmp_group_number(switch_number: int) -> int:
    """Return the number of the group that leads to the hosts of a switch, by its place in the file."""
    return _GROUP_ECMP | switch_number


def split_group_number(tag: int) -> int:
    """Return the number of the group that splits the flow with this tag."""
    return _GROUP_SPLIT | tag


def flow_meter_number(number: int) -> int:
    """Return the number of the meter of a flow, above those of ports."""
    return _METER_FLOW | number % _METER_FLOW


def is_flow_meter(number: int) -> bool:
    """Return whether a meter is that of a flow."""
    return number >= _METER_FLOW


def port_group_number(port: int) -> int:
    """Return the number of the fast-failover group of a port (below 2**24)."""
    return _GROUP_PORT | port


def port_of_group(number: int) -> int | None:
    """Return the port whose fast-failover group has a number; None for other groups."""
    return number ^ _GROUP_PORT if number & 0xFF00_0000 == _GROUP_PORT else None


def flow_cookie(number: int, generation: int = 0) -> int:
    """Return the cookie of a flow's rules; `generation` counts its moves, `number` is below 2**32."""
    return _COOKIE_FLOW | generation % _GENERATIONS << 36 | number


def policing_cookie(number: int) -> int:
    """Return the cookie of the rules that hold a flow to its rate."""
    return _COOKIE_POLICING | number & _LOWER_HALF


def is_policing_cookie(cookie: int) -> bool:
    """Return whether a cookie is that of rules which hold a flow to its rate."""
    return cookie & _FLOW_MASK == _COOKIE_POLICING


def flow_number(cookie: int) -> int:
    """Return the number of the flow whose rule has this cookie."""
    return cookie & 0xFFFF_FFFF


def is_flow_cookie(cookie: int) -> bool:
    """Return whether a cookie is that of a flow's rules."""
    return cookie & _FLOW_MASK == _COOKIE_FLOW


def is_counted(cookie: int) -> bool:
    """Return whether a rule with a cookie counts flows' packets alone."""
    value, mask = COUNTED_COOKIES
    return cookie & mask == value


def label_cookie(is_flows: bool) -> int:
    """Return the cookie of a rule for labels, of flows or of others."""
    return _COOKIE_COUNTED if is_flows else COOKIE_LABEL


def eth_type_of(ip: str) -> int:
    """Return the Ethernet type of packets to an IP address."""
    return ETH_TYPE_IPV6 if ip_version(ip) == 6 else ETH_TYPE_IPV4


def delivery_cookie(ip: str) -> int:
    """Return the cookie of the rule that delivers flows' packets to a host."""
    return _COOKIE_COUNTED | _last_bits(ip)


def host_cookie(ip: str) -> int:
    """Return the cookie of the default routes to a host."""
    return _COOKIE_HOST | _last_bits(ip)


def _last_bits(ip: str) -> int:
    """Return what a cookie holds of an address: of IPv6, others may have the same."""
    return int(ipaddress.ip_address(ip)) & _LOWER_HALF


def by_switch(entries: Iterable[tuple[str, _E]]) -> dict[str, tuple[_E, ...]]:
    """Return entries by their switches, in their order."""
    found: dict[str, list[_E]] = {}
    for switch, entry in entries:
        found.setdefault(switch, []).append(entry)
    return {switch: tuple(those) for switch, those in found.items()}


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
