"""The paths of a run's flows: allocated or found by the controller's own code, without a controller."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from controller.core.state import Settings, State
from controller.flows.ack_paths import ack_path
from controller.flows.planning import Newcomer, optimise_together
from controller.network.live_network import LiveNetwork
from controller.rules.next_hops import equal_next_hops, next_hops
from controller.wire import Framing
from experiments import protocols
from experiments.engines.base import RunPlan
from experiments.protocols.mptcp import MptcpSdn
from experiments.results import PathAllocation
from experiments.scenario import OBJECTIVES, Flow
from topologies.model import Arc, Network
from topologies.second_interfaces import second_name

Path = tuple[str, ...]
SPLIT = "split"


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


def routes(plan: RunPlan) -> dict[str, Route]:
    """Return the way of each flow of a plan, by the flow's name.

    Raises:
        InvalidRequest: the acknowledgements shall go back along a path that the flow does not have.
        SolverError: the solver failed.
    """
    finders: Mapping[str, Callable[[RunPlan, Routing], dict[str, Route]]] = {
        "ospf": _shortest,
        "ecmp": _hashed,
        "ppfs": _allocated,
        "mstcp": _allocated,
        "mptcp": _shortest,
        "mptcp-dualhomed": _second_shortest,
        "mptcp-sdn": _allocated,
    }
    return finders[plan.protocol](plan, Routing(plan.network))


class Routing:
    """What the controller would know of a network of which everything is up."""

    def __init__(self, network: Network) -> None:
        self.state = State(network, Settings())
        connect_everything(self.state.live)

    @cached_property
    def _attachments(self) -> dict[str, str]:
        return {host.name: host.switch for host in self.state.hosts.all()}

    @cached_property
    def _next(self) -> dict[str, dict[str, str]]:
        return next_hops(self._switch_arcs(), self._attachments)

    @cached_property
    def _equal(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return equal_next_hops(self._switch_arcs(), self._attachments)

    def _switch_arcs(self) -> list[Arc]:
        live = self.state.live
        return [arc for arc in live.up_arcs() if not live.is_host(arc.tail) and not live.is_host(arc.head)]

    def shortest(self, source: str, destination: str) -> Path:
        """Return the default route from one host to another."""
        towards = self._next[destination]
        return self._walk(source, destination, lambda node: towards[node])

    def hashed(self, source: str, destination: str, key: str) -> Path:
        """Return the route that hashing a connection's `key` at each switch gives."""
        towards = self._equal[destination]

        def choose(node: str) -> str:
            digest = hashlib.blake2b(f"{key} {node}".encode(), digest_size=8).digest()
            return towards[node][int.from_bytes(digest, "big") % len(towards[node])]

        return self._walk(source, destination, choose)

    def _walk(self, source: str, destination: str, choose: Callable[[str], str]) -> Path:
        nodes = [source, self._attachments[source]]
        while nodes[-1] != self._attachments[destination]:
            nodes.append(choose(nodes[-1]))
        return (*nodes, destination)


def connect_everything(live: LiveNetwork) -> None:
    """Tell a live network that all its switches are connected and all its links are up."""
    network = live.network
    ports: dict[str, set[int]] = {switch: set() for switch in network.switches}
    arcs = list(network.arcs())
    for arc in arcs:
        if arc.tail in ports:
            ports[arc.tail].add(arc.tail_port)
    for switch, own in ports.items():
        live.connect(live.datapath_id(switch), frozenset(own))
    for arc in arcs:
        if arc.tail in ports and arc.head in ports:
            tail, head = live.datapath_id(arc.tail), live.datapath_id(arc.head)
            live.discovered((tail, arc.tail_port), (head, arc.head_port))


def _shortest(plan: RunPlan, routing: Routing) -> dict[str, Route]:
    def route(flow: Flow) -> Route:
        acks = routing.shortest(flow.dst, flow.src)
        return Route(_unrated(routing.shortest(flow.src, flow.dst)), acks)

    return {name: route(flow) for name, flow in plan.case.flows.items()}


def _second_shortest(plan: RunPlan, routing: Routing) -> dict[str, Route]:
    """Return the shortest paths between the first and between the second interfaces."""

    def route(flow: Flow) -> Route:
        ends = [(flow.src, flow.dst), (second_name(flow.src), second_name(flow.dst))]
        paths = [routing.shortest(*pair) for pair in ends]
        return Route(tuple(PathAllocation(path=list(path), rate_bps=None) for path in paths))

    return {name: route(flow) for name, flow in plan.case.flows.items()}


def _hashed(plan: RunPlan, routing: Routing) -> dict[str, Route]:
    def route(name: str, flow: Flow) -> Route:
        # Both directions are hashed: the addresses of an acknowledgement stand the other way round.
        forward, back = (f"{plan.seed} {name} {direction}" for direction in ("data", "acks"))
        acks = routing.hashed(flow.dst, flow.src, back)
        return Route(_unrated(routing.hashed(flow.src, flow.dst, forward)), acks)

    return {name: route(name, flow) for name, flow in plan.case.flows.items()}


def _unrated(path: Path) -> tuple[PathAllocation, ...]:
    return (PathAllocation(path=list(path), rate_bps=None),)


def _allocated(plan: RunPlan, routing: Routing) -> dict[str, Route]:
    """Return the paths that the case's allocation gives: computed for all flows together, or written down."""
    paths = _computed(plan, routing) if plan.case.allocation in OBJECTIVES else _given(plan)
    return {name: Route(found, _acks(plan, routing, name, found)) for name, found in paths.items()}


def _given(plan: RunPlan) -> dict[str, tuple[PathAllocation, ...]]:
    return {
        name: tuple(
            PathAllocation(path=list(path.path), rate_bps=path.rate_bps)
            for path in flow.given_paths(plan.case.allocation, plan.protocol)
        )
        for name, flow in plan.case.flows.items()
    }


def _computed(plan: RunPlan, routing: Routing) -> dict[str, tuple[PathAllocation, ...]]:
    scenario = plan.scenario
    framing = Framing(scenario.packet_bytes, _overhead_bytes(plan))
    newcomers = [
        Newcomer(
            id=name,
            source=flow.src,
            destination=flow.dst,
            rate_bps=flow.requested_for(plan.protocol),
            framing=framing,
            max_paths=None,
            streams=None,
            acks=_acks_of(plan),
        )
        for name, flow in plan.case.flows.items()
    ]
    found = optimise_together(routing.state, plan.case.allocation, newcomers)
    return {
        name: tuple(PathAllocation(path=list(path.nodes), rate_bps=path.rate_bps) for path in paths)
        for name, paths in found.items()
    }


def _overhead_bytes(plan: RunPlan) -> int:
    protocol = protocols.get(plan.protocol)
    if isinstance(protocol, MptcpSdn):
        return protocol.segment_overhead_bytes(plan.scenario)
    return plan.scenario.overhead_bytes


def _acks_of(plan: RunPlan) -> str | None:
    """Return the rule for the acknowledgements of split flows, as the controller has it."""
    rule = plan.scenario.ppfs.ack_path
    if plan.protocol != "ppfs":
        return None
    # Where they are split themselves, the load that they are reckoned with is that of the shortest path.
    return "shortest" if rule == SPLIT else rule


def _acks(
    plan: RunPlan, routing: Routing, name: str, allocated: tuple[PathAllocation, ...]
) -> Path | str | None:
    rule = _acks_of(plan)
    if rule is None or not allocated:
        return None
    flow = plan.case.flows[name]
    if rule == "shortest":
        one = routing.shortest(flow.dst, flow.src)
        return SPLIT if plan.scenario.ppfs.ack_path == SPLIT and len(allocated) > 1 else one
    return ack_path(routing.state, rule, flow.src, flow.dst, tuple(tuple(path.path) for path in allocated))
