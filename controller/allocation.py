"""From flows to a routing problem, and from its solution to the rates of streams.

One solve covers the flows that share an objective: running ones keep their paths but may get other rates, so
that the whole is optimal. Flows with another objective, with paths given by hand or over a lost link keep
what they have; it is taken off the links' capacity.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice

import networkx as nx

from controller.errors import InfeasibleRequest
from controller.flows import Flow, arc_loads, edges_of
from controller.gomr import Allocation, Demand, Edge, PathRate, Problem, solve
from controller.live_network import arc_name
from controller.state import State
from controller.wire import Framing

__all__ = ["Newcomer", "Optimum", "PlannedPath", "has_path", "optimise", "shortest_paths"]

_NEGLIGIBLE_SHARE = 1e-6
"""A path with less than this share of a flow's rate is the solver's rounding, not a path."""

_NEWCOMER = "newcomer"


@dataclass(frozen=True)
class Newcomer:
    """A flow that is asked for. `streams`: exactly so many paths."""

    source: str
    destination: str
    rate_bps: float
    framing: Framing
    max_paths: int | None
    streams: int | None


@dataclass(frozen=True)
class PlannedPath:
    """A path for a new flow; `rate_bps` is goodput."""

    nodes: tuple[str, ...]
    rate_bps: float
    delay_s: float


@dataclass(frozen=True)
class Optimum:
    """New goodputs of running flows, by stream, and the paths of the new flow (empty: none is free)."""

    rates: Mapping[str, tuple[float, ...]]
    paths: tuple[PlannedPath, ...]


def optimise(state: State, objective: str, newcomer: Newcomer | None = None) -> Optimum:
    """Find the global optimum of the flows with this objective, and of a new one.

    Args:
        state: Network and flows.
        objective: One of `controller.gomr.OBJECTIVES`.
        newcomer: A flow that is asked for.

    Raises:
        InfeasibleRequest: there are fewer paths than the streams asked for.
        SolverError: the solver failed.
    """
    movable = [flow for flow in state.flows if flow.objective == objective and not state.lost_links(flow)]
    kept = [flow for flow in state.flows if flow not in movable]
    demands = [_running_demand(flow, state.settings.ack_ratio) for flow in movable]
    if newcomer is None:
        solution = _solve(state, kept, demands, objective) if demands else None
        return Optimum({} if solution is None else _running_rates(movable, solution), ())
    demand = _new_demand(newcomer, state.settings.ack_ratio)
    solution = _solve(state, kept, [*demands, demand], objective)
    if newcomer.streams is not None and solution.paths[_NEWCOMER]:
        fixed = _exactly(state, newcomer, newcomer.streams, solution.paths[_NEWCOMER])
        demand = _new_demand(newcomer, state.settings.ack_ratio, fixed)
        solution = _solve(state, kept, [*demands, demand], objective)
        paths = _planned_exactly(state, newcomer, fixed, solution.paths[_NEWCOMER])
    else:
        paths = _planned(newcomer, solution.paths[_NEWCOMER])
    return Optimum(_running_rates(movable, solution), paths)


def has_path(state: State, source: str, destination: str) -> bool:
    """Return whether the links that are up lead from one host to the other."""
    graph = _graph(state, {source, destination})
    return source in graph and destination in graph and bool(nx.has_path(graph, source, destination))


def shortest_paths(state: State, source: str, destination: str, count: int) -> list[tuple[str, ...]]:
    """Return up to so many loop-free paths from one host to another, the least delay first."""
    paths = nx.shortest_simple_paths(
        _graph(state, {source, destination}), source, destination, weight="delay_s"
    )
    return [tuple(path) for path in islice(paths, count)]


def _graph(state: State, hosts: Collection[str]) -> nx.DiGraph:
    """Return the links that are up, with these hosts alone: hosts forward nothing."""
    graph = nx.DiGraph()
    for arc in state.live.up_arcs():
        if not any(state.live.is_host(node) and node not in hosts for node in (arc.tail, arc.head)):
            graph.add_edge(arc.tail, arc.head, delay_s=arc.delay_s)
    return graph


def _solve(state: State, kept: list[Flow], demands: list[Demand], objective: str) -> Allocation:
    loads = arc_loads(kept, state.settings.ack_ratio)
    edges = tuple(
        Edge(name, arc.tail, arc.head, max(0.0, arc.rate_bps - loads.get(name, 0.0)), arc.delay_s)
        for name, arc in state.live.arcs.items()
        if state.live.arc_is_up(name)
    )
    reverse = {edge.id: arc_name(edge.head, edge.tail) for edge in edges}
    nodes = {node for edge in edges for node in (edge.tail, edge.head)}
    hosts = frozenset(node for node in nodes if state.live.is_host(node))
    return solve(Problem(edges, tuple(demands), reverse, hosts), objective)


def _running_demand(flow: Flow, ack_ratio: float) -> Demand:
    return Demand(
        id=flow.id,
        source=flow.source.name,
        destination=flow.destination.name,
        rate_bps=flow.framing.wire_bps(flow.requested_bps, len(flow.streams)),
        fixed_paths=tuple(edges_of(stream.path) for stream in flow.streams),
        ack_ratio=ack_ratio,
    )


def _new_demand(
    newcomer: Newcomer, ack_ratio: float, fixed: tuple[tuple[str, ...], ...] | None = None
) -> Demand:
    most = newcomer.streams or newcomer.max_paths
    return Demand(
        id=_NEWCOMER,
        source=newcomer.source,
        destination=newcomer.destination,
        # Unless it is sure to be plain TCP, it must be able to afford the identifiers.
        rate_bps=newcomer.framing.wire_bps(newcomer.rate_bps, 1 if most == 1 else 2),
        max_paths=None if fixed else most,
        fixed_paths=tuple(edges_of(path) for path in fixed) if fixed else None,
        ack_ratio=ack_ratio,
    )


def _running_rates(flows: list[Flow], solution: Allocation) -> dict[str, tuple[float, ...]]:
    rates = {}
    for flow in flows:
        wire = {path.edges: path.rate_bps for path in solution.paths[flow.id]}
        goodputs = [
            flow.framing.goodput_bps(wire.get(edges_of(stream.path), 0.0), len(flow.streams))
            for stream in flow.streams
        ]
        rates[flow.id] = _tidy(goodputs, flow.requested_bps)
    return rates


def _planned(newcomer: Newcomer, found: tuple[PathRate, ...]) -> tuple[PlannedPath, ...]:
    total_bps = sum(path.rate_bps for path in found)
    used = [path for path in found if path.rate_bps > _NEGLIGIBLE_SHARE * total_bps]
    used.sort(key=lambda path: (path.delay_s, path.nodes))
    goodputs = [newcomer.framing.goodput_bps(path.rate_bps, len(used)) for path in used]
    rates = _tidy(goodputs, newcomer.rate_bps)
    return tuple(
        PlannedPath(path.nodes, rate_bps, path.delay_s) for path, rate_bps in zip(used, rates, strict=True)
    )


def _exactly(
    state: State, newcomer: Newcomer, count: int, found: tuple[PathRate, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the paths found, filled up with the shortest others to the number asked for."""
    chosen = [path.nodes for path in found]
    for nodes in shortest_paths(state, newcomer.source, newcomer.destination, count + len(chosen)):
        if len(chosen) < count and nodes not in chosen:
            chosen.append(nodes)
    if len(chosen) < count:
        raise InfeasibleRequest(
            "streams",
            f"{count} streams need as many paths, but only {len(chosen)} lead from {newcomer.source} to "
            f"{newcomer.destination}; ask for at most {len(chosen)}",
        )
    return tuple(chosen)


def _planned_exactly(
    state: State, newcomer: Newcomer, fixed: tuple[tuple[str, ...], ...], found: tuple[PathRate, ...]
) -> tuple[PlannedPath, ...]:
    """Return all the paths asked for, those that carry nothing included."""
    wire = {path.nodes: path.rate_bps for path in found}
    goodputs = [newcomer.framing.goodput_bps(wire.get(nodes, 0.0), len(fixed)) for nodes in fixed]
    rates = _tidy(goodputs, newcomer.rate_bps)
    planned = [
        PlannedPath(nodes, rate_bps, sum(state.live.arcs[edge].delay_s for edge in edges_of(nodes)))
        for nodes, rate_bps in zip(fixed, rates, strict=True)
    ]
    return tuple(sorted(planned, key=lambda path: (path.delay_s, path.nodes)))


def _tidy(goodputs: list[float], requested_bps: float) -> tuple[float, ...]:
    """Scale rates down to what was asked for: a single path was planned with identifiers it does not need."""
    total_bps = sum(goodputs)
    scale = requested_bps / total_bps if total_bps > requested_bps else 1.0
    return tuple(round(rate_bps * scale, 3) for rate_bps in goodputs)
