"""The kernel's MPTCP between hosts of one address: one subflow on the default route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.apps.config import SocketSettings
from experiments.engines.live.agent import Agent, Lab
from experiments.engines.live.child import ChildFailed
from experiments.model.scenario import Scenario
from experiments.protocols.base import FlowPlan, ProtocolSpec, register
from experiments.protocols.plot_style import PINK, PlotStyle

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from experiments.apps.config import SinkConfig, SourceConfig
    from experiments.apps.transports import Accepting, SharedClients

DSS_BYTES = 28
"""Data sequence signal with 64-bit numbers, without checksum, padded (RFC 8684, section 3.3)."""
MAX_SUBFLOWS = 8
"""More than this the kernel does not take beside the first."""


class MptcpAgent(Agent):
    """Allows subflows, and sees that they were there."""

    def prepare(self) -> None:
        """Set the limits on all hosts."""
        limits = ["ip", "mptcp", "limits", "set", "subflow", str(MAX_SUBFLOWS), "add_addr_accepted", "0"]
        flows = self.lab.plan.case.flows.values()
        for host in sorted({host for flow in flows for host in (flow.src, flow.dst)}):
            self.run(host, limits)

    def expected_subflows(self, flow: str) -> int:
        """Return how many subflows a connection is to have."""
        del flow
        return 1

    def problems(self) -> list[str]:
        """Return a sentence for each flow whose subflows were not all there."""
        reasons = super().problems()
        for name in self.lab.plan.case.flows:
            expected = self.expected_subflows(name)
            there = sum(state.is_subflow for state in self.sockets.get(name, ()))
            if there != expected:
                reasons.append(f"flow {name} had {there} MPTCP subflows where {expected} were to be")
        return reasons

    def run(self, host: str, argv: list[str]) -> None:
        """Run a command on a host; ChildFailed if it does not succeed."""
        done = self.lab.emulation.run(host, argv)
        if done.returncode:
            raise ChildFailed(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")


class Mptcp(ProtocolSpec):
    """Hosts of one address: one subflow on the default route, so nothing to gain over TCP."""

    name = "mptcp"
    description = "kernel MPTCP of single-homed hosts: one subflow on the shortest path"
    plot_style: PlotStyle | None = PINK
    header_bytes = DSS_BYTES
    reads: tuple[str, ...] = ("mptcp", "sim.mptcp")
    kernel_settings: Mapping[str, str | None] = {"net.mptcp.enabled": "1"}
    drain_advice = (
        "allow more time (--set drain_s=60), or more memory if the connection came to a stand "
        "(--set mptcp.receive_buffer_bytes=1048576; docs/tcp.md says why)"
    )

    def connection(self, plan: FlowPlan) -> Mapping[str, Any]:
        """Return the kernel's send buffer, if it is set; the library's is that of all protocols."""
        size_bytes = plan.scenario.mptcp.send_buffer_bytes
        return {} if size_bytes is None else {"send_buffer_bytes": size_bytes}

    def sockets(self, scenario: Scenario, congestion_control: str) -> SocketSettings:
        """Return what the sockets are to have: a connection's subflows share its receive buffer."""
        sockets = super().sockets(scenario, congestion_control)
        return replace(sockets, receive_buffer_bytes=scenario.mptcp_receive_buffer_bytes)

    async def client(self, config: SourceConfig, ports: Sequence[int], session: SharedClients) -> Any:
        """Connect by MPTCP; each further port becomes a subflow."""
        from experiments.apps import kernel_mptcp

        del session
        return await kernel_mptcp.connect(config, ports)

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Listen by MPTCP."""
        from experiments.apps import kernel_mptcp

        await kernel_mptcp.serve(config, sink, stack)

    def agent(self, lab: Lab) -> Agent:
        """Return what sets the path managers up."""
        return MptcpAgent(lab)

    def simulated(self, scenario: Scenario) -> Mapping[str, Any]:
        """Return the simulator's MPTCP, whose segments carry less than TCP's."""
        settings = scenario.sim.mptcp.model_dump(exclude_none=True)
        if scenario.mptcp.scheduler != "default":
            settings["scheduler"] = scenario.mptcp.scheduler
        return {
            "protocol": "mptcp",
            "mss_bytes": scenario.packet_bytes - scenario.overhead_bytes - self.header_bytes,
            "mptcp": {**settings, "receive_buffer_bytes": scenario.mptcp_receive_buffer_bytes},
        }


register(Mptcp())
