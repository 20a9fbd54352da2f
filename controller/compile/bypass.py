"""Bypasses: for each direction of a link between switches a way around it, up to the link's other end.

One bypass serves all traffic over the link (as facility backup does, RFC 4090, section 3.2), and it is a
tunnel: the switch before the link keeps a packet's label in its Ethernet source
and writes the label of the way around. (Where that is longer than a label, a switch on it has a rule that
writes the next one.) The switch behind the link takes the first one back, and the packet
goes on as if it had come over the link. A packet on a bypass takes no other one: it could go in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from controller.model.labels import BYPASS
from controller.model.next_hops import NextHops
from controller.model.rules import (
    COOKIE_LABEL,
    PRIORITY_LABEL,
    TABLE_LABEL,
    Bucket,
    Group,
    Match,
    Output,
    Rule,
    port_group_number,
)


def relays(nodes: Sequence[str], next_hops: NextHops) -> tuple[str, ...]:
    """Return the switches at which a label ends on the way around a link, and the next one begins."""
    return tuple(nodes[place] for place in _places(nodes, next_hops)[1:])


def _places(nodes: Sequence[str], next_hops: NextHops) -> list[int]:
    """Return the places of the switches of a way that write labels."""
    places = [0]
    while len(nodes) - 1 - places[-1] > next_hops.format.most_fields:
        places.append(places[-1] + next_hops.format.most_continued + 1)
    return places


def _labels(nodes: Sequence[str], next_hops: NextHops, branches: Sequence[int]) -> list[str]:
    form, places = next_hops.format, _places(nodes, next_hops)
    fields = [*(next_hops.numbers[step] for step in pairwise(nodes[1:])), form.end_of_bypass]
    return [
        *(
            form.label(fields[place : place + form.most_continued], BYPASS, branch)
            for place, branch in zip(places, branches, strict=False)
        ),
        form.label(fields[places[-1] :], BYPASS),
    ]


def relay_rules(nodes: Sequence[str], next_hops: NextHops, branches: Sequence[int]) -> list[Rule]:
    """Return the rules of the relays of a way around a link.

    `nodes` lead from the switch before the link to the one behind. `branches`, from 1 to `MAX_BRANCHES`,
    tell bypasses apart at each relay.
    """
    places = _places(nodes, next_hops)[1:]
    return [
        Rule(
            TABLE_LABEL,
            PRIORITY_LABEL,
            Match(destination_mac=next_hops.format.label((), BYPASS, branch)),
            Output(next_hops[nodes[place], nodes[place + 1]], destination_mac=label),
            COOKIE_LABEL,
        )
        for place, branch, label in zip(
            places, branches, _labels(nodes, next_hops, branches)[1:], strict=True
        )
    ]


def port_group(
    port: int, bypass: Sequence[str] | None, next_hops: NextHops, branches: Sequence[int]
) -> Group:
    """Return the group of a port, with the bypass of its link where there is one."""
    buckets = [Bucket(0, Output(port), port)]
    if bypass is not None:
        first = next_hops[bypass[0], bypass[1]]
        label = _labels(bypass, next_hops, branches)[0]
        # Packets may have come in by just this port.
        output = Output(first, may_return=True, destination_mac=label, saves_label=True)
        buckets.append(Bucket(0, output, first))
    return Group(port_group_number(port), tuple(buckets))
