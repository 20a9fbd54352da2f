"""From flows to a routing problem, and from its solution to the rates of streams.

One solve covers the flows that share an objective: running ones keep their paths but may get other rates, so
that the whole is optimal. Flows with another objective, with paths given by hand or over a lost link keep
what they have; it is taken off the links' capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from gomr import OBJECTIVES, Allocation, Demand, Edge, PathRate, Problem
from gomr.paths.finder import PathFinder

from controller.decide.ack_paths import SHORTEST, ack_path
from controller.decide.live_optima import LiveOptima
from controller.errors import InfeasibleRequest
from controller.state.flow import Flow, Slot
from controller.state.flow_table import arc_loads
from controller.state.live_network import arc_name, arcs_of
from controller.state.state import State
from controller.wire import Framing

_Nodes = tuple[str, ...]
_Rates = dict[str, tuple[float, ...]]  # goodputs of streams, by flow

NEGLIGIBLE_SHARE = 1e-6
"""A path with less than this share of a flow's rate is the solver's rounding, not a path."""


SEPARABLE = tuple(name for name, one in OBJECTIVES.items() if not (one.evens_load or one.evens_split))
"""Objectives in which a flow that takes nothing from another changes nothing for it."""

_MARGIN = 1e-6
"""Share of a link that is left to the exact solve: sums of thousands of rates are not exact."""


@dataclass(frozen=True)
class NewFlow:
    """A requested flow.

    It is to have `max_paths` at most, `streams` exactly. `acks` is the path of a split flow's
    acknowledgements (`controller.decide.ack_paths`); None: a connection for each path, and acknowledgements
    on its reverse.
    """

    id: str
    source: str
    destination: str
    rate_bps: float
    framing: Framing
    max_paths: int | None
    streams: int | None
    acks: str | None = None
    may_grow: bool = False

    def framed_streams(self, paths: int) -> int:
        """Return for how many TCP connections its bytes are framed over a number of paths."""
        if self.acks is not None:
            return 1
        return max(2, paths) if self.may_grow else paths


@dataclass(frozen=True)
class Optimum:
    """New goodputs of running flows, by stream, and the paths of the new flow (empty: none is free).

    `ack_path` leads from the destination to the source; None where each path has its own way back.
    """

    rates: Mapping[str, tuple[float, ...]]
    paths: tuple[Slot, ...]
    ack_path: tuple[str, ...] | None = None


def optimise(state: State, optima: LiveOptima, objective: str, new_flow: NewFlow | None = None) -> Optimum:
    """Find the global optimum of the flows with this objective, and of a new one.

    Raises:
        InfeasibleRequest: there are fewer paths than the streams asked for.
        InvalidRequest: the acknowledgements are to go back along a path that the flow does not have.
        SolverError: the solver failed.
    """
    if new_flow is None:
        return Optimum(_solve_with(state, optima, objective, ())[0], ())
    rates, found, (fixed,), (acks,) = _solve_with(state, optima, objective, (new_flow,))
    used = found[new_flow.id]
    paths = _planned_exactly(state, new_flow, fixed, used) if fixed else _planned(new_flow, used)
    return Optimum(rates, paths, acks)


def optimise_new_flows(
    state: State, optima: LiveOptima, objective: str, new_flows: Sequence[NewFlow]
) -> tuple[Mapping[str, tuple[float, ...]], dict[str, tuple[Slot, ...]]]:
    """Find the global optimum of the flows with this objective and of several new ones, by one solve.

    Each is a connection for each path, over as many as the optimum takes. Returns new goodputs of the running
    flows, by stream, and the paths of each new flow (none: none is free).

    Raises:
        SolverError: the solver failed.
    """
    rates, found, *_ = _solve_with(state, optima, objective, new_flows)
    return rates, {new_flow.id: _planned(new_flow, found[new_flow.id]) for new_flow in new_flows}


def on_a_free_path(state: State, objective: str, new_flow: NewFlow) -> Optimum | None:
    """Return the optimum where the new flow fits on its path of least delay beside all others; else None.

    It is the optimum without a solve: the running flows had theirs with this capacity free, so none of them
    gains by it, and the new flow can have no more, nor sooner. That holds for objectives in which a flow
    counts for itself, as long as the running flows have their optimum. (A flow over one path leaves the room
    of the identifiers that it was planned with; the next solve gives it to others.)
    """
    if objective not in SEPARABLE or new_flow.streams is not None or new_flow.acks is not None:
        return None
    found = state.paths.with_delay(new_flow.source, new_flow.destination)
    if found is None:
        return None
    nodes, delay_s = found
    if not _Room(state).take(nodes, new_flow.framing, new_flow.rate_bps, new_flow.max_paths):
        return None
    return Optimum({}, (Slot(nodes, new_flow.rate_bps, delay_s),))


def on_free_paths(state: State, objective: str, flows: Sequence[Flow]) -> dict[str, tuple[Slot, ...]]:
    """Return what flows that carry nothing are to have, where all fit on their paths of least delay.

    It is their optimum beside the others, as in `on_a_free_path`. Where one does not fit, nothing.
    """
    if objective not in SEPARABLE:
        return {}
    room, found = _Room(state), {}
    for flow in flows:
        path = state.paths.with_delay(flow.source.name, flow.destination.name)
        if flow.split is not None or path is None:
            return {}
        nodes, delay_s = path
        if not room.take(nodes, flow.framing, flow.requested_bps, flow.most_paths, flow.framed_streams):
            return {}
        rest = [Slot(nodes, 0.0, delay_s) for _ in flow.streams[1:]]
        found[flow.id] = (Slot(nodes, flow.requested_bps, delay_s), *rest)
    return found


class _Room:
    """What is free on arcs beside all flows, and beside those that have taken of it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._free_bps: dict[str, float] = {}

    def take(
        self,
        nodes: tuple[str, ...],
        framing: Framing,
        rate_bps: float,
        most_paths: int | None,
        framed_streams: int = 1,
    ) -> bool:
        """Take what a goodput needs on a path; returns False where there is not enough."""
        # As it is accounted for while it is planned: it may need identifiers.
        needed_bps = framing.wire_bps(rate_bps, 1 if most_paths == 1 else 2)
        taken_bps = framing.wire_bps(rate_bps, framed_streams)
        ratio = self._state.settings.ack_ratio * framing.ack_scale
        offered_bps, load_bps, free_bps = self._state.offered_bps, self._state.flows.load_bps, self._free_bps
        next_hops = ((nodes, needed_bps, taken_bps), (nodes[::-1], needed_bps * ratio, taken_bps * ratio))
        for way, needs_bps, takes_bps in next_hops:
            for arc in arcs_of(way):
                left_bps = free_bps.get(arc)
                if left_bps is None:
                    left_bps = (1 - _MARGIN) * offered_bps(arc) - load_bps(arc)
                if needs_bps > left_bps:
                    return False
                free_bps[arc] = left_bps - takes_bps
        return True


def replan(
    state: State, optima: LiveOptima, objective: str, flows: Sequence[Flow]
) -> tuple[dict[str, tuple[Slot, ...]], dict[str, tuple[float, ...]]]:
    """Find the optimum in which some running flows may take any paths, by one solve for all.

    Returns:
        What each stream of these flows is to have, by the flow's id (missing: nothing is free for it); and
        the goodputs of the other flows with the objective, by stream. A flow keeps its streams: those for
        which there is no path of their own have rate 0 on one that another stream takes. One that may have
        more gets slots beyond those that it has.

    Raises:
        SolverError: the solver failed.
    """
    free = [flow for flow in flows if has_path(state, flow.source.name, flow.destination.name)]
    ids = frozenset(flow.id for flow in flows)
    rates, found, *_ = _solve_with(state, optima, objective, [_as_new_flow(flow) for flow in free], ids)
    return {flow.id: _slots(flow, found[flow.id]) for flow in free if _used(found[flow.id])}, rates


def _solve_with(
    state: State,
    optima: LiveOptima,
    objective: str,
    new_flows: Sequence[NewFlow],
    replanned: frozenset[str] = frozenset(),
) -> tuple[_Rates, Mapping[str, tuple[PathRate, ...]], list[tuple[_Nodes, ...]], list[_Nodes | None]]:
    """Solve for the running flows with an objective, and for new ones with free paths.

    Returns:
        Goodputs of the running flows, by stream, but of those in `replanned`; the paths found, by flow; and
        of each new flow the paths that were settled before the rates (none: they are those found), and the
        path of its acknowledgements.
    """
    flows = [f for f in state.flows if f.objective == objective and f.id not in replanned and not f.reserved]
    running = [flow for flow in flows if not state.lost_links(flow)]
    ratio, solved = state.settings.ack_ratio, replanned.union(flow.id for flow in running)
    kept = [flow for flow in state.flows if flow.id not in solved]
    demands = [_running_demand(flow, ratio) for flow in running]
    # For those whose acknowledgements' path does not depend on the flow's own paths.
    acks = [_ack_path(state, each, ()) if each.acks == SHORTEST else None for each in new_flows]
    wanted = [_new_demand(new_flow, ratio, path) for new_flow, path in zip(new_flows, acks, strict=True)]
    if not demands and not wanted:
        return {}, {}, [], []
    solution = _solve(state, optima, kept, [*demands, *wanted], objective)
    settled = [_settled(state, new_flow, solution.paths[new_flow.id]) for new_flow in new_flows]
    if any(settled):
        for number, (new_flow, fixed) in enumerate(zip(new_flows, settled, strict=True)):
            if fixed:
                acks[number] = _ack_path(state, new_flow, fixed)
                wanted[number] = _new_demand(new_flow, ratio, acks[number], fixed)
        solution = _solve(state, optima, kept, [*demands, *wanted], objective)
    return _running_rates(running, solution), solution.paths, settled, acks


def _as_new_flow(flow: Flow) -> NewFlow:
    return NewFlow(
        id=flow.id,
        source=flow.source.name,
        destination=flow.destination.name,
        rate_bps=flow.requested_bps,
        framing=flow.framing,
        max_paths=flow.most_paths,
        streams=None,
        acks=None if flow.split is None else flow.split.acks,
        may_grow=flow.max_streams > 0,
    )


def _slots(flow: Flow, path_rates: tuple[PathRate, ...]) -> tuple[Slot, ...]:
    """Give each stream one of the paths found: its own where that is among them.

    Paths beyond its streams are for streams to be added, as far as it may have more.
    """
    found = _slots_of(_used(path_rates), flow.framing, flow.framed_streams, flow.requested_bps)
    left = {slot.path: slot for slot in found}
    spare = found[0]._replace(rate_bps=0.0)
    own = [left.pop(stream.path, None) for stream in flow.streams]
    others = iter(left.values())
    slots = [slot if slot is not None else next(others, spare) for slot in own]
    return (*slots, *islice(others, flow.most_paths - len(slots)))


def has_path(state: State, source: str, destination: str) -> bool:
    """Return whether the links that are up lead from one host to the other."""
    # No network file has parts that are not connected.
    return state.live.is_whole or state.paths.least_delay(source, destination) is not None


def shortest_paths(state: State, source: str, destination: str, count: int) -> list[tuple[str, ...]]:
    """Return up to `count` loop-free paths from one host to another, the least delay first."""
    others = set(state.live.network.hosts) - {source, destination}  # which forward nothing
    edges = tuple(
        Edge(arc_name(arc.tail, arc.head), arc.tail, arc.head, 1.0, arc.delay_s)
        for arc in state.live.up_arcs()
        if arc.tail not in others and arc.head not in others
    )
    if not edges:
        return []
    problem = Problem(edges, (), {}, frozenset({source, destination}))
    paths = PathFinder(problem).shortest(source, destination, count)
    return [(path[0].tail, *(edge.head for edge in path)) for path in paths]


def _solve(
    state: State, optima: LiveOptima, kept: list[Flow], demands: list[Demand], objective: str
) -> Allocation:
    loads = arc_loads(kept, state.settings.ack_ratio)
    free_bps = {
        name: max(0.0, state.offered_bps(name) - loads.get(name, 0.0))
        for name in state.live.arcs
        if state.live.arc_is_up(name)
    }
    return optima.solve(objective, demands, free_bps)


def _ack_path(state: State, new_flow: NewFlow, paths: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
    if new_flow.acks is None:
        return None
    return ack_path(state, new_flow.acks, new_flow.source, new_flow.destination, paths)


def _settled(
    state: State, new_flow: NewFlow, path_rates: tuple[PathRate, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the paths that have to be settled before the rates can be, the least delay first; or none."""
    if not path_rates:
        return ()
    if new_flow.streams is not None:
        return _exactly(state, new_flow, new_flow.streams, path_rates)
    if new_flow.acks is not None and new_flow.acks != SHORTEST:
        # Which path carries the acknowledgements is only known once the paths are.
        return tuple(path.nodes for path in _used(path_rates))
    return ()


def _running_demand(flow: Flow, ack_ratio: float) -> Demand:
    return Demand(
        id=flow.id,
        source=flow.source.name,
        destination=flow.destination.name,
        rate_bps=flow.framing.wire_bps(flow.requested_bps, flow.framed_streams),
        fixed_paths=tuple(dict.fromkeys(flow.arcs)),
        ack_ratio=ack_ratio * flow.framing.ack_scale,
        ack_edges=None if flow.split is None else arcs_of(flow.split.ack_path),
    )


def _new_demand(
    new_flow: NewFlow,
    ack_ratio: float,
    acks: tuple[str, ...] | None,
    fixed: tuple[tuple[str, ...], ...] = (),
) -> Demand:
    most = new_flow.streams or new_flow.max_paths
    return Demand(
        id=new_flow.id,
        source=new_flow.source,
        destination=new_flow.destination,
        # Unless it is sure to be plain TCP, it must be able to afford the identifiers.
        rate_bps=new_flow.framing.wire_bps(new_flow.rate_bps, new_flow.framed_streams(1 if most == 1 else 2)),
        max_paths=None if fixed else most,
        fixed_paths=tuple(arcs_of(path) for path in fixed) if fixed else None,
        ack_ratio=ack_ratio * new_flow.framing.ack_scale,
        ack_edges=arcs_of(acks) if acks else None,
    )


def _running_rates(flows: list[Flow], solution: Allocation) -> dict[str, tuple[float, ...]]:
    rates = {}
    for flow in flows:
        wire = {path.edges: path.rate_bps for path in solution.paths[flow.id]}
        # Where several streams share a path, the first has its rate.
        goodputs = [flow.framing.goodput_bps(wire.pop(arcs, 0.0), flow.framed_streams) for arcs in flow.arcs]
        rates[flow.id] = _tidy(goodputs, flow.requested_bps)
    return rates


def _used(path_rates: tuple[PathRate, ...]) -> list[PathRate]:
    """Return the paths that are more than rounding, the least delay first."""
    total_bps = sum(path.rate_bps for path in path_rates)
    used = [path for path in path_rates if path.rate_bps > NEGLIGIBLE_SHARE * total_bps]
    return sorted(used, key=lambda path: (path.delay_s, path.nodes))


def _planned(new_flow: NewFlow, path_rates: tuple[PathRate, ...]) -> tuple[Slot, ...]:
    used = _used(path_rates)
    return _slots_of(used, new_flow.framing, new_flow.framed_streams(len(used)), new_flow.rate_bps)


def _slots_of(
    paths: Sequence[PathRate], framing: Framing, framed_streams: int, requested_bps: float
) -> tuple[Slot, ...]:
    """Return what paths carry, as goodput."""
    rates = _tidy([framing.goodput_bps(path.rate_bps, framed_streams) for path in paths], requested_bps)
    return tuple(Slot(path.nodes, rate, path.delay_s) for path, rate in zip(paths, rates, strict=True))


def _exactly(
    state: State, new_flow: NewFlow, count: int, path_rates: tuple[PathRate, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the paths found, filled up with the shortest others to the number asked for."""
    chosen = [path.nodes for path in path_rates]
    for nodes in shortest_paths(state, new_flow.source, new_flow.destination, count + len(chosen)):
        if len(chosen) < count and nodes not in chosen:
            chosen.append(nodes)
    if len(chosen) < count:
        raise InfeasibleRequest(
            "streams",
            f"{count} streams need as many paths, but only {len(chosen)} lead from {new_flow.source} to "
            f"{new_flow.destination}; ask for at most {len(chosen)}",
        )
    return tuple(sorted(chosen, key=lambda nodes: (state.live.delay_s(nodes), nodes)))


def _planned_exactly(
    state: State, new_flow: NewFlow, fixed: tuple[tuple[str, ...], ...], path_rates: tuple[PathRate, ...]
) -> tuple[Slot, ...]:
    """Return all the paths asked for, those that carry nothing included."""
    wire = {path.nodes: path.rate_bps for path in path_rates}
    connections = new_flow.framed_streams(len(fixed))
    goodputs = [new_flow.framing.goodput_bps(wire.get(nodes, 0.0), connections) for nodes in fixed]
    rates = _tidy(goodputs, new_flow.rate_bps)
    pairs = zip(fixed, rates, strict=True)
    return tuple(Slot(nodes, rate_bps, state.live.delay_s(nodes)) for nodes, rate_bps in pairs)


def _tidy(goodputs: list[float], requested_bps: float) -> tuple[float, ...]:
    """Scale rates down to what was asked for: a single path was planned with identifiers it does not need."""
    total_bps = sum(goodputs)
    scale = requested_bps / total_bps if total_bps > requested_bps else 1.0
    return tuple(round(rate_bps * scale, 3) for rate_bps in goodputs)
