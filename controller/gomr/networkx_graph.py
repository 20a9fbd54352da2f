"""Problems of networkx graphs, for programs that have their network as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controller.errors import InvalidProblem
from controller.gomr.columns import DemandColumns
from controller.gomr.matrices import Matrix, demands_of
from controller.gomr.problem import Demand, Edge, Problem

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(
    graph: nx.Graph[Any],
    demands: Iterable[Demand] | DemandColumns | Matrix,
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
        demands: The demands, or the rates between nodes: by pair, as a dict of dicts, a pandas DataFrame, or
            a NumPy array or SciPy sparse matrix in the order of `graph.nodes`, with the sources in rows.
            The demand of a pair is called `source->destination`.
        capacity: Name of the attribute with the capacity; every edge needs it, `inf` is no limit.
        delay: Name of the attribute with the delay in seconds; 1 for edges without it, so that short paths
            are those of few edges.
        unit_bps: What capacities, and the rates of demands in whatever form, count in, as 1e9 for Gbit/s.

    Raises:
        InvalidProblem: An edge has no capacity, two nodes have one name, a matrix does not fit the graph, or
            as `Problem`.
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
    routed = _scaled(demands_of(demands, list(names.values())), unit_bps)
    return Problem(tuple(edges), routed, reverse)


def _scaled(demands: DemandColumns | tuple[Demand, ...], factor: float) -> DemandColumns | tuple[Demand, ...]:
    if factor == 1:
        return demands
    if isinstance(demands, DemandColumns):
        return demands.scaled(factor)
    return tuple(replace(demand, rate_bps=demand.rate_bps * factor) for demand in demands)


def _edges(graph: nx.Graph[Any]) -> Iterable[tuple[Any, Any, Any, Mapping[str, Any]]]:
    if graph.is_multigraph():
        return graph.edges(keys=True, data=True)  # type: ignore[no-any-return]
    return ((tail, head, None, data) for tail, head, data in graph.edges(data=True))
