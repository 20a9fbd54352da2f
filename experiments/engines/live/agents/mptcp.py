"""The agent of kernel MPTCP: sets the path managers up, and sees that the subflows were there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.engines.live.agents.base import Agent, CarriedPath, Lab
from experiments.engines.live.child import ChildFailed
from experiments.protocols.base import FlowPlan
from experiments.protocols.mptcp import Mptcp, MptcpSdn

MAX_SUBFLOWS = 8
"""More than this the kernel does not take beside the first."""
USERSPACE = "net.mptcp.pm_type=1"


class MptcpAgent(Agent):
    """Allows subflows; for `mptcp-sdn` also asks the controller which ones there shall be."""

    subflows = 1
    """Of each flow, where the controller is not asked."""

    def __init__(self, lab: Lab, protocol: Mptcp) -> None:
        super().__init__(lab)
        self._sdn = protocol if isinstance(protocol, MptcpSdn) else None
        self._flows: dict[str, dict[str, Any]] = {}

    def prepare(self) -> None:
        """Set the limits on all hosts; the sources of `mptcp-sdn` make their subflows themselves."""
        limits = ["ip", "mptcp", "limits", "set", "subflow", str(MAX_SUBFLOWS), "add_addr_accepted", "0"]
        flows = self.lab.plan.case.flows.values()
        sources, sinks = {flow.src for flow in flows}, {flow.dst for flow in flows}
        if self._sdn and sources & sinks:
            both = ", ".join(sorted(sources & sinks))
            raise ChildFailed(
                f"{both} sends and receives: a host has one path manager for all its connections, and "
                "mptcp-sdn needs another one where it sends than where it receives"
            )
        for host in sorted(sources | sinks):
            self._run(host, limits)
        for host in sorted(sources) if self._sdn else ():
            self._run(host, ["sysctl", "-q", "-w", USERSPACE])

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Ask for the flow's paths; each becomes a subflow from a port of its own."""
        if self._sdn is None:
            return {}
        view = self.lab.controller.request_flow(self._sdn.request(flow, port))
        self._flows[flow.name] = view
        return {"source_ports": [stream["source_port"] for stream in view["streams"]]}

    def connected(self) -> Mapping[str, float]:
        """Take over what later flows have changed of earlier ones; sources keep to what they were given."""
        self._flows = {name: self.lab.controller.flow(view["flow_id"]) for name, view in self._flows.items()}
        return {name: view["rate_bps"] for name, view in self._flows.items()}

    def streams(self, flow: str) -> list[CarriedPath] | None:
        """Return the allocated paths, if the controller was asked for them."""
        return self.carried(flow)

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the allocated paths."""
        if flow not in self._flows:
            return None
        return [
            CarriedPath(list(stream["path"]), stream["rate_bps"], stream["source_port"])
            for stream in self._flows[flow]["streams"]
        ]

    def evidence(self) -> dict[str, Any]:
        """Return each flow's subflows with what they carried."""
        found = super().evidence()
        if self._sdn:
            found["split"] = {name: self._split(name, view) for name, view in self._flows.items()}
        return found

    def problems(self) -> list[str]:
        """Return a sentence for each flow whose subflows were not all there."""
        reasons = super().problems()
        for name in self.lab.plan.case.flows:
            expected = len(self._flows[name]["streams"]) if name in self._flows else self.subflows
            there = sum(state.is_subflow for state in self.sockets.get(name, ()))
            if there != expected:
                reasons.append(f"flow {name} had {there} MPTCP subflows where {expected} were to be")
        return reasons

    def _split(self, name: str, view: dict[str, Any]) -> list[dict[str, Any]]:
        counts = {state.source_port: state.counts for state in self.sockets.get(name, ())}
        streams = view["streams"]
        sent = [counts.get(stream["source_port"], {}).get("bytes_sent", 0) for stream in streams]
        rates = [stream["rate_bps"] for stream in streams]
        return [
            {
                "path": stream["path"],
                "source_port": stream["source_port"],
                "asked": stream["rate_bps"] / sum(rates) if sum(rates) else None,
                "realised": size / sum(sent) if sum(sent) else None,
            }
            for stream, size in zip(streams, sent, strict=True)
        ]

    def _run(self, host: str, argv: list[str]) -> None:
        done = self.lab.emulation.run(host, argv)
        if done.returncode:
            raise ChildFailed(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
