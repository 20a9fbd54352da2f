"""Split flows: one TCP connection over several paths, chosen packet by packet instead of stream by stream.

Each path has a stamp, an Ethernet source address of its own. The splitter writes the stamp of the chosen
path into each packet; the switches forward by the stamp, and the last one puts the source's address back.

- `packets`: a splitter in front of the ingress switch chooses (PPFS). Packets without a stamp take path 0.
- `group`: a select group of the ingress switch chooses. Open vSwitch hashes connections, not packets, so one
  connection stays on one path.

Acknowledgements are not split: they have one path for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from controller.compile.pinned import path_stages, pinned_path_stages, pinned_rule
from controller.model.journal import Journaled
from controller.model.rules import (
    ETH_TYPE_IPV4,
    PRIORITY_STAMP,
    TABLE_PINNED,
    Bucket,
    Group,
    Match,
    Output,
    Rule,
    Stage,
    TcpConnection,
    ToGroup,
    split_group_number,
)
from controller.model.ways import Ways

__all__ = [
    "MAX_SPLIT_PATHS",
    "TAGS",
    "Split",
    "SplitRules",
    "bucket_weights",
    "shares_of",
    "stamps",
    "tag_of",
]

MAX_SPLIT_PATHS = 16
"""Paths of one split flow, at most; as many as the splitter's table holds."""

TAGS = 1 << 16
"""How many tags there are: a stamp has room for 16 bits."""

_WEIGHT_STEPS = 1000
"""Finest step of a bucket's weight: one part in so many."""


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
    """Return the stamps of so many paths: locally administered addresses 0a:50:50:<tag>:<path>."""
    return tuple(f"0a:50:50:{tag >> 8:02x}:{tag & 0xFF:02x}:{index:02x}" for index in range(count))


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


@dataclass(frozen=True)
class SplitRules:
    """Makes the rules of a split flow.

    Attributes:
        split: How it is split.
        connection: The connection's addresses, from the source to the destination.
        paths: Host, switches, host, for each path.
        source_mac: The source's own Ethernet address.
        ports: The port of each node towards each neighbour, by (node, neighbour).
        cookie: Of the flow.
    """

    split: Split
    connection: TcpConnection
    paths: tuple[tuple[str, ...], ...]
    source_mac: str
    ports: Ways
    cookie: int

    def stages(self, shares: Sequence[float], reached: Collection[str] = ()) -> list[list[Stage]]:
        """Return what is to be installed side by side, each direction as `path_stages` orders it."""
        back = self.connection.reverse
        acks = pinned_path_stages(self.split.ack_path, back, self.ports, self.cookie, reached)
        ways = zip(self.paths, self._stamps(), strict=True)
        stamped = [self._stamped(path, stamp, reached) for path, stamp in ways]
        if self.split.mode == "packets":
            unstamped = pinned_path_stages(self.paths[0], self.connection, self.ports, self.cookie, reached)
            return [acks, unstamped, *stamped]
        behind_ingress = [stages[:-1] for stages in stamped]
        group = self.group(shares)
        rule = pinned_rule(self.connection, ToGroup(group.number), self.cookie)
        # The group leads to all paths, so it waits for the longest.
        earlier: list[Stage] = [{} for _ in range(max(map(len, behind_ingress)))]
        return [acks, *behind_ingress, [*earlier, {self.paths[0][1]: [group, rule]}]]

    def group(self, shares: Sequence[float]) -> Group:
        """Return the group that splits the flow at its ingress switch."""
        buckets = tuple(
            # With the destination at the same switch there is nobody who would take a stamp off again.
            Bucket(weight, Output(self.ports[path[1], path[2]], stamp if len(path) > 3 else None))
            for path, stamp, weight in zip(self.paths, self._stamps(), bucket_weights(shares), strict=True)
        )
        return Group(split_group_number(self.split.tag), buckets)

    def _stamps(self) -> tuple[str, ...]:
        return stamps(self.split.tag, len(self.paths))

    def _stamped(self, path: tuple[str, ...], stamp: str, reached: Collection[str]) -> list[Stage]:
        def rule(switch: str, following: str) -> Rule:
            port = self.ports[switch, following]
            restored = self.source_mac if switch == path[-2] else None
            return _stamp_rule(stamp, Output(port, restored), self.cookie)

        return path_stages(path, rule, reached)


def _stamp_rule(stamp: str, output: Output, cookie: int) -> Rule:
    """Return the rule for the IP packets that carry a path's stamp as their Ethernet source."""
    match = Match(eth_type=ETH_TYPE_IPV4, source_mac=stamp)
    return Rule(TABLE_PINNED, PRIORITY_STAMP, match, output, cookie)
