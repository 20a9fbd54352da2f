"""Multi-Stream TCP: the controller computes the paths, the library opens a TCP connection for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from experiments.apps.config import Connection, RequestedPath
from experiments.model.scenario import OBJECTIVES, Scenario
from experiments.protocols.base import FlowPlan, ProtocolSpec
from experiments.protocols.look import BLUE
from experiments.protocols.registry import register
from mstcp.options import DEFAULT_MAX_PATHS

if TYPE_CHECKING:
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan


class Mstcp(ProtocolSpec):
    """The `mstcp` library with rates from the controller: computed, or given as the scenario has them."""

    name = "mstcp"
    description = "Multi-Stream TCP over the paths that the controller allocates"
    look = BLUE
    header_bytes = 8
    reads = (
        *("allocation", "mstcp", "sim.binding", "sim.identify_single", "sim.reorder_buffer_bytes"),
        "sim.pacing=allocated",
    )
    simulated_as: Literal["tcp", "mptcp", "mstcp"] | None = "mstcp"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a connection that asks the controller, by the case's allocation."""
        allocation = plan.case.allocation
        scheduler = plan.scenario.mstcp.scheduler
        if allocation in OBJECTIVES:
            return Connection(controller=plan.controller, objective=allocation, scheduler=scheduler)
        given = plan.flow.given_paths(allocation, self.name)
        paths = tuple(RequestedPath(path.path, path.rate_bps) for path in given)
        return Connection(controller=plan.controller, paths=paths, scheduler=scheduler)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the allocated paths."""
        limit = DEFAULT_MAX_PATHS
        return routing.allocated_routes(plan, plan.scenario.overhead_bytes, max_paths=limit)

    def simulated_settings(self, scenario: Scenario) -> dict[str, Any]:
        """Return the simulator's settings of MSTCP."""
        settings = scenario.sim
        return {
            "mstcp": {
                "binding": settings.binds,
                "scheduler": scenario.mstcp.scheduler,
                "reorder_buffer_bytes": settings.reorder_buffer_bytes,
                "identify_single": settings.identify_single,
                "trust_streams": scenario.mstcp.trust_streams,
            }
        }


register(Mstcp())
