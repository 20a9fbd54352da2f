"""The agent of dual-homed MPTCP: routes, addresses to signal, and which subflow went where."""

from __future__ import annotations

from typing import Any

from experiments.engines.live.agents.base import CarriedPath, Lab
from experiments.engines.live.agents.mptcp import MAX_SUBFLOWS, MptcpAgent
from experiments.protocols.mptcp import MptcpDualhomed
from topologies.second_interfaces import second_name


class DualhomedAgent(MptcpAgent):
    """Lets the kernel's own path manager find the second interfaces.

    A destination announces its second address (ADD_ADDR, RFC 8684 section 3.4.1); the source's kernel
    connects to it from where its route leads, which is the source's own second interface.
    """

    subflows = 2

    def __init__(self, lab: Lab, protocol: MptcpDualhomed) -> None:
        super().__init__(lab, protocol)
        self._pairs = {name: (flow.src, flow.dst) for name, flow in lab.plan.case.flows.items()}

    def prepare(self) -> None:
        """Set limits, endpoints and the routes between second interfaces."""
        super().prepare()
        for source, destination in dict.fromkeys(self._pairs.values()):
            self._route(source, destination)
            self._route(destination, source)
            limits = ["subflow", str(MAX_SUBFLOWS), "add_addr_accepted", str(MAX_SUBFLOWS)]
            self._run(source, ["ip", "mptcp", "limits", "set", *limits])
        for destination in dict.fromkeys(destination for _, destination in self._pairs.values()):
            endpoint = [self._address(destination), "dev", self._interface(destination), "signal"]
            self._run(destination, ["ip", "mptcp", "endpoint", "add", *endpoint])

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the paths of the first and of the second interfaces, as the switches' rules have them."""
        found = [
            CarriedPath(path, None, self._port_from(flow, ends[0]))
            for ends in self._ends(flow)
            if (path := self.lab.default_path(*ends)) is not None
        ]
        return found or None

    def evidence(self) -> dict[str, Any]:
        """Return what each subflow carried, and the path manager's endpoints."""
        found = super().evidence()
        found["split"] = {name: self._realised(name) for name in self._pairs}
        return found

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

    def _realised(self, flow: str) -> list[dict[str, Any]]:
        sent = {state.source_ip: state.counts.get("bytes_sent", 0) for state in self.sockets.get(flow, ())}
        total = sum(sent.values())
        return [
            {
                "path": self.lab.default_path(*ends),
                "source_port": self._port_from(flow, ends[0]),
                "asked": None,
                "realised": sent.get(self.lab.emulation.host_ip(ends[0]), 0) / total if total else None,
            }
            for ends in self._ends(flow)
        ]

    def _ends(self, flow: str) -> list[tuple[str, str]]:
        source, destination = self._pairs[flow]
        return [(source, destination), (second_name(source), second_name(destination))]

    def _port_from(self, flow: str, interface: str) -> int | None:
        address = self.lab.emulation.host_ip(interface)
        ports = [state.source_port for state in self.sockets.get(flow, ()) if state.source_ip == address]
        return ports[0] if len(ports) == 1 else None

    def _route(self, here: str, there: str) -> None:
        way = ["dev", self._interface(here), "src", self._address(here)]
        self._run(here, ["ip", "route", "replace", self._address(there), *way])

    def _interface(self, host: str) -> str:
        return self.lab.names.port(second_name(host), 1)

    def _address(self, host: str) -> str:
        return self.lab.emulation.host_ip(second_name(host))
