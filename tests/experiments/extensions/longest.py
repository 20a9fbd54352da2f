"""A protocol from outside the package: plain TCP on the longest of a flow's simple paths."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import networkx as nx

from experiments import protocols
from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.engines.sim.routing import Route, Routing
from experiments.model.plan import RunPlan
from experiments.model.results import PathAllocation
from experiments.protocols import FlowPlan, ProtocolSpec
from experiments.protocols.allocated import LEASE_S
from experiments.protocols.plot_style import YELLOW
from topologies.model import Network


class LongestAgent(Agent):
    """Asks the controller to pin each flow to its longest path."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._flows: dict[str, dict[str, Any]] = {}

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Ask for the path; the flow is one TCP connection from the port that is pinned."""
        path = longest_path(self.lab.plan.network, flow.flow.src, flow.flow.dst)
        rate_bps = flow.flow.requested_for(Longest.name)
        request = {
            "source": flow.flow.src,
            "destination": flow.flow.dst,
            "destination_port": port,
            "packet_bytes": flow.scenario.packet_bytes,
            "segment_overhead_bytes": flow.scenario.overhead_bytes,
            "lease_s": LEASE_S,
            "paths": [{"nodes": path, "rate_bps": min(rate_bps, 1e6)}],
        }
        self._flows[flow.name] = view = self.lab.controller.request_flow(request)
        return {"source_ports": [view["streams"][0]["source_port"]]}

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the pinned path."""
        (stream,) = self._flows[flow]["streams"]
        return [CarriedPath(list(stream["path"]), None, stream["source_port"], share=1.0)]


class Longest(ProtocolSpec):
    """As long a way as there is, for the sake of the example."""

    name = "longest"
    description = "plain TCP on the longest simple path by delay"
    plot_style = YELLOW

    def agent(self, lab: Lab) -> Agent:
        """Return what pins the paths."""
        return LongestAgent(lab)

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the longest path of each flow; acknowledgements go back along it."""

        def route(src: str, dst: str) -> Route:
            path = longest_path(plan.network, src, dst)
            return Route((PathAllocation(path=path, rate_bps=None),))

        return {name: route(flow.src, flow.dst) for name, flow in plan.case.flows.items()}


def longest_path(network: Network, src: str, dst: str) -> list[str]:
    """Return the simple path of most delay."""
    delay_s = {(arc.tail, arc.head): arc.delay_s for arc in network.arcs()}
    hosts = set(network.hosts) - {src, dst}
    graph = nx.DiGraph([arc for arc in delay_s if not hosts & set(arc)])
    longest: list[str] = max(
        nx.all_simple_paths(graph, src, dst),
        key=lambda path: sum(delay_s[hop] for hop in itertools.pairwise(path)),
    )
    return longest


protocols.register(Longest())
