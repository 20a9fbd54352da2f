"""The paths of a run's flows: allocated or found by the controller's own code, without a controller."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from controller.decide.offline import OfflineController, Path
from controller.model.requests import FlowRequest
from experiments import protocols
from experiments.model.plan import RunPlan
from experiments.model.results import PathAllocation
from experiments.model.scenario import OBJECTIVES, Flow
from experiments.model.settings import SPLIT_ACKS
from topologies.model import Network
from topologies.second_interfaces import second_name


@dataclass(frozen=True)
class Route:
    """The way of one flow.

    Attributes:
        allocated: Its paths; rates are None where nothing is allocated. Empty: it is not admitted.
        acks: Path of the acknowledgements, from the destination on; `split` draws one of the reverse paths
            for each; None is the reverse of each path.
    """

    allocated: tuple[PathAllocation, ...]
    acks: Path | str | None = None


def routes(plan: RunPlan, failed: Collection[str] = ()) -> dict[str, Route]:
    """Return the way of each flow of a plan, by the flow's name, around failed links.

    Raises:
        InvalidRequest: the acknowledgements are to go back along a path that the flow does not have.
        SolverError: the solver failed.
    """
    routing = Routing(plan.network, failed)
    found: dict[str, Route] = {}
    for protocol, part in plan.parts().items():
        found.update(protocols.get(protocol).routes(part, routing))
    return {name: found[name] for name in plan.case.flows}


class Routing:
    """Finds the ways of all flows of a plan; protocols choose how. `controller` answers anything else."""

    def __init__(self, network: Network, failed: Collection[str] = ()) -> None:
        self._network, self._failed = network, failed

    @cached_property
    def controller(self) -> OfflineController:
        """The controller's own code over the network."""
        return OfflineController(self._network, self._failed)

    def shortest_routes(self, plan: RunPlan) -> dict[str, Route]:
        """Return default routes, in both directions."""

        def route(flow: Flow) -> Route:
            acks = self.controller.shortest(flow.dst, flow.src)
            return Route(unrated(self.controller.shortest(flow.src, flow.dst)), acks)

        return {name: route(flow) for name, flow in plan.case.flows.items()}

    def second_routes(self, plan: RunPlan) -> dict[str, Route]:
        """Return the default routes between the first and between the second interfaces."""

        def route(flow: Flow) -> Route:
            ends = [(flow.src, flow.dst), (second_name(flow.src), second_name(flow.dst))]
            return Route(unrated(*(self.controller.shortest(*pair) for pair in ends)))

        return {name: route(flow) for name, flow in plan.case.flows.items()}

    def hashed_routes(self, plan: RunPlan) -> dict[str, Route]:
        """Return routes of equal cost, drawn by the run's seed."""

        def route(name: str, flow: Flow) -> Route:
            # Both directions are hashed: the addresses of an acknowledgement stand the other way round.
            forward, back = (f"{plan.seed} {name} {direction}" for direction in ("data", "acks"))
            acks = self.controller.hashed(flow.dst, flow.src, back)
            return Route(unrated(self.controller.hashed(flow.src, flow.dst, forward)), acks)

        return {name: route(name, flow) for name, flow in plan.case.flows.items()}

    def allocated_routes(
        self, plan: RunPlan, overhead_bytes: int, acks: str | None = None, max_paths: int | None = None
    ) -> dict[str, Route]:
        """Return the paths of the case's allocation: computed as its flows ask for them, or written down.

        `overhead_bytes` are headers and options of each full segment; `acks` is the rule for the
        acknowledgements of flows that are split by packets, None for others; `max_paths` the most of a flow.
        """
        given = plan.case.allocation not in OBJECTIVES
        paths = _given(plan) if given else self._computed(plan, overhead_bytes, acks, max_paths)
        return {
            name: Route(allocated, self._acks(plan.case.flows[name], allocated, acks))
            for name, allocated in paths.items()
        }

    def _computed(
        self, plan: RunPlan, overhead_bytes: int, acks: str | None, max_paths: int | None
    ) -> dict[str, tuple[PathAllocation, ...]]:
        # Acknowledgements that are split themselves are planned with the load of the shortest path.
        rule = "shortest" if acks == SPLIT_ACKS else acks
        requests = {
            name: FlowRequest(
                source=flow.src,
                destination=flow.dst,
                destination_port=port,
                rate_bps=plan.requested_bps(name),
                packet_bytes=plan.scenario.packet_bytes,
                segment_overhead_bytes=overhead_bytes,
                ip_version=plan.scenario.ip_version,
                objective=plan.case.allocation,
                max_paths=max_paths,
                splitting="streams" if rule is None else "packets",
                ack_path=rule,
            )
            for port, (name, flow) in enumerate(plan.case.flows.items(), start=1)
        }
        allocated = self.controller.allocate(requests)
        return {
            name: tuple(PathAllocation(path=list(slot.path), rate_bps=slot.rate_bps) for slot in slots)
            for name, slots in allocated.items()
        }

    def _acks(self, flow: Flow, allocated: tuple[PathAllocation, ...], rule: str | None) -> Path | str | None:
        if rule is None or not allocated:
            return None
        if rule == SPLIT_ACKS:
            return SPLIT_ACKS if len(allocated) > 1 else self.controller.shortest(flow.dst, flow.src)
        if rule == "shortest":
            return self.controller.shortest(flow.dst, flow.src)
        return self.controller.ack_path(rule, flow.src, flow.dst, [path.path for path in allocated])


def unrated(*paths: Path) -> tuple[PathAllocation, ...]:
    """Return paths to which no rate is allocated."""
    return tuple(PathAllocation(path=list(path), rate_bps=None) for path in paths)


def _given(plan: RunPlan) -> dict[str, tuple[PathAllocation, ...]]:
    return {
        name: tuple(
            PathAllocation(path=list(path.path), rate_bps=path.rate_bps)
            for path in flow.given_paths(plan.case.allocation, plan.protocol)
        )
        for name, flow in plan.case.flows.items()
    }
