"""Rules that pin a TCP connection to a path, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    match = Match(
        eth_type=ETH_TYPE_IPV4,
        ip_protocol=IP_PROTO_TCP,
        source_ip=connection.source_ip,
        destination_ip=connection.destination_ip,
        source_port=connection.source_port,
        destination_port=connection.destination_port,
    )
    return Rule(TABLE_PINNED, PRIORITY_ROUTE, match, action, cookie)


def path_stages(
    nodes: tuple[str, ...], ports: Mapping[tuple[str, str], int], rule: Callable[[str, int], Rule]
) -> list[Stage]:
    """Return one direction of a path in the order in which its rules may be installed.

    The far end comes first, so that a packet which meets a rule finds all that follow.

    Args:
        nodes: Host, switches, host, as a packet meets them.
        ports: The port of each node towards each neighbour, by (node, neighbour).
        rule: Makes the rule of a switch with its port towards the next node.
    """
    steps = list(pairwise(nodes[1:]))
    return [{node: [rule(node, ports[node, following])]} for node, following in reversed(steps)]


def pinned_path_stages(
    nodes: tuple[str, ...],
    connection: TcpConnection,
    ports: Mapping[tuple[str, str], int],
    cookie: int,
) -> list[Stage]:
    """Return the rules that pin one direction of a TCP connection to a path, as `path_stages`."""
    return path_stages(nodes, ports, lambda _, port: pinned_rule(connection, Output(port), cookie))
