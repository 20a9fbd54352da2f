"""Rules that pin a TCP connection to a path, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise

from controller.model.rules import (
    ETH_TYPE_IPV4,
    PRIORITY_ROUTE,
    TABLE_PINNED,
    Match,
    Output,
    Rule,
    Stage,
    TcpConnection,
    ToGroup,
)
from controller.model.ways import Ways

__all__ = [
    "new_path_stages",
    "path_stages",
    "pinned_path_stages",
    "pinned_rule",
    "pinned_rules",
]


def pinned_rule(connection: TcpConnection, action: Output | ToGroup, cookie: int) -> Rule:
    """Return the rule for one direction of a TCP connection."""
    return Rule(TABLE_PINNED, PRIORITY_ROUTE, _match(connection), action, cookie)


def _match(connection: TcpConnection) -> Match:
    return Match(
        eth_type=ETH_TYPE_IPV4,
        ip_protocol=connection.ip_protocol,
        source_ip=connection.source_ip,
        destination_ip=connection.destination_ip,
        source_port=connection.source_port,
        destination_port=connection.destination_port,
    )


def path_stages(
    nodes: tuple[str, ...],
    rule: Callable[[str, str], Rule],
    reached: Collection[str] = (),
) -> list[Stage]:
    """Return one direction of a path in the order in which its rules may be installed.

    Switches that no packet of the connection reaches yet come all at once. Those that it does reach follow
    one by one, the far end first, so that a packet which meets a rule finds all that follow; the ingress is
    last.

    Args:
        nodes: Host, switches, host, as a packet meets them.
        rule: Makes the rule of a switch, given the next node too.
        reached: Nodes that the connection's packets reach on the path that they have; the ingress need not be
            among them.
    """
    ingress = nodes[1]
    rules = {node: rule(node, following) for node, following in pairwise(nodes[1:])}
    at_once: Stage = {node: [rules[node]] for node in rules if node != ingress and node not in reached}
    in_order: list[Stage] = [{node: [rules[node]]} for node in reversed(rules) if node not in at_once]
    return [at_once, *in_order] if at_once else in_order


def pinned_path_stages(
    nodes: tuple[str, ...],
    connection: TcpConnection,
    ways: Ways,
    cookie: int,
    reached: Collection[str] = (),
) -> list[Stage]:
    """Return the rules that pin one direction of a TCP connection to a path, as `path_stages`."""
    match = _match(connection)

    def rule(switch: str, following: str) -> Rule:
        return Rule(TABLE_PINNED, PRIORITY_ROUTE, match, ways.action(switch, following), cookie)

    return path_stages(nodes, rule, reached)


def new_path_stages(
    nodes: tuple[str, ...], connection: TcpConnection, ways: Ways, cookie: int
) -> list[Stage]:
    """Return the rules that pin both directions of a TCP connection that no packet has used yet.

    They are those of `pinned_path_stages`: each direction's ingress comes after all others.
    """
    forward, back = _match(connection), _match(connection.reverse)
    first, last = nodes[1], nodes[-2]
    behind: Stage = {}
    ingress: Stage = {first: [], last: []}
    for before, switch, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
        there = Rule(TABLE_PINNED, PRIORITY_ROUTE, forward, ways.action(switch, after), cookie)
        returning = Rule(TABLE_PINNED, PRIORITY_ROUTE, back, ways.action(switch, before), cookie)
        (ingress[switch] if switch == first else behind.setdefault(switch, [])).append(there)
        (ingress[switch] if switch == last else behind.setdefault(switch, [])).append(returning)
    return [behind, ingress] if behind else [ingress]


def pinned_rules(
    nodes: tuple[str, ...], connection: TcpConnection, ways: Ways, cookie: int, at: Collection[str]
) -> list[tuple[str, Rule]]:
    """Return the rules that pin one direction of a TCP connection to a path, of some switches on it."""
    match = _match(connection)
    return [
        (switch, Rule(TABLE_PINNED, PRIORITY_ROUTE, match, ways.action(switch, following), cookie))
        for switch, following in pairwise(nodes[1:])
        if switch in at
    ]
