"""What a controller would answer on a network of which everything is up: routes and allocations.

routing = OfflineController(topologies.load("butterfly"))
routing.shortest("T0", "T2")
routing.allocate("max_throughput_min_delay", [FlowRequest("1", "T0", "T2", 8.5e6, Framing())])
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from controller.compile.next_hops import equal_next_hops, next_hops
from controller.decide.ack_paths import ack_path
from controller.decide.planning import Newcomer, PlannedPath, optimise_together
from controller.state.live_network import LiveNetwork
from controller.state.state import Settings, State
from controller.wire import Framing
from topologies.model import Arc, Network

__all__ = ["FlowRequest", "Framing", "OfflineController", "Path", "PlannedPath"]

Path = tuple[str, ...]
"""Nodes from host to host."""


@dataclass(frozen=True)
class FlowRequest:
    """A flow that is asked for.

    Attributes:
        id: Its name in the answer.
        source: Host that sends.
        destination: Host that receives.
        rate_bps: Goodput.
        framing: How its bytes are put on the wire.
        acks: Rule for the acknowledgements of a flow that is split by packets (`shortest`,
            `reverse:<index>`); None: a connection for each path, with acknowledgements on its reverse.
    """

    id: str
    source: str
    destination: str
    rate_bps: float
    framing: Framing
    acks: str | None = None


class OfflineController:
    """Routes and allocations on a network whose switches are connected and whose links are up."""

    def __init__(self, network: Network) -> None:
        self._state = State(network, Settings())
        connect_everything(self._state.live)

    def shortest(self, source: str, destination: str) -> Path:
        """Return the default route from one host to another: that of least delay."""
        towards = self._next[destination]
        return self._walk(source, destination, lambda node: towards[node])

    def hashed(self, source: str, destination: str, key: str) -> Path:
        """Return the route of equal cost that hashing a connection's `key` at each switch gives."""
        towards = self._equal[destination]

        def choose(node: str) -> str:
            digest = hashlib.blake2b(f"{key} {node}".encode(), digest_size=8).digest()
            return towards[node][int.from_bytes(digest, "big") % len(towards[node])]

        return self._walk(source, destination, choose)

    def allocate(self, objective: str, requests: Sequence[FlowRequest]) -> dict[str, tuple[PlannedPath, ...]]:
        """Return the paths of flows that are asked for at the same time, by one solve for all.

        Args:
            objective: One of `controller.gomr.OBJECTIVES`.
            requests: The flows.

        Returns:
            The paths of each flow by its id; none where the network has nothing left for it.

        Raises:
            InvalidRequest: Acknowledgements are to go back along a path that the flow does not have.
            SolverError: The solver failed.
        """
        newcomers = [
            Newcomer(
                id=each.id,
                source=each.source,
                destination=each.destination,
                rate_bps=each.rate_bps,
                framing=each.framing,
                max_paths=None,
                streams=None,
                acks=each.acks,
            )
            for each in requests
        ]
        return optimise_together(self._state, objective, newcomers)

    def ack_path(self, acks: str, source: str, destination: str, paths: Sequence[Sequence[str]]) -> Path:
        """Return the path of a split flow's acknowledgements by their rule, from the destination on.

        Raises:
            InvalidRequest: The rule names a path that the flow does not have.
        """
        return ack_path(self._state, acks, source, destination, tuple(tuple(path) for path in paths))

    @cached_property
    def _attachments(self) -> dict[str, str]:
        return {host.name: host.switch for host in self._state.hosts.all()}

    @cached_property
    def _next(self) -> dict[str, dict[str, str]]:
        return next_hops(self._switch_arcs(), self._attachments)

    @cached_property
    def _equal(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return equal_next_hops(self._switch_arcs(), self._attachments)

    def _switch_arcs(self) -> list[Arc]:
        live = self._state.live
        return [arc for arc in live.up_arcs() if not live.is_host(arc.tail) and not live.is_host(arc.head)]

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
