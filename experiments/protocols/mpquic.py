"""Multipath QUIC over the paths that the controller allocates, which it pins by their UDP ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.engines.live.agent import Agent, Lab
from experiments.protocols.allocated import AllocatedAgent, flow_request
from experiments.protocols.base import FlowPlan, register
from experiments.protocols.plot_style import YELLOW
from experiments.protocols.quic import UDP_OVERHEAD_BYTES, Quic

if TYPE_CHECKING:
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan

OVERHEAD_BYTES = UDP_OVERHEAD_BYTES + 1 + 8 + 4 + 8 + 16
"""Those with short header, packet number, stream frame and tag of a packet that is full."""


class Mpquic(Quic):
    """A path from each UDP port; hosts have one address."""

    name = "mpquic"
    description = "multipath QUIC of single-homed hosts over the allocated paths"
    plot_style = YELLOW
    reads = (*Quic.reads, "allocation")
    writes_at_assigned_rate = True
    most_paths = 16

    def agent(self, lab: Lab) -> Agent:
        """Return what asks the controller for the paths."""
        return AllocatedAgent(lab, self.request)

    def request(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Return what the controller is asked for."""
        request = flow_request(flow, flow.protocol, port)
        return {**request, "protocol": "udp", "segment_overhead_bytes": OVERHEAD_BYTES}

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the allocated paths."""
        return routing.allocated_routes(plan, OVERHEAD_BYTES)


register(Mpquic())
