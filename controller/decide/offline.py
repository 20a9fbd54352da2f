"""What a controller would answer on a network: routes and allocations.

routing = OfflineController(topologies.load("butterfly"))
routing.shortest("T0", "T2")
routing.allocate({"1": FlowRequest(source="T0", destination="T2", destination_port=1, rate_bps=8.5e6)})
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from controller.decide.ack_paths import ack_path
from controller.decide.granting import grant
from controller.decide.live_optima import LiveOptima
from controller.errors import InfeasibleRequest
from controller.model.requests import FlowRequest
from controller.model.settings import Settings
from controller.state.flow import Flow, Slot
from controller.state.least_delay import LeastDelay
from controller.state.state import State
from topologies.model import Network

Path = tuple[str, ...]
"""Nodes from host to host."""


class OfflineController:
    """Routes and allocations on a network whose switches are connected and whose links are up."""

    def __init__(self, network: Network, failed: Collection[str] = ()) -> None:
        self._state = State(network, Settings())
        self._state.live.assume_all()
        self._state.live.fail(failed, ())

    def shortest(self, source: str, destination: str) -> Path:
        """Return the default route from one host to another: that of least delay."""
        start, end = self._switch(source), self._switch(destination)
        switches = self._state.live.least_delay.path(start, end)
        assert switches is not None, "the links that are up lead there"
        return (source, *switches, destination)

    def hashed(self, source: str, destination: str, key: str) -> Path:
        """Return the route of equal cost that hashing a connection's `key` at each switch gives."""
        start, end = self._switch(source), self._switch(destination)
        return (source, *hashed_path(self._state.live.least_delay, start, end, key), destination)

    def _switch(self, host: str) -> str:
        found = self._state.hosts.find(host)
        assert found is not None, f"{host} is no host of the network"
        return found.switch

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


def hashed_path(trees: LeastDelay, start: str, end: str, key: str) -> Path:
    """Return one of the paths of least delay between two nodes: `key` is hashed at each of them."""
    nearer, nodes = trees.nearer(end), [start]
    while nodes[-1] != end:
        choices = nearer[nodes[-1]]
        digest = hashlib.blake2b(f"{key} {nodes[-1]}".encode(), digest_size=8).digest()
        nodes.append(choices[int.from_bytes(digest, "big") % len(choices)])
    return tuple(nodes)
