"""The kernel's MPTCP with its subflows pinned to the paths that the controller allocates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.engines.live.agent import Agent, Lab
from experiments.model.evidence import FlowEvidence, PathEvidence
from experiments.model.scenario import Scenario
from experiments.protocols.allocated import AllocatedAgent, flow_request
from experiments.protocols.base import FlowPlan, register
from experiments.protocols.mptcp import DSS_BYTES, MAX_SUBFLOWS, Mptcp, MptcpAgent
from experiments.protocols.plot_style import VIOLET

if TYPE_CHECKING:
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan

PATH_MANAGER = "net.mptcp.pm_type"
IN_KERNEL, USERSPACE = 0, 1
"""What may open subflows of new connections: the kernel, which lets those of its peers in, or programs."""
_COUNTED_BYTES = 8
"""What the controller adds by itself for flows of several streams: MSTCP's identifier."""


class SdnAgent(AllocatedAgent, MptcpAgent):
    """Asks the controller for subflows; sources open them themselves."""

    def __init__(self, lab: Lab, protocol: MptcpSdn) -> None:
        super().__init__(lab, protocol.request)
        flows = lab.plan.case.flows.values()
        self._sources = {flow.src for flow in flows}
        self._sinks = {flow.dst for flow in flows}

    def prepare(self) -> None:
        """Set the limits on all hosts, and leave the subflows of sources to their programs."""
        super().prepare()
        for host in sorted(self._sources - self._sinks):
            self._choose_path_manager(host, USERSPACE)

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Ask for the flow's paths; each becomes a subflow from a port of its own.

        A connection keeps the path manager that its host had when it began, so a host that sends and receives
        has the one that this flow needs.
        """
        both = self._sources & self._sinks
        for host, manager in ((flow.flow.src, USERSPACE), (flow.flow.dst, IN_KERNEL)):
            if host in both:
                self._choose_path_manager(host, manager)
        return super().connecting(flow, port)

    def _choose_path_manager(self, host: str, manager: int) -> None:
        self.run(host, ["sysctl", "-q", "-w", f"{PATH_MANAGER}={manager}"])

    def expected_subflows(self, flow: str) -> int:
        """Return how many paths a flow was allocated."""
        return len(self._flows[flow]["streams"])

    def flow_evidence(self, flow: str) -> FlowEvidence:
        """Return the flow's subflows with what they carried."""
        counts = {state.source_port: state.counts for state in self.sockets.get(flow, ())}
        streams = self._flows[flow]["streams"]
        sent = [counts.get(stream["source_port"], {}).get("bytes_sent", 0) for stream in streams]
        rates = [stream["rate_bps"] for stream in streams]
        return FlowEvidence(
            paths=[
                PathEvidence(
                    path=stream["path"],
                    source_port=stream["source_port"],
                    asked=stream["rate_bps"] / sum(rates) if sum(rates) else None,
                    realised=size / sum(sent) if sum(sent) else None,
                )
                for stream, size in zip(streams, sent, strict=True)
            ]
        )


class MptcpSdn(Mptcp):
    """A subflow for each path that the controller allocates, told apart by its source port."""

    name = "mptcp-sdn"
    description = "kernel MPTCP of single-homed hosts, its subflows pinned to the allocated paths"
    plot_style = VIOLET
    reads = (*Mptcp.reads, "allocation")
    writes_at_assigned_rate = True
    kernel_settings: Mapping[str, str | None] = {**Mptcp.kernel_settings, PATH_MANAGER: None}
    most_paths = 1 + MAX_SUBFLOWS

    def request(self, plan: FlowPlan, port: int) -> dict[str, Any]:
        """Return what the controller's REST service is asked for."""
        request = flow_request(plan, self.name, port)
        return {**request, "segment_overhead_bytes": self._overhead_bytes(plan.scenario)}

    def agent(self, lab: Lab) -> Agent:
        """Return what asks the controller for the subflows."""
        return SdnAgent(lab, self)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the allocated paths."""
        return routing.allocated_routes(plan, self._overhead_bytes(plan.scenario))

    def _overhead_bytes(self, scenario: Scenario) -> int:
        """Return what the controller has to be told of a segment's headers and options."""
        return scenario.overhead_bytes + DSS_BYTES - _COUNTED_BYTES


register(MptcpSdn())
