"""The kernel's MPTCP, with what single-homed hosts can do with it by themselves and with a controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from experiments.apps.config import Connection
from experiments.protocols.base import FlowPlan
from experiments.protocols.ppfs import flow_request
from experiments.results import FlowResult, LinkResult
from experiments.scenario import Scenario

DSS_BYTES = 28
"""Data sequence signal with 64-bit numbers, without checksum, padded (RFC 8684, section 3.3)."""
_COUNTED_BYTES = 8
"""What the controller adds by itself for flows of several streams: MSTCP's identifier."""


class Mptcp:
    """Hosts of one address: one subflow on the default route, so nothing to gain over TCP."""

    name = "mptcp"
    description = "kernel MPTCP of single-homed hosts: one subflow on the shortest path"
    header_bytes = DSS_BYTES
    default_routing: Literal["shortest", "ecmp"] = "shortest"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a connection by MPTCP."""
        del plan
        return Connection(kernel="mptcp")

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return the paths; the kernel's counters are the evidence beside them."""
        del links
        return {"paths": {flow.flow: [allocated.path for allocated in flow.allocated] for flow in flows}}


class MptcpSdn(Mptcp):
    """A subflow for each path that the controller allocates, told apart by its source port."""

    name = "mptcp-sdn"
    description = "kernel MPTCP of single-homed hosts, its subflows pinned to the allocated paths"

    def request(self, plan: FlowPlan, port: int) -> dict[str, Any]:
        """Return what the controller's REST service is asked for."""
        request = flow_request(plan, self.name, port)
        return {**request, "segment_overhead_bytes": self.segment_overhead_bytes(plan.scenario)}

    def segment_overhead_bytes(self, scenario: Scenario) -> int:
        """Return what the controller has to be told of a segment's headers and options."""
        return scenario.overhead_bytes + DSS_BYTES - _COUNTED_BYTES


class MptcpDualhomed(Mptcp):
    """Two subflows between hosts of two interfaces each, on the default routes between these."""

    name = "mptcp-dualhomed"
    description = "kernel MPTCP of hosts with a second interface: a subflow on each one's shortest path"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a connection by MPTCP whose destination is reached at any of its addresses."""
        del plan
        return Connection(kernel="mptcp", any_address=True)
