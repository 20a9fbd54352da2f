"""What a request would be given: admission, paths and rates, without changing anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from gomr import OBJECTIVES

from controller.compile.split import TAGS, Split
from controller.decide.ack_paths import SHORTEST
from controller.decide.admission import Wanted, admit, check_ports, choose_source_ports, max_streams
from controller.decide.live_optima import LiveOptima
from controller.decide.manual_paths import check_paths
from controller.decide.planning import NEGLIGIBLE_SHARE, Optimum, on_a_free_path, optimise
from controller.errors import InfeasibleRequest
from controller.model.requests import FlowRequest
from controller.state.flow import Flow, Slot, Stream
from controller.state.state import State


class Granted(NamedTuple):
    """What a request is given: a flow, whose time is still to begin, and what running flows get beside it."""

    flow: Flow
    rates: Mapping[str, tuple[float, ...]]


def may_share(request: FlowRequest, objective: str) -> bool:
    """Return whether a request is solved for together with others: its paths are for the optimum to choose.

    Under fairness, limits on the paths of several new flows take a search that is longer than their solves.
    """
    if OBJECTIVES[objective].is_fair and (request.source_ports is not None or request.max_paths is not None):
        return False
    return not request.paths and request.streams is None and request.splitting == "streams"


def grant_shared(state: State, wanted: Wanted, paths: tuple[Slot, ...]) -> Granted:
    """Return what a request is given of an optimum that it shares with others.

    The state has those of the others that have been granted already.

    Raises:
        Conflict: one of the others has its ports.
        InfeasibleRequest: the optimum has nothing for it.
    """
    check_ports(state, wanted.request, wanted.source, wanted.destination)
    _check_granted(paths, wanted)
    return _granted(state, wanted, wanted.requested_bps, Optimum({}, paths))


def grant(
    state: State,
    optima: LiveOptima,
    request: FlowRequest,
    flow_id: str,
    number: int,
    is_settled: bool,
    may_solve: bool = True,
) -> Granted | None:
    """Find out what a request would be given.

    The state is not changed. `is_settled`: the running flows have their optimum. Returns None if it takes a
    solve that may not be.

    Raises:
        InvalidRequest, NotFound, Conflict, InfeasibleRequest: the request is refused.
        SolverError: the solver failed.
    """
    wanted = admit(state, request, flow_id, number)
    if wanted.objective is None:
        optimum = check_paths(state, wanted)
        return _granted(state, wanted, sum(path.rate_bps for path in optimum.paths), optimum)
    new = wanted.new_flow()
    free = on_a_free_path(state, wanted.objective, new) if is_settled else None
    if free is None and not may_solve:
        return None
    optimum = free or optimise(state, optima, wanted.objective, new)
    _check_granted(optimum.paths, wanted)
    return _granted(state, wanted, wanted.requested_bps, optimum)


def _granted(state: State, wanted: Wanted, requested_bps: float, optimum: Optimum) -> Granted:
    request, paths = wanted.request, optimum.paths
    split = _split(state, request, optimum, wanted.number)
    ports = choose_source_ports(state, request, wanted.source, 1 if split is not None else len(paths))
    spare_ports = (request.source_ports or ())[len(ports) :] if request.may_grow else ()
    streams = zip(ports if split is None else ports * len(paths), paths, strict=True)
    flow = Flow(
        number=wanted.number,
        id=wanted.id,
        source=wanted.source,
        destination=wanted.destination,
        destination_port=request.destination_port,
        protocol=request.protocol,
        requested_bps=requested_bps,
        framing=wanted.framing,
        objective=wanted.objective,
        streams=[Stream(port, *slot) for port, slot in streams],
        lease_s=request.lease_s or state.settings.lease_s,
        expires_at=math.inf,
        owner="",
        split=split,
        given_bps=tuple(path.rate_bps for path in paths) if wanted.objective is None else None,
        max_streams=max_streams(request),
        spare_ports=spare_ports,
    )
    return Granted(flow, optimum.rates)


def _split(state: State, request: FlowRequest, optimum: Optimum, number: int) -> Split | None:
    if request.splitting == "streams" or optimum.ack_path is None:
        return None
    tag = state.flows.free_tag(number)
    if tag is None:
        raise InfeasibleRequest(
            "splitting", f"{TAGS} split flows run already and stamps have no room for more; release one"
        )
    return Split(request.splitting, tag, request.ack_path or SHORTEST, optimum.ack_path)


def _check_granted(paths: tuple[Slot, ...], wanted: Wanted) -> None:
    if sum(path.rate_bps for path in paths) <= NEGLIGIBLE_SHARE * wanted.requested_bps:
        raise InfeasibleRequest(
            "rate_bps",
            f"no capacity is free from {wanted.source.name} to {wanted.destination.name}; "
            "release a flow first (see GET /v1/links)",
        )
