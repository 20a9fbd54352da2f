"""Problems of networks that know their links and hosts, as `topologies.load` returns them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol

from gomr.columns import DemandColumns
from gomr.errors import InvalidProblem
from gomr.problem import Demand, Edge, Problem


class Network(Protocol):
    """What is needed of a network."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def hosts(self) -> Iterable[str]:
        """Names of the nodes that forward nothing."""

    @property
    def nodes(self) -> Iterable[Any]:
        """All nodes; each has a `name`."""

    def link(self, name: str) -> Any:
        """Return the link of this name, written in either direction; KeyError if there is none."""

    def arcs(self) -> Iterator[Any]:
        """Yield each direction of every link: `link`, `tail`, `head`, `rate_bps` and `delay_s`."""


def from_network(
    network: Network,
    demands: Iterable[Demand],
    *,
    down: Collection[str] = frozenset(),
    reserved_share: float = 0.0,
) -> Problem:
    """Return the problem of routing `demands` over a network.

    The directions of a link become edges called `tail->head`, as `S0->S4`, each the other's reverse; a link
    that leads one way is one edge. Hosts forward nothing.

    Args:
        network: The network.
        demands: The flows; their nodes are names of the network's nodes.
        down: Names of links that carry nothing now. Their edges stay, with a capacity of 0, so that the paths
            of running flows keep their meaning.
        reserved_share: Share of every link's capacity, from 0 to below 1, that stays free for other traffic.

    Raises:
        InvalidProblem: As `Problem`.
    """
    try:
        down_links = {network.link(name).name for name in down}
    except KeyError as error:
        raise InvalidProblem("down", f"{error.args[0]!r} is not a link of network {network.name}") from error
    if not 0 <= reserved_share < 1:
        raise InvalidProblem("reserved_share", f"must be from 0 to below 1, not {reserved_share}")
    edges = []
    reverse = {}
    for arc in network.arcs():
        mark = "".join(arc.link.partition("#")[1:])  # of one of several parallel links
        edge_id = f"{arc.tail}->{arc.head}{mark}"
        capacity_bps = 0.0 if arc.link in down_links else arc.rate_bps * (1 - reserved_share)
        edges.append(Edge(edge_id, arc.tail, arc.head, capacity_bps, arc.delay_s))
        reverse[edge_id] = f"{arc.head}->{arc.tail}{mark}"
    present = {edge.id for edge in edges}
    reverse = {edge_id: back for edge_id, back in reverse.items() if back in present}
    routed = demands if isinstance(demands, DemandColumns) else tuple(demands)
    isolated = {node.name for node in network.nodes}.difference(*((edge.tail, edge.head) for edge in edges))
    return Problem(tuple(edges), routed, reverse, frozenset(network.hosts), frozenset(isolated))
