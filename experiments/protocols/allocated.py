"""What the controller is asked for in place of hosts that do not ask themselves."""

from __future__ import annotations

from typing import Any

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
        "packet_bytes": plan.scenario.packet_bytes,
        "segment_overhead_bytes": plan.scenario.overhead_bytes,
        "lease_s": LEASE_S,
    }
    if allocation in OBJECTIVES:
        return {**request, "objective": allocation, "rate_bps": plan.flow.requested_for(protocol)}
    given = plan.flow.given_paths(allocation, protocol)
    return {**request, "paths": [{"nodes": path.path, "rate_bps": path.rate_bps} for path in given]}
