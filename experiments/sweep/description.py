"""A point of a sweep as the simulator's description (docs/simulator.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments import protocols
from experiments.engines.sim.description import way
from experiments.engines.sim.routing import Route
from experiments.model.plan import RunPlan
from experiments.model.scenario import Case, Flow, Scenario
from experiments.sweep.offered_load import FRAMING, MIN_RATE_BPS, MSS_BYTES, OfferedFlow
from experiments.sweep.plan import Conditions, Point
from experiments.sweep.routes import DefaultRoutes, SweepRouting
from topologies.model import Network

BITS_OF_A_WRITE = MSS_BYTES * 8
CASE = "sweep"


@dataclass(frozen=True)
class Admitted:
    """A flow with its way, and the goodput at which its application may write."""

    offered: OfferedFlow
    route: Route

    @property
    def rate_bps(self) -> float:
        """What is allocated to the flow; without allocation what it asks for."""
        rates = [path.rate_bps for path in self.route.allocated]
        known = [rate for rate in rates if rate is not None]
        return math.fsum(known) if len(known) == len(rates) else self.offered.requested_bps

    @property
    def is_simulated(self) -> bool:
        """Whether it is admitted anything."""
        return self.rate_bps >= MIN_RATE_BPS


def plan_of(conditions: Conditions, point: Point, network: Network, flows: Iterable[OfferedFlow]) -> RunPlan:
    """Return a point as a run, which is what protocols know."""
    # Names of nodes are those of any network, and were checked when it was read.
    of_point = {
        flow.name: Flow.model_construct(src=flow.src, dst=flow.dst, requested_bps=flow.requested_bps)
        for flow in flows
    }
    case = Case.model_construct(description="", allocation=conditions.objective, flows=of_point, demands=None)
    scenario = Scenario(
        format=1,
        name=CASE,
        network=conditions.network,
        packet_bytes=FRAMING.packet_bytes,
        duration_s=conditions.duration_s,
        warm_up_s=conditions.warm_up_s,
        cases={CASE: case},
    )
    return RunPlan(
        scenario=scenario,
        network=network,
        case_name=CASE,
        protocol=point.protocol,
        seed=point.seed,
        duration_s=conditions.duration_s,
    )


def admit(plan: RunPlan, routes: DefaultRoutes, flows: Iterable[OfferedFlow]) -> list[Admitted]:
    """Route the flows of a point with its protocol."""
    by_name = {flow.name: flow for flow in flows}
    ways: Mapping[str, Route] = protocols.get(plan.protocol).routes(plan, SweepRouting(plan, routes, by_name))
    return [Admitted(flow, ways[name]) for name, flow in by_name.items()]


def describe(plan: RunPlan, flows: Iterable[Admitted]) -> dict[str, Any]:
    """Return the description of a point; flows that are admitted nothing are left out."""
    return {
        "format": 1,
        "seed": plan.seed,
        "warm_up_s": plan.scenario.warm_up_s,
        "duration_s": plan.duration_s,
        "links": [link.model_dump() for link in plan.network.links],
        "tcp": {"profile": "linux", "mss_bytes": MSS_BYTES},
        "flows": [_flow(plan, flow) for flow in flows if flow.is_simulated],
    }


def _flow(plan: RunPlan, flow: Admitted) -> dict[str, Any]:
    offered = flow.offered
    return {
        "name": offered.name,
        "src": offered.src,
        "dst": offered.dst,
        "traffic": {"kind": "cbr", "rate_bps": flow.rate_bps},
        "start_s": _start_s(plan, flow),
        **way(offered.src, offered.dst, flow.route),
        **protocols.get(plan.protocol).simulated(plan.scenario),
    }


def _start_s(plan: RunPlan, flow: Admitted) -> float:
    """Draw a flow's start.

    Over the interval of its writes at least, so that slow flows write in every span in proportion; over half
    the warm-up at least, so that not all begin at once.
    """
    phase = random.Random(f"{plan.seed} {flow.offered.name}").random()
    return phase * max(plan.scenario.warm_up_s / 2, BITS_OF_A_WRITE / flow.rate_bps)
