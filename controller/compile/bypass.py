"""Bypasses: for each direction of a link between switches a way around it, up to the link's other end.

One bypass serves all traffic over the link (as facility backup does, RFC 4090, section 3.2), so it costs
rules for each link, not for each flow. The switch before the link writes the bypass's stamp, an Ethernet
source address, into packets; those on the way forward by it; the one behind the link takes it off, and the
packet goes on as if it had come over the link. Packets of split flows have a stamp of their own there and are
not guarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from controller.model.rules import (
    ETH_TYPE_IPV4,
    PRIORITY_BYPASS,
    TABLE_CLASSIFY,
    TABLE_PINNED,
    Bucket,
    Group,
    Match,
    Output,
    Restamp,
    Rule,
    bypass_cookie,
    port_group_number,
)

__all__ = ["Bypass", "port_group"]

_PLAIN = "0a:42:59:ff:ff:ff"
"""The Ethernet source of packets that have been on a bypass: hosts do not look at it."""


@dataclass(frozen=True)
class Bypass:
    """A way around one direction of a link.

    Attributes:
        number: Of the direction, in the order of the file; below 2**24 - 1.
        nodes: Switches, from the one before the link to the one behind it.
    """

    number: int
    nodes: tuple[str, ...]

    @property
    def stamp(self) -> str:
        """The Ethernet source address of packets on it."""
        digits = f"{self.number:06x}"
        return f"0a:42:59:{digits[:2]}:{digits[2:4]}:{digits[4:]}"

    @property
    def cookie(self) -> int:
        """The cookie of its rules."""
        return bypass_cookie(self.number)

    def rules(self, ports: Mapping[tuple[str, str], int]) -> dict[str, Rule]:
        """Return the rule of each switch on it but the first."""
        match = Match(eth_type=ETH_TYPE_IPV4, source_mac=self.stamp)
        rules = {
            node: Rule(TABLE_CLASSIFY, PRIORITY_BYPASS, match, Output(ports[node, following]), self.cookie)
            for node, following in pairwise(self.nodes[1:])
        }
        end = Restamp(_PLAIN, TABLE_PINNED)
        rules[self.nodes[-1]] = Rule(TABLE_CLASSIFY, PRIORITY_BYPASS, match, end, self.cookie)
        return rules


def port_group(port: int, bypass: Bypass | None, ports: Mapping[tuple[str, str], int]) -> Group:
    """Return the group of a port, with the bypass of its link where there is one."""
    buckets = [Bucket(0, Output(port), port)]
    if bypass is not None:
        first = ports[bypass.nodes[0], bypass.nodes[1]]
        # Packets may have come in by just this port.
        buckets.append(Bucket(0, Output(first, bypass.stamp, may_return=True), first))
    return Group(port_group_number(port), tuple(buckets))
