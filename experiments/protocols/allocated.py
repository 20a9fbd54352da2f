"""What the controller is asked for in place of hosts that do not ask themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.model.scenario import OBJECTIVES
from experiments.protocols.base import FlowPlan

LEASE_S = 86_400.0
"""Longer than any run: nobody renews these flows."""


def flow_request(plan: FlowPlan, protocol: str, port: int) -> dict[str, Any]:
    """Return a request for a flow by the case's allocation, computed or given, as REST takes it."""
    allocation = plan.case.allocation
    request: dict[str, Any] = {
        "source": plan.flow.src,
        "destination": plan.flow.dst,
        "destination_port": port,
        "ip_version": plan.scenario.ip_version,
        "packet_bytes": plan.scenario.packet_bytes,
        "segment_overhead_bytes": plan.scenario.overhead_bytes,
        "lease_s": LEASE_S,
    }
    if allocation in OBJECTIVES:
        return {**request, "objective": allocation, "rate_bps": plan.flow.requested_for(protocol)}
    given = plan.flow.given_paths(allocation, protocol)
    return {**request, "paths": [{"nodes": path.path, "rate_bps": path.rate_bps} for path in given]}


class AllocatedAgent(Agent):
    """Asks the controller for each flow's paths, which its source then sends from given ports.

    `request` returns what it is asked for, for a flow and its destination's port.
    """

    def __init__(self, lab: Lab, request: Callable[[FlowPlan, int], dict[str, Any]]) -> None:
        super().__init__(lab)
        self._request = request
        self._flows: dict[str, dict[str, Any]] = {}

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Ask for the flow's paths; each has a source port of its own."""
        self._flows[flow.name] = view = self.lab.controller.request_flow(self._request(flow, port))
        return {"source_ports": [stream["source_port"] for stream in view["streams"]]}

    def connected(self) -> Mapping[str, float]:
        """Take over what later flows have changed of earlier ones; sources keep to what they were given."""
        self._flows = {name: self.lab.controller.flow(view["flow_id"]) for name, view in self._flows.items()}
        return {name: view["rate_bps"] for name, view in self._flows.items()}

    def streams(self, flow: str) -> list[CarriedPath] | None:
        """Return the allocated paths, if the controller was asked for them."""
        if flow not in self._flows:
            return None
        return [
            CarriedPath(list(stream["path"]), stream["rate_bps"], stream["source_port"])
            for stream in self._flows[flow]["streams"]
        ]

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the same paths."""
        return self.streams(flow)
