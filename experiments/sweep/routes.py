"""The ways of a sweep's flows: the optimum's paths, or default routes between any two nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controller.decide.offline import hashed_path
from controller.state.least_delay import LeastDelay
from controller.state.live_network import arc_name
from experiments.engines.sim.routing import Route, Routing, unrated
from experiments.model.plan import RunPlan
from experiments.sweep.offered_load import OfferedFlow
from experiments.sweep.plan import Metric
from topologies.model import Network


class DefaultRoutes:
    """Shortest paths by delay or by the number of links, found when they are asked for."""

    def __init__(self, network: Network, metric: Metric) -> None:
        """Take what is routed over."""
        arcs = {arc_name(arc.tail, arc.head): arc for arc in network.arcs()}
        if metric == "hops":
            arcs = {name: replace(arc, delay_s=1.0) for name, arc in arcs.items()}
        self._trees = LeastDelay([node.name for node in network.nodes], arcs)
        for name in arcs:
            self._trees.set_up(name, True)

    def shortest(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the nodes of the shortest path; of several, the one that the controller takes."""
        path = self._trees.path(source, destination)
        assert path is not None, "networks are connected"
        return path

    def hashed(self, source: str, destination: str, key: str) -> tuple[str, ...]:
        """Return the nodes of one of the shortest paths: `key` is hashed at each node."""
        return hashed_path(self._trees, source, destination, key)


class SweepRouting(Routing):
    """What protocols are routed by in a sweep: acknowledgements go back along the data's path."""

    def __init__(self, plan: RunPlan, routes: DefaultRoutes, offered: Mapping[str, OfferedFlow]) -> None:
        super().__init__(plan.network)
        self._routes = routes
        self._offered = offered

    def shortest_routes(self, plan: RunPlan) -> dict[str, Route]:
        """Return default routes by the sweep's metric."""
        return {
            name: Route(unrated(self._routes.shortest(flow.src, flow.dst)))
            for name, flow in plan.case.flows.items()
        }

    def hashed_routes(self, plan: RunPlan) -> dict[str, Route]:
        """Return routes of equal cost, drawn by the point's seed."""
        return {
            name: Route(unrated(self._routes.hashed(flow.src, flow.dst, f"{plan.seed} {name}")))
            for name, flow in plan.case.flows.items()
        }

    def allocated_routes(
        self, plan: RunPlan, overhead_bytes: int, acks: str | None = None, max_paths: int | None = None
    ) -> dict[str, Route]:
        """Return the paths of the optimum; acknowledgements of split flows go back along the shortest."""
        del overhead_bytes, max_paths

        offered = {name: self._offered[name] for name in plan.case.flows}
        return {
            name: Route(flow.paths, None if acks is None else self._routes.shortest(flow.dst, flow.src))
            for name, flow in offered.items()
        }
