"""Multi-Stream TCP: the controller computes the paths, the library opens a TCP connection for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.model.scenario import OBJECTIVES, Scenario
from experiments.protocols.base import FlowPlan, ProtocolSpec, register
from experiments.protocols.plot_style import BLUE
from mstcp.options import DEFAULT_MAX_PATHS

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from experiments.apps.config import SinkConfig, SourceConfig
    from experiments.apps.transports import Accepting, SharedClients
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan


class Mstcp(ProtocolSpec):
    """The `mstcp` library with rates from the controller: computed, or given as the scenario has them."""

    name = "mstcp"
    description = "Multi-Stream TCP over the paths that the controller allocates"
    plot_style = BLUE
    header_bytes = 8
    reads = (
        *("allocation", "mstcp", "sim.binding", "sim.identify_single", "sim.reorder_buffer_bytes"),
        "sim.pacing=allocated",
    )

    def connection(self, plan: FlowPlan) -> Mapping[str, Any]:
        """Return which controller is asked, by the case's allocation."""
        allocation = plan.case.allocation
        told = {"controller": plan.controller, "scheduler": plan.scenario.mstcp.scheduler}
        if allocation in OBJECTIVES:
            return {**told, "objective": allocation}
        given = plan.flow.given_paths(allocation, self.name)
        return {**told, "paths": [(path.path, path.rate_bps) for path in given]}

    async def client(self, config: SourceConfig, ports: Sequence[int], session: SharedClients) -> Any:
        """Ask the controller for paths, and open a stream over each."""
        from experiments.apps.transports import connect_mstcp

        del ports
        return await connect_mstcp(config, session)

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Listen for MSTCP, or TCP where one path was allocated."""
        from experiments.apps.transports import serve

        await serve(config, sink, stack, plain=False)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the allocated paths."""
        limit = DEFAULT_MAX_PATHS
        return routing.allocated_routes(plan, plan.scenario.overhead_bytes, max_paths=limit)

    def simulated(self, scenario: Scenario) -> Mapping[str, Any]:
        """Return the simulator's MSTCP."""
        settings = scenario.sim
        return {
            "protocol": "mstcp",
            "mstcp": {
                "binding": settings.binds,
                "scheduler": scenario.mstcp.scheduler,
                "reorder_buffer_bytes": settings.reorder_buffer_bytes,
                "identify_single": settings.identify_single,
                "trust_streams": scenario.mstcp.trust_streams,
            },
        }


register(Mstcp())
