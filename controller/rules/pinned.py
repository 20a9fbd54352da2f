"""Rules that pin a TCP connection to a path, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from controller.rules.model import (
    ETH_TYPE_IPV4,
    IP_PROTO_TCP,
    PRIORITY_ROUTE,
    TABLE_PINNED,
    Match,
    Output,
    Rule,
    Stage,
    ToGroup,
)

__all__ = ["TcpConnection", "path_stages", "pinned_path_stages", "pinned_rule"]


@dataclass(frozen=True)
class TcpConnection:
    """The addresses of a TCP connection (always TCP, so four values)."""

    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int

    @property
    def reverse(self) -> TcpConnection:
        """The same connection seen from the other end."""
        return TcpConnection(self.destination_ip, self.source_ip, self.destination_port, self.source_port)


def pinned_rule(connection: TcpConnection, action: Output | ToGroup, cookie: int) -> Rule:
    """Return the rule for one direction of a TCP connection."""
    return Rule(TABLE_PINNED, PRIORITY_ROUTE, _match(connection), action, cookie)


def _match(connection: TcpConnection) -> Match:
    return Match(
        eth_type=ETH_TYPE_IPV4,
        ip_protocol=IP_PROTO_TCP,
        source_ip=connection.source_ip,
        destination_ip=connection.destination_ip,
        source_port=connection.source_port,
        destination_port=connection.destination_port,
    )


def path_stages(
    nodes: tuple[str, ...],
    ports: Mapping[tuple[str, str], int],
    rule: Callable[[str, int], Rule],
    reached: Collection[str] = (),
) -> list[Stage]:
    """Return one direction of a path in the order in which its rules may be installed.

    Switches that no packet of the connection reaches yet come all at once. Those that it does reach follow
    one by one, the far end first, so that a packet which meets a rule finds all that follow; the ingress is
    last.

    Args:
        nodes: Host, switches, host, as a packet meets them.
        ports: The port of each node towards each neighbour, by (node, neighbour).
        rule: Makes the rule of a switch with its port towards the next node.
        reached: Nodes that the connection's packets reach on the path that they have; the ingress need not be
            among them.
    """
    ingress = nodes[1]
    rules = {node: rule(node, ports[node, following]) for node, following in pairwise(nodes[1:])}
    at_once: Stage = {node: [rules[node]] for node in rules if node != ingress and node not in reached}
    in_order: list[Stage] = [{node: [rules[node]]} for node in reversed(rules) if node not in at_once]
    return [at_once, *in_order] if at_once else in_order


def pinned_path_stages(
    nodes: tuple[str, ...],
    connection: TcpConnection,
    ports: Mapping[tuple[str, str], int],
    cookie: int,
    reached: Collection[str] = (),
) -> list[Stage]:
    """Return the rules that pin one direction of a TCP connection to a path, as `path_stages`."""
    match = _match(connection)

    def rule(_: str, port: int) -> Rule:
        return Rule(TABLE_PINNED, PRIORITY_ROUTE, match, _output(port), cookie)

    return path_stages(nodes, ports, rule, reached)


@lru_cache(maxsize=1 << 12)
def _output(port: int) -> Output:
    return Output(port)
