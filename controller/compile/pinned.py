"""Rules that put packets on a path: at its ingress, and where a label ends before the path does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from controller.model.labels import FLOW
from controller.model.next_hops import NextHops
from controller.model.rules import (
    PRIORITY_CONTINUE,
    PRIORITY_ROUTE,
    TABLE_DELIVER,
    TABLE_PINNED,
    Match,
    Output,
    Rule,
    TcpConnection,
    ToGroup,
    eth_type_of,
)

_MAX_ACTIONS = 1 << 16

Leg = tuple[str, str, str]
"""A switch that writes a label, the next node, and the label."""


def legs(nodes: Sequence[str], next_hops: NextHops, branch: int = 0) -> list[Leg]:
    """Return which switches of a path write which labels; the first is the ingress.

    `nodes` are host, switches, host, with at least two switches. `branch` tells paths of one connection apart
    where labels end on the way.
    """
    form, switches, found = next_hops.format, nodes[1:-1], []
    fields = [next_hops.numbers[switches[k], switches[k + 1]] for k in range(1, len(switches) - 1)]
    place = 0
    while len(fields) - place > form.most_fields:
        some = fields[place : place + form.most_continued]
        found.append((switches[place], switches[place + 1], form.label(some, FLOW, branch)))
        place += len(some) + 1
    found.append((switches[place], switches[place + 1], form.label(fields[place:], FLOW)))
    return found


def connection_match(connection: TcpConnection) -> Match:
    """Return the match of one direction of a TCP connection."""
    return Match(
        eth_type=eth_type_of(connection.source_ip),
        ip_protocol=connection.ip_protocol,
        source_ip=connection.source_ip,
        destination_ip=connection.destination_ip,
        source_port=connection.source_port,
        destination_port=connection.destination_port,
    )


@lru_cache(maxsize=1 << 14)
def _continued(connection: TcpConnection, label: str) -> Match:
    return replace(connection_match(connection), destination_mac=label)


def pinned_rule(connection: TcpConnection, action: Output | ToGroup, cookie: int) -> Rule:
    """Return the rule of an ingress for one direction of a TCP connection."""
    return Rule(TABLE_PINNED, PRIORITY_ROUTE, connection_match(connection), action, cookie)


def ingress_action(
    nodes: tuple[str, ...], next_hops: NextHops, branch: int = 0, source_mac: str | None = None
) -> Output | ToGroup:
    """Return what the ingress of a path does with its packets; it is made once.

    `branch` is as of `legs`; with `source_mac` they get another Ethernet source.
    """
    key, made = (nodes, branch, source_mac), next_hops.ingress_actions
    action = made.get(key)
    if action is None:
        if len(made) >= _MAX_ACTIONS:
            made.clear()
        label = legs(nodes, next_hops, branch=branch)[0][2] if len(nodes) > 3 else None
        action = made[key] = next_hops.labelled(nodes[1], nodes[2], label, source_mac)
    return action


def continuations(
    nodes: Sequence[str], connection: TcpConnection, next_hops: NextHops, cookie: int, branch: int = 0
) -> list[tuple[str, Rule]]:
    """Return the rules of the switches on the way at which a label ends and another begins."""
    if len(nodes) - 4 <= next_hops.format.most_fields:
        return []
    ended = next_hops.format.label((), branch=branch)
    match = _continued(connection, ended)
    return [
        (
            switch,
            Rule(TABLE_DELIVER, PRIORITY_CONTINUE, match, next_hops.labelled(switch, *rest), cookie),
        )
        for switch, *rest in legs(nodes, next_hops, branch=branch)[1:]
    ]


def pinned_path(
    nodes: tuple[str, ...], connection: TcpConnection, next_hops: NextHops, cookie: int
) -> list[tuple[str, Rule]]:
    """Return the rules that pin one direction of a TCP connection to a path; the ingress is last."""
    ingress = pinned_rule(connection, ingress_action(nodes, next_hops), cookie)
    return [*continuations(nodes, connection, next_hops, cookie), (nodes[1], ingress)]
