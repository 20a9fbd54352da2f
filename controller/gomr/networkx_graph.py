"""Problems of networkx graphs, for programs that have their network as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from controller.errors import InvalidProblem
from controller.gomr.problem import Demand, Edge, Problem

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(
    graph: nx.Graph[Any],
    demands: Iterable[Demand] | Mapping[tuple[Any, Any], float],
    *,
    capacity: str = "capacity",
    delay: str = "delay",
    unit_bps: float = 1.0,
) -> Problem:
    """Return the problem of routing demands over a networkx graph.

    An edge of a directed graph leads one way, of an undirected graph both ways with its capacity each;
    parallel edges of multigraphs stay apart. Nodes are named by `str`. Edges are called `tail->head`,
    parallel ones `tail->head#key`.

    Args:
        graph: Any networkx graph.
        demands: The demands, or rates by pair of nodes; the demand of a pair is called `source->destination`.
        capacity: Name of the attribute with the capacity; every edge needs it.
        delay: Name of the attribute with the delay in seconds; 1 for edges without it, so that short paths
            are those of few edges.
        unit_bps: What capacities, and rates by pair, count in, as 1e9 for Gbit/s.

    Raises:
        InvalidProblem: An edge has no capacity, two nodes have one name, or as `Problem`.
    """
    names = {node: str(node) for node in graph.nodes}
    if len(set(names.values())) < len(names):
        raise InvalidProblem("graph", "has two nodes that are the same as text; rename one")
    edges: list[Edge] = []
    reverse: dict[str, str] = {}
    opposite: dict[tuple[str, str, object], str] = {}
    for tail, head, key, data in _edges(graph):
        if capacity not in data:
            raise InvalidProblem(f"edges[{tail}->{head}].{capacity}", "is missing; every edge needs one")
        if tail == head:
            continue
        ends = (names[tail], names[head])
        for a, b in (ends,) if graph.is_directed() else (ends, ends[::-1]):
            name = f"{a}->{b}" if key in (None, 0) else f"{a}->{b}#{key}"
            edges.append(Edge(name, a, b, float(data[capacity]) * unit_bps, float(data.get(delay, 1.0))))
            opposite[a, b, key] = name
            back = opposite.get((b, a, key))
            if back is not None:
                reverse[name], reverse[back] = back, name
    if isinstance(demands, Mapping):
        demands = [
            Demand(f"{source}->{destination}", str(source), str(destination), float(rate) * unit_bps)
            for (source, destination), rate in demands.items()
        ]
    return Problem(tuple(edges), tuple(demands), reverse)


def _edges(graph: nx.Graph[Any]) -> Iterable[tuple[Any, Any, Any, Mapping[str, Any]]]:
    if graph.is_multigraph():
        return graph.edges(keys=True, data=True)  # type: ignore[no-any-return]
    return ((tail, head, None, data) for tail, head, data in graph.edges(data=True))
