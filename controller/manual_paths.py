"""Paths that a client gives by hand: do they exist, and is there room for them?"""

from __future__ import annotations

from itertools import pairwise

from controller.allocation import PlannedPath
from controller.errors import Conflict, InfeasibleRequest, InvalidRequest
from controller.flows import arc_loads, edges_of
from controller.hosts import Host
from controller.live_network import arc_name
from controller.requests import RequestedPath
from controller.state import State
from controller.wire import Framing

__all__ = ["check_paths"]

_CAPACITY_SLACK = 5e-4
"""How far rates given by hand may exceed a link: published figures are rounded (8.95 of 8.949 Mbit/s)."""

_SUM_SLACK = 1e-3
"""How far their sum may differ from the rate asked for, for the same reason."""


def check_paths(
    state: State,
    source: Host,
    destination: Host,
    paths: tuple[RequestedPath, ...],
    rate_bps: float | None,
    framing: Framing,
) -> tuple[PlannedPath, ...]:
    """Return the paths as they will be used, in the order given.

    Raises:
        InvalidRequest: a path does not lead from the source to the destination, is there twice, or the rates
        do not
            add up.
        InfeasibleRequest: a link of a path is down.
        Conflict: other flows hold the capacity of a link.
    """
    planned = tuple(
        _check_path(state, f"paths[{i}].nodes", path, source.name, destination.name)
        for i, path in enumerate(paths)
    )
    if len({path.nodes for path in planned}) < len(planned):
        raise InvalidRequest(
            "paths", "the same path is given twice; give each path once with the sum of its rates"
        )
    total_bps = sum(path.rate_bps for path in planned)
    if rate_bps is not None and abs(total_bps - rate_bps) > _SUM_SLACK * rate_bps:
        raise InvalidRequest(
            "rate_bps",
            f"is {rate_bps:g} bit/s but the paths add up to {total_bps:g}; leave it out or make them agree",
        )
    _check_capacity(state, planned, framing)
    return planned


def _check_path(state: State, field: str, path: RequestedPath, source: str, destination: str) -> PlannedPath:
    nodes, live = path.nodes, state.live
    if nodes[0] != source or nodes[-1] != destination:
        raise InvalidRequest(
            field, f"leads from {nodes[0]} to {nodes[-1]}, not from {source} to {destination}"
        )
    if len(set(nodes)) < len(nodes):
        raise InvalidRequest(field, "visits a node twice")
    for edge in edges_of(nodes):
        if edge not in live.arcs:
            raise InvalidRequest(field, f"there is no link {edge} in the topology")
    for node in nodes[1:-1]:
        if live.is_host(node):
            raise InvalidRequest(field, f"passes through {node}, which is a host and forwards nothing")
    lost = live.lost_links(nodes)
    if lost:
        raise InfeasibleRequest(field, f"link {lost[0]} is down")
    return PlannedPath(nodes, path.rate_bps, sum(live.arcs[edge].delay_s for edge in edges_of(nodes)))


def _check_capacity(state: State, paths: tuple[PlannedPath, ...], framing: Framing) -> None:
    """Raise Conflict for the first link that the paths and the running flows would overload."""
    ack_ratio = state.settings.ack_ratio
    held = arc_loads(state.flows, ack_ratio)
    wanted: dict[str, float] = {}
    for path in paths:
        wire_bps = framing.wire_bps(path.rate_bps, len(paths))
        for a, b in pairwise(path.nodes):
            wanted[arc_name(a, b)] = wanted.get(arc_name(a, b), 0.0) + wire_bps
            wanted[arc_name(b, a)] = wanted.get(arc_name(b, a), 0.0) + wire_bps * ack_ratio
    for name, wire_bps in wanted.items():
        capacity_bps = state.live.arcs[name].rate_bps
        free_bps = capacity_bps - held.get(name, 0.0)
        if wire_bps > free_bps + _CAPACITY_SLACK * capacity_bps:
            raise Conflict(
                "paths",
                f"link {name} has {max(0.0, free_bps):g} of {capacity_bps:g} bit/s free, the paths need "
                f"{wire_bps:g} (with headers and acknowledgements)",
            )
