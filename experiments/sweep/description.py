"""A point of a sweep as the simulator's description (docs/simulator.md)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from experiments.sweep.offer import LEAST_RATE_BPS, MSS_BYTES, Offered
from experiments.sweep.plan import Conditions, Point
from experiments.sweep.routes import Routes
from topologies.model import Network

BITS_OF_A_WRITE = MSS_BYTES * 8


def admitted_bps(flow: Offered, protocol: str) -> float:
    """Return the goodput at which a flow's application may write: without allocation, what it asks for."""
    return flow.allocated_bps if protocol == "mstcp" else flow.requested_bps


def describe(
    conditions: Conditions, point: Point, network: Network, routes: Routes, flows: Iterable[Offered]
) -> dict[str, Any]:
    """Return the description of a point; flows that are admitted nothing are left out."""
    return {
        "format": 1,
        "seed": point.seed,
        "warm_up_s": conditions.warm_up_s,
        "duration_s": conditions.duration_s,
        "links": [link.model_dump() for link in network.links],
        "tcp": {"profile": "linux", "mss_bytes": MSS_BYTES},
        "flows": [
            _flow(conditions, point, routes, flow)
            for flow in flows
            if admitted_bps(flow, point.protocol) >= LEAST_RATE_BPS
        ],
    }


def _flow(conditions: Conditions, point: Point, routes: Routes, flow: Offered) -> dict[str, Any]:
    rate_bps = admitted_bps(flow, point.protocol)
    return {
        "name": flow.name,
        "src": flow.src,
        "dst": flow.dst,
        "protocol": "mstcp" if point.protocol == "mstcp" else "tcp",
        "traffic": {"kind": "cbr", "rate_bps": rate_bps},
        "start_s": _start_s(conditions, point, flow, rate_bps),
        "paths": _paths(point, routes, flow),
    }


def _paths(point: Point, routes: Routes, flow: Offered) -> list[dict[str, Any]]:
    if point.protocol == "mstcp":
        return [{"path": path.nodes, "rate_bps": path.rate_bps} for path in flow.paths]
    if point.protocol == "ospf":
        return [{"path": routes.shortest(flow.src, flow.dst)}]
    return [{"path": routes.hashed(flow.src, flow.dst, f"{point.seed} {flow.name}")}]


def _start_s(conditions: Conditions, point: Point, flow: Offered, rate_bps: float) -> float:
    """Draw a flow's start.

    Over the interval of its writes at least, so that slow flows write in every span in proportion; over half
    the warm-up at least, so that not all begin at once.
    """
    phase = random.Random(f"{point.seed} {flow.name}").random()
    return phase * max(conditions.warm_up_s / 2, BITS_OF_A_WRITE / rate_bps)
