"""Per-packet flow splitting, the predecessor of MSTCP: one TCP connection whose packets the switch spreads.

The paper's PPFS draws the path of each packet at random, by the ratios of the allocation. `ppfs-group` is the
same with what stock Open vSwitch offers instead, a select group with weights, so that the difference is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from experiments.apps.config import Connection
from experiments.protocols.base import FlowPlan
from experiments.results import FlowResult, LinkResult
from experiments.scenario import OBJECTIVES

LEASE_S = 86_400.0
"""Longer than any run: nobody renews these flows."""


class Ppfs:
    """One plain TCP connection per flow, asked for at the controller before the source connects."""

    name = "ppfs"
    description = "plain TCP whose packets the ingress switch spreads over the allocated paths at random"
    header_bytes = 0
    default_routing: Literal["shortest", "ecmp"] = "shortest"
    splitting: Literal["packets", "group"] = "packets"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a plain connection; the controller is asked on its behalf."""
        del plan
        return Connection()

    def request(self, plan: FlowPlan, port: int) -> dict[str, Any]:
        """Return what the controller's REST service is asked for.

        Args:
            plan: of the flow.
            port: TCP port on which the destination listens.
        """
        return {
            **flow_request(plan, self.name, port),
            "splitting": self.splitting,
            "ack_path": plan.scenario.ppfs.ack_path,
        }

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return nothing of its own: the switches' counters are the evidence."""
        del flows, links
        return {}


class PpfsGroup(Ppfs):
    """The split by a select group, which chooses by connection and not by packet."""

    name = "ppfs-group"
    description = "plain TCP over a weighted select group of the ingress switch, as stock Open vSwitch splits"
    splitting: Literal["packets", "group"] = "group"


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
