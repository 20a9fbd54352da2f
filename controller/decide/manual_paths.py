"""Paths that a client gives by hand: do they exist, and is there room for them?"""

from __future__ import annotations

from controller.decide.ack_paths import SHORTEST, ack_path
from controller.decide.admission import Wanted
from controller.decide.planning import Optimum
from controller.errors import Conflict, InfeasibleRequest, InvalidRequest
from controller.model.requests import RequestedPath
from controller.state.flow import Slot
from controller.state.flow_table import by_arc, path_loads
from controller.state.live_network import arcs_of
from controller.state.state import State
from controller.wire import Framing

_CAPACITY_SLACK = 5e-4
"""How far rates given by hand may exceed a link: published figures are rounded (8.95 of 8.949 Mbit/s)."""

_SUM_SLACK = 1e-3
"""How far their sum may differ from the rate asked for, for the same reason."""


def check_paths(state: State, wanted: Wanted) -> Optimum:
    """Return the paths as they will be used, in the order given.

    Raises:
        InvalidRequest: a path does not lead from the source to the destination, is there twice, the rates do
            not add up, or the acknowledgements are to take a path that is not there.
        InfeasibleRequest: a link of a path is down.
        Conflict: other flows hold the capacity of a link.
    """
    request, source, destination = wanted.request, wanted.source.name, wanted.destination.name
    rate_bps = request.rate_bps
    planned = tuple(
        _check_path(state, f"paths[{i}].nodes", path, source, destination)
        for i, path in enumerate(request.paths)
    )
    if len({slot.path for slot in planned}) < len(planned):
        raise InvalidRequest(
            "paths", "the same path is given twice; give each path once with the sum of its rates"
        )
    total_bps = sum(path.rate_bps for path in planned)
    if rate_bps is not None and abs(total_bps - rate_bps) > _SUM_SLACK * rate_bps:
        raise InvalidRequest(
            "rate_bps",
            f"is {rate_bps:g} bit/s but the paths add up to {total_bps:g}; leave it out or make them agree",
        )
    optimum = Optimum({}, planned)
    if request.splitting != "streams":
        nodes = tuple(slot.path for slot in planned)
        acks = ack_path(state, request.ack_path or SHORTEST, source, destination, nodes)
        optimum = Optimum({}, planned, acks)
    _check_capacity(state, optimum, wanted.framing)
    return optimum


def _check_path(state: State, field: str, path: RequestedPath, source: str, destination: str) -> Slot:
    nodes, live = path.nodes, state.live
    if nodes[0] != source or nodes[-1] != destination:
        raise InvalidRequest(
            field, f"leads from {nodes[0]} to {nodes[-1]}, not from {source} to {destination}"
        )
    if len(set(nodes)) < len(nodes):
        raise InvalidRequest(field, "visits a node twice")
    for arc in arcs_of(nodes):
        if arc not in live.arcs:
            raise InvalidRequest(field, f"there is no link {arc} in the topology")
    for node in nodes[1:-1]:
        if live.is_host(node):
            raise InvalidRequest(field, f"passes through {node}, which is a host and forwards nothing")
    lost = live.lost_links(nodes)
    if lost:
        raise InfeasibleRequest(field, f"link {lost[0]} is down")
    return Slot(nodes, path.rate_bps, live.delay_s(nodes))


def _check_capacity(state: State, optimum: Optimum, framing: Framing) -> None:
    """Raise Conflict for the first link that the paths and the running flows would overload."""
    paths, acks = optimum.paths, optimum.ack_path
    wire = framing.wire_per_goodput(len(paths) if acks is None else 1)
    ack_ratio = state.settings.ack_ratio * framing.ack_scale
    wanted = by_arc(
        load for slot in paths for load in path_loads(slot.path, slot.rate_bps * wire, ack_ratio, acks)
    )
    for name, wire_bps in wanted.items():
        capacity_bps = state.allocatable_bps(name)
        free_bps = capacity_bps - state.flows.load_bps(name)
        if wire_bps > free_bps + _CAPACITY_SLACK * capacity_bps:
            raise Conflict(
                "paths",
                f"link {name} has {max(0.0, free_bps):g} of {capacity_bps:g} bit/s free, the paths need "
                f"{wire_bps:g} (with headers and acknowledgements)",
            )
