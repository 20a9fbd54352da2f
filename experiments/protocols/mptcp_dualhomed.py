"""The kernel's MPTCP between hosts of two interfaces each: a subflow on the default routes between these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.model.evidence import FlowEvidence, PathEvidence
from experiments.model.results import PathAllocation
from experiments.protocols.base import register
from experiments.protocols.mptcp import MAX_SUBFLOWS, Mptcp, MptcpAgent
from experiments.protocols.plot_style import WINE
from topologies.model import ip_version
from topologies.second_interfaces import second_name

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from experiments.apps.config import SinkConfig
    from experiments.apps.transports import Accepting
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan

ANY_ADDRESSES = {4: "0.0.0.0", 6: "::"}  # noqa: S104 (of a host in a namespace of its own)


class DualhomedAgent(MptcpAgent):
    """Lets the kernel's own path manager find the second interfaces.

    A destination announces its second address (ADD_ADDR, RFC 8684 section 3.4.1); the source's kernel
    connects to it from where its route leads, which is the source's own second interface.
    """

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._pairs = {name: (flow.src, flow.dst) for name, flow in lab.plan.case.flows.items()}

    def prepare(self) -> None:
        """Set limits, endpoints and the routes between second interfaces."""
        super().prepare()
        for source, destination in dict.fromkeys(self._pairs.values()):
            self._route(source, destination)
            self._route(destination, source)
            limits = ["subflow", str(MAX_SUBFLOWS), "add_addr_accepted", str(MAX_SUBFLOWS)]
            self.run(source, ["ip", "mptcp", "limits", "set", *limits])
        for destination in dict.fromkeys(destination for _, destination in self._pairs.values()):
            endpoint = [self._address(destination), "dev", self._interface(destination), "signal"]
            self.run(destination, ["ip", "mptcp", "endpoint", "add", *endpoint])

    def expected_subflows(self, flow: str) -> int:
        """Return one for each of the source's interfaces."""
        del flow
        return 2

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the paths of the first and of the second interfaces, as the switches' rules have them."""
        carried_paths = [
            CarriedPath(path, None, self._port_from(flow, ends[0]))
            for ends in self._ends(flow)
            if (path := self.lab.default_path(*ends)) is not None
        ]
        return carried_paths or None

    def _default_paths(self, flow: str) -> list[PathAllocation]:
        """Return the paths between the first and between the second interfaces."""
        paths = (self.lab.default_path(*ends) for ends in self._ends(flow))
        return [PathAllocation(path=path, rate_bps=None) for path in paths if path is not None]

    def flow_evidence(self, flow: str) -> FlowEvidence:
        """Return what each subflow carried."""
        sent = {state.source_ip: state.counts.get("bytes_sent", 0) for state in self.sockets.get(flow, ())}
        total = sum(sent.values())
        return FlowEvidence(
            paths=[
                PathEvidence(
                    path=self.lab.default_path(*ends) or [],
                    source_port=self._port_from(flow, ends[0]),
                    realised=sent.get(self.lab.emulation.host_ip(ends[0]), 0) / total if total else None,
                )
                for ends in self._ends(flow)
            ]
        )

    def problems(self) -> list[str]:
        """Add a sentence for each flow whose second subflow did not use the second interface."""
        reasons = super().problems()
        for name in self._pairs:
            expected = {self.lab.emulation.host_ip(source) for source, _ in self._ends(name)}
            there = {state.source_ip for state in self.sockets.get(name, ()) if state.is_subflow}
            if there != expected:
                reasons.append(
                    f"flow {name} sent from {', '.join(sorted(there)) or 'no address'} where "
                    f"{' and '.join(sorted(expected))} were to be used"
                )
        return reasons

    def _ends(self, flow: str) -> list[tuple[str, str]]:
        source, destination = self._pairs[flow]
        return [(source, destination), (second_name(source), second_name(destination))]

    def _port_from(self, flow: str, interface: str) -> int | None:
        address = self.lab.emulation.host_ip(interface)
        ports = [state.source_port for state in self.sockets.get(flow, ()) if state.source_ip == address]
        return ports[0] if len(ports) == 1 else None

    def _route(self, here: str, there: str) -> None:
        way = ["dev", self._interface(here), "src", self._address(here)]
        way += self.lab.emulation.route_settings()
        self.run(here, ["ip", "route", "replace", self._address(there), *way])

    def _interface(self, host: str) -> str:
        return self.lab.names.port(second_name(host), 1)

    def _address(self, host: str) -> str:
        return self.lab.emulation.host_ip(second_name(host))


class MptcpDualhomed(Mptcp):
    """Two subflows between hosts of two interfaces each, on the default routes between these."""

    name = "mptcp-dualhomed"
    description = "kernel MPTCP of hosts with a second interface: a subflow on each one's shortest path"
    plot_style = WINE
    set_apart = (
        "its hosts have second interfaces, which is another network: not counted where protocols are ranked"
    )
    uses_second_interfaces = True

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Listen by MPTCP at all addresses of the host."""
        await super().server(replace(config, host=ANY_ADDRESSES[ip_version(config.host)]), sink, stack)

    def agent(self, lab: Lab) -> Agent:
        """Return what lets the kernel find the second interfaces."""
        return DualhomedAgent(lab)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the shortest paths between the first and between the second interfaces."""
        return routing.second_routes(plan)


register(MptcpDualhomed())
