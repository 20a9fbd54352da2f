"""What a controller would answer on a network: routes and allocations.

routing = OfflineController(topologies.load("butterfly"))
routing.shortest("T0", "T2")
routing.allocate({"1": FlowRequest(source="T0", destination="T2", destination_port=1, rate_bps=8.5e6)})
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from controller.compile.next_hops import equal_next_hops, next_hops
from controller.decide.ack_paths import ack_path
from controller.decide.granting import grant
from controller.decide.live_optima import LiveOptima
from controller.errors import InfeasibleRequest
from controller.model.requests import FlowRequest
from controller.model.settings import Settings
from controller.state.flow import Flow, Slot
from controller.state.live_network import LiveNetwork
from controller.state.state import State
from topologies.model import Arc, Network

Path = tuple[str, ...]
"""Nodes from host to host."""


class OfflineController:
    """Routes and allocations on a network whose switches are connected and whose links are up."""

    def __init__(self, network: Network, failed: Collection[str] = ()) -> None:
        self._state = State(network, Settings())
        connect_everything(self._state.live)
        self._state.live.fail(failed, ())

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

    def allocate(self, requests: Mapping[str, FlowRequest]) -> dict[str, tuple[Slot, ...]]:
        """Return the paths of flows that are asked for one after the other, once all of them run.

        Each is granted as the controller grants it: the flows before it keep their paths, and their rates
        change so that all are optimal together. No two of them have the same ends and ports. One for which
        the network has nothing left has no paths.

        Raises:
            InvalidRequest: Acknowledgements are to go back along a path that the flow does not have.
            SolverError: The solver failed.
        """
        optima, granted = LiveOptima(self._state.live), dict[str, Flow]()
        for number, (name, request) in enumerate(requests.items(), start=1):
            try:
                grants = grant(self._state, optima, request, name, number, is_settled=True)
            except InfeasibleRequest:
                continue
            assert grants is not None, "it may take a solve"
            granted[name] = flow = grants.flow
            self._state.flows.add(flow)
            for flow_id, rates in grants.rates.items():
                for stream, rate_bps in zip(granted[flow_id].streams, rates, strict=True):
                    stream.rate_bps = rate_bps
                self._state.flows.account(granted[flow_id])
        for flow in granted.values():
            self._state.flows.remove(flow)
        return {name: granted[name].slots() if name in granted else () for name in requests}

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
