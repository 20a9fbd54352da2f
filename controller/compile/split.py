"""Split flows: one TCP connection over several paths, chosen packet by packet instead of stream by stream.

- `packets`: a splitter in front of the ingress switch chooses (PPFS). It writes the stamp of the chosen path,
  an Ethernet source address, into each packet; the ingress puts the source's address back and writes the
  path's label. Packets without a stamp take path 0.
- `group`: a select group of the ingress switch writes one of the labels. Open vSwitch hashes connections, not
  packets, so one connection stays on one path.

Acknowledgements are not split: they have one path for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from controller.compile.pinned import continuations, ingress_action, pinned_path, pinned_rule
from controller.model.journal import Journaled
from controller.model.next_hops import NextHops
from controller.model.rules import (
    PRIORITY_STAMP,
    TABLE_PINNED,
    Bucket,
    Group,
    Match,
    Rule,
    TcpConnection,
    ToGroup,
    eth_type_of,
    split_group_number,
)

MAX_SPLIT_PATHS = 16
"""Paths of one split flow, at most; as many as the splitter's table holds."""

TAGS = 1 << 16
"""How many tags there are: a stamp has room for 16 bits."""

_PREFIX = "0a:50:50:"

_WEIGHT_STEPS = 1000
"""Finest step of a bucket's weight: one part in this many."""


@dataclass
class Split(Journaled):
    """How a flow is split.

    Attributes:
        mode: Who chooses the path of a packet (see the module).
        tag: Tells the stamps and the group from those of all other flows.
        acks: Path of the acknowledgements as it was asked for: `shortest` or `reverse:<index of a path>`.
        ack_path: The same as nodes, from the destination to the source.
        group: The group that the ingress switch has, or will get when it connects.
    """

    mode: Literal["packets", "group"]
    tag: int
    acks: str
    ack_path: tuple[str, ...]
    group: Group | None = None


def stamps(tag: int, count: int) -> tuple[str, ...]:
    """Return the stamps of this many paths: locally administered addresses 0a:50:50:<tag>:<path>."""
    return tuple(f"{_PREFIX}{tag >> 8:02x}:{tag & 0xFF:02x}:{index:02x}" for index in range(count))


def tag_of(stamp: str) -> int:
    """Return the tag in a stamp."""
    return int(stamp[9:14].replace(":", ""), 16)


def shares_of(rates_bps: Sequence[float]) -> tuple[float, ...]:
    """Return the share of each path; a flow without any rate has its first path alone."""
    total_bps = math.fsum(rates_bps)
    if total_bps <= 0:
        return tuple(float(index == 0) for index in range(len(rates_bps)))
    return tuple(rate_bps / total_bps for rate_bps in rates_bps)


def bucket_weights(shares: Sequence[float]) -> tuple[int, ...]:
    """Return small integers in proportion to shares; only a share of 0 has the weight 0."""
    weights = [max(round(share * _WEIGHT_STEPS), int(share > 0)) for share in shares]
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


def is_stamp(address: str) -> bool:
    """Return whether an Ethernet address is a stamp."""
    return address.startswith(_PREFIX)


@dataclass(frozen=True)
class SplitRules:
    """Makes the rules of a split flow.

    Each path is host, switches, host; the connection's addresses are from the source to the destination.
    """

    split: Split
    connection: TcpConnection
    paths: tuple[tuple[str, ...], ...]
    source_mac: str
    next_hops: NextHops
    cookie: int

    def entries(self, shares: Sequence[float]) -> list[tuple[str, Rule | Group]]:
        """Return its rules and groups; those of ingresses are last."""
        acks = pinned_path(self.split.ack_path, self.connection.reverse, self.next_hops, self.cookie)
        behind: list[tuple[str, Rule | Group]] = [*acks[:-1]]
        for branch, path in enumerate(self.paths):
            behind += continuations(path, self.connection, self.next_hops, self.cookie, branch)
        ingress = self.paths[0][1]
        return [*behind, acks[-1], *((ingress, entry) for entry in self._at_ingress(shares))]

    def group(self, shares: Sequence[float]) -> Group:
        """Return the group that splits the flow at its ingress switch."""
        buckets = tuple(
            Bucket(weight, ingress_action(path, self.next_hops, branch))
            for branch, (path, weight) in enumerate(zip(self.paths, bucket_weights(shares), strict=True))
        )
        return Group(split_group_number(self.split.tag), buckets)

    def _at_ingress(self, shares: Sequence[float]) -> list[Rule | Group]:
        if self.split.mode == "group":
            group = self.group(shares)
            return [group, pinned_rule(self.connection, ToGroup(group.number), self.cookie)]
        unstamped = ingress_action(self.paths[0], self.next_hops)
        rules: list[Rule | Group] = [pinned_rule(self.connection, unstamped, self.cookie)]
        for branch, (path, stamp) in enumerate(
            zip(self.paths, stamps(self.split.tag, len(self.paths)), strict=True)
        ):
            stamped = Match(eth_type=eth_type_of(self.connection.source_ip), source_mac=stamp)
            action = ingress_action(path, self.next_hops, branch, self.source_mac)
            rules.append(Rule(TABLE_PINNED, PRIORITY_STAMP, stamped, action, self.cookie))
        return rules
