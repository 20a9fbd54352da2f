"""Bypasses: for each direction of a link between switches a way around it, up to the link's other end.

One bypass serves all traffic over the link (as facility backup does, RFC 4090, section 3.2), and it is a
tunnel that needs no rule on the way: the switch before the link keeps a packet's label in its Ethernet source
and writes the label of the way around. The switch behind the link takes the first one back, and the packet
goes on as if it had come over the link. A packet on a bypass takes no other one: it could go in a circle.
"""

from __future__ import annotations

from itertools import pairwise

from controller.model.labels import BYPASS
from controller.model.rules import Bucket, Group, Output, port_group_number
from controller.model.ways import Ways

__all__ = ["fits_label", "port_group"]


def fits_label(nodes: tuple[str, ...], ways: Ways) -> bool:
    """Return whether a way around a link, from the switch before it to the one behind, has a label."""
    return len(nodes) - 1 <= ways.format.most_fields


def port_group(port: int, bypass: tuple[str, ...] | None, ways: Ways) -> Group:
    """Return the group of a port, with the bypass of its link where there is one."""
    buckets = [Bucket(0, Output(port), port)]
    if bypass is not None:
        first = ways[bypass[0], bypass[1]]
        fields = [ways.numbers[step] for step in pairwise(bypass[1:])]
        label = ways.format.label((*fields, ways.format.end_of_bypass), BYPASS)
        # Packets may have come in by just this port.
        output = Output(first, may_return=True, destination_mac=label, saves_label=True)
        buckets.append(Bucket(0, output, first))
    return Group(port_group_number(port), tuple(buckets))
