"""Equal-cost multipath: plain TCP, and the first switch hashes a connection to one of the shortest paths.

Which bucket of a select group a connection gets is known to the datapath alone (`ofproto/trace` does not
compute its hash). So each switch gets rules that count the flow's packets by the port they come in at and
pass them on to the next table, where they would have gone anyway.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from controller.model.rules import PRIORITY_LABEL, TABLE_BYPASS, TABLE_CLASSIFY, TABLE_PINNED
from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.engines.live.arc_counts import Arc, peel_paths
from experiments.model.evidence import FlowEvidence, PathEvidence
from experiments.model.results import PathAllocation
from experiments.protocols.base import FlowPlan, ProtocolSpec, register
from experiments.protocols.plot_style import ORANGE
from topologies.model import ip_version

if TYPE_CHECKING:
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan

EPHEMERAL_PORTS = range(32768, 60999)
"""Those of Linux by default (ip_local_port_range)."""
COUNTING_COOKIE = 0x4D53_0003_0000_0000
_COOKIE_MASK = 0xFFFF_FFFF_0000_0000
_PORT_BITS = 16
_COUNTING_PRIORITY = PRIORITY_LABEL + 1
_COUNTED = re.compile(r"cookie=(0x[0-9a-f]+),.*\bn_packets=(\d+)")


class EcmpAgent(Agent):
    """Chooses source ports by the seed, and counts packets on every link."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._ports: dict[str, int] = {}
        self._counted: Mapping[int, dict[Arc, int]] = {}
        self._taken: dict[str, list[tuple[list[str], int]]] | None = None

    def prepare(self) -> None:
        """Install the counting rules, before the first packet."""
        network = self.lab.plan.network
        into: dict[str, dict[int, bool]] = {switch: {} for switch in network.switches}
        for arc in network.arcs():
            if arc.head in into:
                into[arc.head][arc.head_port] = arc.tail in into
        folder = self.lab.ovs.run_dir
        for switch, ports in into.items():
            rules = folder / f"{self.lab.names.bridge(switch)}.counting"
            rules.write_text("".join(self._rules(ports)))
            self.lab.ovs.ofctl("add-flows", self.lab.names.bridge(switch), str(rules))

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Give the source a port that the seed decides, so that a seed stands for one set of hashes."""
        ports = random.Random(f"{flow.seed} {port}")
        self._ports[flow.name] = ports.choice(EPHEMERAL_PORTS)
        return {"source_ports": [self._ports[flow.name]]}

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the paths that the flow's packets took."""
        paths = self._paths()[flow]
        total = sum(packets for _, packets in paths)
        return [
            CarriedPath(path, None, self._ports[flow], share=packets / total) for path, packets in paths
        ] or None

    def paths_now(self) -> dict[str, list[PathAllocation]]:
        """Return the paths of the packets that were counted since the last time."""
        before, self._counted = self._counted, self._counts()
        paths = {}
        for number, (name, flow) in enumerate(self.lab.plan.case.flows.items()):
            earlier = before.get(number, {})
            counts = {
                arc: packets - earlier.get(arc, 0) for arc, packets in self._counted.get(number, {}).items()
            }
            if taken := peel_paths(counts, flow.src, flow.dst):
                paths[name] = [PathAllocation(path=path, rate_bps=None) for path, _ in taken]
        return paths

    def flow_evidence(self, flow: str) -> FlowEvidence:
        """Return the flow's paths with the packets that went there."""
        taken = self._paths()[flow]
        total = sum(packets for _, packets in taken)
        paths = [
            PathEvidence(path=path, packets=packets, realised=packets / total) for path, packets in taken
        ]
        return FlowEvidence(paths=paths)

    def problems(self) -> list[str]:
        """Add a sentence for each flow that no switch has seen."""
        return super().problems() + [
            f"the switches counted no packet of flow {name} on its whole way"
            for name, paths in self._paths().items()
            if not paths
        ]

    def _rules(self, ports: Mapping[int, bool]) -> list[str]:
        """Return a switch's rules; by port, whether another switch is behind it: then packets have labels."""
        network, version, lines = self.lab.plan.network, self.lab.plan.scenario.ip_version, []
        for number, (name, flow) in enumerate(self.lab.plan.case.flows.items()):
            ends = self._ends(network.host_ip(flow.src, version), network.host_ip(flow.dst, version))
            for port, is_labelled in ports.items():
                table = TABLE_BYPASS if is_labelled else TABLE_PINNED
                cookie = COUNTING_COOKIE | number << _PORT_BITS | port
                match = f"in_port={port},{ends},tp_dst={self.lab.ports[name]}"
                rule = f"cookie={cookie:#x},table={TABLE_CLASSIFY},priority={_COUNTING_PRIORITY},{match}"
                lines.append(f"{rule},actions=goto_table:{table}\n")
        return lines

    @staticmethod
    def _ends(source: str, destination: str) -> str:
        """Return a match for TCP between two addresses."""
        if ip_version(source) == 6:
            return f"tcp6,ipv6_src={source},ipv6_dst={destination}"
        return f"tcp,nw_src={source},nw_dst={destination}"

    def _paths(self) -> dict[str, list[tuple[list[str], int]]]:
        if self._taken is None:
            counts = self._counts()
            self._taken = {
                name: peel_paths(counts.get(number, {}), flow.src, flow.dst)
                for number, (name, flow) in enumerate(self.lab.plan.case.flows.items())
            }
        return self._taken

    def _counts(self) -> Mapping[int, dict[Arc, int]]:
        """Return for each flow's number the packets on each directed link, hosts' links included."""
        self.lab.ovs.appctl("revalidator/wait")  # until then the rules' counters lag behind
        network = self.lab.plan.network
        counts: dict[int, dict[Arc, int]] = {}
        into = {(arc.head, arc.head_port): (arc.tail, arc.head) for arc in network.arcs()}
        for switch in network.switches:
            bridge = self.lab.names.bridge(switch)
            which = f"cookie={COUNTING_COOKIE:#x}/{_COOKIE_MASK:#x}"
            for cookie, packets in _COUNTED.findall(self.lab.ovs.ofctl("dump-flows", bridge, which)):
                number, port = divmod(int(cookie, 16) & ~_COOKIE_MASK, 1 << _PORT_BITS)
                if int(packets):
                    counts.setdefault(number, {})[into[switch, port]] = int(packets)
        for number, flow in enumerate(self.lab.plan.case.flows.values()):
            arcs = counts.get(number, {})
            last = next(arc.head for arc in network.arcs() if arc.tail == flow.dst)
            arrived = sum(packets for (_, head), packets in arcs.items() if head == last)
            if arrived:
                arcs[last, flow.dst] = arrived
        return counts


class Ecmp(ProtocolSpec):
    """One TCP connection per flow; where all shortest paths are single ones, the same as `ospf`."""

    name = "ecmp"
    description = "plain TCP, each connection hashed to one of the shortest paths by delay"
    plot_style = ORANGE
    default_routing: Literal["shortest", "ecmp"] = "ecmp"

    def agent(self, lab: Lab) -> Agent:
        """Return what sees which ways the switches sent each flow."""
        return EcmpAgent(lab)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return a path for each flow, hashed by the run's seed."""
        return routing.hashed_routes(plan)


register(Ecmp())
