"""What the live engine does for a protocol beside its sources and sinks.

An agent stands for what the hosts' applications don't do: it asks the controller in their place, programs
switches, sets kernels up, and afterwards says what really happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from experiments.engines.live.routes import DEFAULT_TABLE, default_path
from experiments.engines.live.socket_state import SocketState, read_counters, read_sockets
from experiments.engines.live.verification import mismatches, not_vouched_for, unverified
from experiments.model.evidence import Evidence, FlowEvidence
from experiments.model.plan import RunPlan
from experiments.model.results import PathAllocation

if TYPE_CHECKING:  # protocols import agents, also where none is used
    from experiments.engines.live.controller_process import ControllerSubprocess
    from experiments.protocols.base import FlowPlan
    from switch.ovs import PrivateInstance
    from topologies.interface_names import InterfaceNames
    from topologies.mininet_builder import Emulation


MAX_FLOWS = 10_000
"""Flows of a case at most; the controller's REST service lists as many on a page."""


@dataclass(frozen=True)
class Lab:
    """The running network, as agents use it; `plan` has the flows of the agent's protocol alone."""

    plan: RunPlan
    emulation: Emulation
    controller: ControllerSubprocess
    ovs: PrivateInstance
    names: InterfaceNames
    ports: Mapping[str, int]
    """Where the destination of each flow listens."""
    _default_rules: dict[str, str] = field(default_factory=dict)
    """By switch, read once: hundreds of flows pass the same ones."""

    def forget_rules(self) -> None:
        """Have `default_path` read the switches' rules again."""
        self._default_rules.clear()

    def default_path(self, src: str, dst: str) -> list[str] | None:
        """Return the path between two hosts by the switches' default rules; None where they have none."""

        def dump(switch: str) -> str:
            if switch not in self._default_rules:
                bridge = self.names.bridge(switch)
                self._default_rules[switch] = self.ovs.ofctl("dump-flows", bridge, f"table={DEFAULT_TABLE}")
            return self._default_rules[switch]

        return default_path(self.plan.network, src, dst, dump, self.plan.scenario.ip_version)


@dataclass(frozen=True)
class CarriedPath:
    """One path of a flow with what it was allocated, and what it has carried, if known.

    `share` is the path's share of all bytes where only the whole connection could be sampled.
    """

    path: list[str]
    rate_bps: float | None
    source_port: int | None
    times_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    counted_bytes: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    share: float | None = None


class Agent:
    """Sees what the kernel did: enough for protocols whose sources do all themselves. The others build on it.

    Used as a context manager; the methods are called in the order in which they stand here.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.sockets: dict[str, list[SocketState]] = {}
        self._kernel_counters: dict[str, dict[str, int]] = {}

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Set the hosts up, once they and the controller are there."""

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Prepare a flow whose destination listens at `port`; returns what its source is told beside."""
        del flow, port
        return {}

    def connected(self) -> Mapping[str, float]:
        """Note that all flows are connected; returns the rates in bit/s that sources have to keep to."""
        return {}

    def sample(self, now_ns: int) -> None:
        """Read counters, at each interval of the measurement."""

    def look(self, counting: bool = True) -> None:
        """Read the state of the connections.

        This is done twice: when all are open, and what they have counted is of no interest yet, and shortly
        before the measurement ends, when some are over.
        """
        flows = self.lab.plan.case.flows
        if not flows:
            return
        ports = range(min(self.lab.ports.values()), max(self.lab.ports.values()) + 1)
        connections = {
            host: read_sockets(self.lab.emulation, host, ports) for host in {f.src for f in flows.values()}
        }
        for name, flow in flows.items():
            port = self.lab.ports[name]
            states = [state for state in connections[flow.src] if state.destination_port == port]
            if states:
                self.sockets[name] = states if counting else [replace(state, counts={}) for state in states]

    def finish(self) -> None:
        """Read what outlives the connections: all is sent and read."""
        flows = self.lab.plan.case.flows
        for host in sorted({host for flow in flows.values() for host in (flow.src, flow.dst)}):
            self._kernel_counters[host] = read_counters(self.lab.emulation, host)

    def streams(self, flow: str) -> list[CarriedPath] | None:
        """Return a connected flow's allocated paths; None if its source knows them, or nobody."""
        del flow
        return None

    def counted_bytes(self, flow: str) -> list[int] | None:
        """Return what each path of a flow had carried at the last sample; None if its source knows that."""
        del flow
        return None

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return a flow's paths; None if its source knows them."""
        del flow
        return None

    def paths_now(self) -> dict[str, list[PathAllocation]]:
        """Return the paths that flows have at the moment, as controller and switches know them.

        It is asked when a link is changed, and from then on at each sample. Unknown ones are left out.
        """
        self.lab.forget_rules()
        granted = {
            (flow["source"], flow["destination"], flow["destination_port"]): flow["streams"]
            for flow in self.lab.controller.get(f"/v1/flows?limit={MAX_FLOWS}")
        }
        paths = {}
        for name, flow in self.lab.plan.case.flows.items():
            streams = granted.get((flow.src, flow.dst, self.lab.ports[name]))
            found = (
                self._default_paths(name)
                if streams is None
                else [PathAllocation(path=stream["path"], rate_bps=stream["rate_bps"]) for stream in streams]
            )
            if found:
                paths[name] = found
        return paths

    def _default_paths(self, flow: str) -> list[PathAllocation]:
        """Return the paths of a flow's connections that the controller was asked nothing for."""
        ends = self.lab.plan.case.flows[flow]
        path = self.lab.default_path(ends.src, ends.dst)
        return [] if path is None else [PathAllocation(path=path, rate_bps=None)]

    def evidence(self) -> Evidence:
        """Return what shows that the protocol did what its name says."""
        unseen = unverified(self._hosts_by_flow(), self.sockets)
        flows = {
            name: self.flow_evidence(name).model_copy(
                update={
                    "connections": [state.evidence() for state in self.sockets.get(name, ())],
                    "is_verified": name not in unseen,
                }
            )
            for name in self.lab.plan.case.flows
        }
        return Evidence(flows=flows, hosts=self._kernel_counters)

    def flow_evidence(self, flow: str) -> FlowEvidence:
        """Return what a flow's paths were asked to carry, and carried; its connections are added."""
        del flow
        return FlowEvidence()

    def problems(self) -> list[str]:
        """Return a sentence for each thing that makes the run invalid."""
        from experiments import protocols  # which import agents

        plan = self.lab.plan
        if not protocols.get(plan.protocol).has_tcp_sockets:
            return []
        reasons = [
            reason
            for name, states in self.sockets.items()
            for reason in mismatches(plan.scenario.tcp, plan.kernel_control_of(name), name, states)
        ]
        return reasons + not_vouched_for(self._hosts_by_flow(), self.sockets)

    def _hosts_by_flow(self) -> dict[str, tuple[str, str]]:
        return {name: (flow.src, flow.dst) for name, flow in self.lab.plan.case.flows.items()}

    def close(self) -> None:
        """Take back what would outlive the run."""
