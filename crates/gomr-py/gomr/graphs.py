"""Problems of the graphs that programs hold: networkx, dicts, tuples, and matrices of capacities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gomr.columns import DemandColumns
from gomr.demands import scaled
from gomr.errors import InvalidProblem
from gomr.matrices import Matrix, demands_of, numbers_of
from gomr.networks import from_network
from gomr.problem import Demand, Edge, Problem

if TYPE_CHECKING:
    import networkx as nx

_GRAPH_FORMS = (
    "a networkx graph, a dict of capacities, tuples (tail, head, capacity[, delay]), a capacity matrix, a "
    "network of topologies.load, or a Problem"
)


class _Link(NamedTuple):
    """An edge as it was given; `key` tells parallel ones apart."""

    tail: Any
    head: Any
    key: object
    capacity: Any
    delay: Any


def problem_of(
    graph: Any,
    demands: Iterable[Demand] | DemandColumns | Matrix | None = None,
    *,
    capacity: str = "capacity",
    delay: str = "delay",
    unit_bps: float = 1.0,
    nodes: Sequence[Any] | None = None,
    directed: bool | None = None,
) -> Problem:
    """Return the problem of routing demands over a network in any of the forms that programs hold.

    Nodes are named by `str`. Edges are called `tail->head`, parallel ones `tail->head#key`.

    Args:
        graph: A networkx graph; capacities by pair, `{("a", "b"): 10}` or `{"a": {"b": 10}}`; tuples
            (tail, head, capacity) or (tail, head, capacity, delay in seconds); a square matrix of capacities
            (NumPy, SciPy sparse, pandas), where 0 is no edge; what `topologies.load` returns; or a `Problem`.
        demands: As `gomr.solve`. None: those of the `Problem`.
        capacity: In networkx graphs and dicts of attributes the name of the capacity; every edge needs it,
            `inf` is no limit.
        delay: The same of the delay in seconds; 1 for edges without it, so that short paths are those of few
            edges.
        unit_bps: What capacities, and the rates of demands in whatever form, count in, as 1e9 for Gbit/s.
        nodes: Names of the rows of a capacity matrix; "0", "1", … if not given.
        directed: Whether an edge leads one way only. None: as the networkx graph says; all other forms name
            each direction.

    Raises:
        InvalidProblem: It is none of these, an edge has no capacity, two nodes have one name, a matrix does
            not fit the graph, or as `Problem`.
    """
    if isinstance(graph, Problem) and demands is None:
        return graph
    network, names = network_of(
        graph, capacity=capacity, delay=delay, unit_bps=unit_bps, nodes=nodes, directed=directed
    )
    return replace(network, demands=scaled(demands_of(demands, names), unit_bps))


def network_of(
    graph: Any,
    *,
    capacity: str = "capacity",
    delay: str = "delay",
    unit_bps: float = 1.0,
    nodes: Sequence[Any] | None = None,
    directed: bool | None = None,
) -> tuple[Problem, list[str]]:
    """Return a network without demands, and its nodes in the order of the rows of a matrix."""
    if isinstance(graph, Problem):
        ends = (end for edge in graph.edges for end in (edge.tail, edge.head))
        return replace(graph, demands=()), [*dict.fromkeys(ends), *sorted(graph.isolated)]
    if hasattr(graph, "arcs") and hasattr(graph, "hosts"):
        return from_network(graph, ()), [node.name for node in graph.nodes]
    if directed is None:
        directed = not hasattr(graph, "is_directed") or graph.is_directed()
    given, links = _links(graph, capacity, delay, nodes)
    names = {node: str(node) for node in given}
    if len(set(names.values())) < len(names):
        raise InvalidProblem("graph", "has two nodes that are the same as text; rename one")
    edges, reverse = _edges(links, names, both_ways=not directed, unit_bps=unit_bps, capacity=capacity)
    joined = {end for edge in edges for end in (edge.tail, edge.head)}
    isolated = frozenset(names.values()) - joined
    return Problem(tuple(edges), (), reverse, isolated=isolated), list(names.values())


def from_networkx(
    graph: nx.Graph[Any],
    demands: Iterable[Demand] | DemandColumns | Matrix,
    *,
    capacity: str = "capacity",
    delay: str = "delay",
    unit_bps: float = 1.0,
) -> Problem:
    """Return the problem of routing demands over a networkx graph, as `problem_of`.

    An edge of a directed graph leads one way, of an undirected graph both ways with its capacity each;
    parallel edges of multigraphs stay apart.
    """
    return problem_of(graph, demands, capacity=capacity, delay=delay, unit_bps=unit_bps)


def _edges(
    links: Iterable[_Link], names: Mapping[Any, str], *, both_ways: bool, unit_bps: float, capacity: str
) -> tuple[list[Edge], dict[str, str]]:
    edges: list[Edge] = []
    reverse: dict[str, str] = {}
    opposite: dict[tuple[str, str, object], str] = {}
    for link in links:
        if link.capacity is None:
            field = f"edges[{link.tail}->{link.head}].{capacity}"
            raise InvalidProblem(field, "is missing; every edge needs one")
        if link.tail == link.head:
            continue
        ends, key = (names[link.tail], names[link.head]), link.key
        for a, b in (ends, ends[::-1]) if both_ways else (ends,):
            name = f"{a}->{b}" if key in (None, 0) else f"{a}->{b}#{key}"
            rate_bps = _number(f"edges[{name}].{capacity}", link.capacity) * unit_bps
            delay_s = 1.0 if link.delay is None else _number(f"edges[{name}].delay", link.delay)
            edges.append(Edge(name, a, b, rate_bps, delay_s))
            opposite[a, b, key] = name
            back = opposite.get((b, a, key))
            if back is not None:
                reverse[name], reverse[back] = back, name
    return edges, reverse


def _number(field: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidProblem(field, f"must be a number, not {value!r}") from None


def _links(
    graph: Any, capacity: str, delay: str, nodes: Sequence[Any] | None
) -> tuple[list[Any], Iterator[_Link]]:
    """Return the nodes of a graph in its order, and its edges."""
    if hasattr(graph, "is_directed"):
        return list(graph.nodes), _of_networkx(graph, capacity, delay)
    if hasattr(graph, "columns") and hasattr(graph, "index"):
        nodes, graph = list(graph.index), graph.reindex(columns=graph.index).to_numpy()
    if hasattr(graph, "shape"):
        return _of_matrix(numbers_of(graph, "graph"), nodes)
    if isinstance(graph, Mapping):
        links = list(_of_mapping(graph, capacity, delay))
    elif isinstance(graph, Iterable) and not isinstance(graph, str):
        links = list(_of_tuples(graph))
    else:
        raise InvalidProblem("graph", f"must be {_GRAPH_FORMS}, not {type(graph).__name__}")
    ends = (end for link in links for end in (link.tail, link.head))
    return list(dict.fromkeys([*(nodes or ()), *ends])), iter(links)


def _of_networkx(graph: Any, capacity: str, delay: str) -> Iterator[_Link]:
    if graph.is_multigraph():
        keyed = graph.edges(keys=True, data=True)
    else:
        keyed = ((tail, head, None, data) for tail, head, data in graph.edges(data=True))
    for tail, head, key, data in keyed:
        yield _Link(tail, head, key, data.get(capacity), data.get(delay))


def _of_matrix(capacities: Any, nodes: Sequence[Any] | None) -> tuple[list[Any], Iterator[_Link]]:
    count = len(capacities)
    names = [str(at) for at in range(count)] if nodes is None else list(nodes)
    if capacities.shape != (len(names), len(names)):
        raise InvalidProblem("graph", f"the matrix has the shape {capacities.shape}, not {(len(names),) * 2}")
    tails, heads = (ends.tolist() for ends in np.nonzero(capacities))
    pairs = zip(tails, heads, strict=True)
    links = (_Link(names[a], names[b], None, capacities[a, b], None) for a, b in pairs)
    return names, links


def _of_mapping(graph: Mapping[Any, Any], capacity: str, delay: str) -> Iterator[_Link]:
    for key, value in graph.items():
        if isinstance(key, tuple) and len(key) == 2:
            yield _with_attributes(*key, value, capacity, delay)
        elif isinstance(value, Mapping):
            for head, own in value.items():
                yield _with_attributes(key, head, own, capacity, delay)
        else:
            raise InvalidProblem("graph", f"{key!r} is no pair of nodes; use (tail, head)")


def _with_attributes(tail: Any, head: Any, value: Any, capacity: str, delay: str) -> _Link:
    if isinstance(value, Mapping):
        return _Link(tail, head, None, value.get(capacity), value.get(delay))
    return _Link(tail, head, None, value, None)


def _of_tuples(graph: Iterable[Any]) -> Iterator[_Link]:
    seen: dict[tuple[Any, Any], int] = {}
    for one in graph:
        edge = (one.tail, one.head, one.capacity_bps, one.delay_s) if isinstance(one, Edge) else one
        if not isinstance(edge, Sequence) or isinstance(edge, str) or len(edge) not in (3, 4):
            raise InvalidProblem("graph", f"must be {_GRAPH_FORMS}; it holds {one!r}")
        tail, head, capacity = edge[:3]
        key = seen[tail, head] = seen.get((tail, head), -1) + 1
        yield _Link(tail, head, key, capacity, edge[3] if len(edge) == 4 else None)
