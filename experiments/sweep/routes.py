"""The paths of flows without an allocation: the controller's default routes, between any two nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from controller.compile.next_hops import equal_next_hops, next_hops
from experiments.sweep.plan import Metric
from topologies.model import Network


class Routes:
    """Shortest paths by delay or by the number of links, found when they are asked for."""

    def __init__(self, network: Network, metric: Metric) -> None:
        """Take what is routed over."""
        arcs = list(network.arcs())
        self._arcs = arcs if metric == "delay" else [replace(arc, delay_s=1.0) for arc in arcs]
        self._first: dict[str, dict[str, str]] = {}
        self._equal: dict[str, dict[str, tuple[str, ...]]] = {}

    def shortest(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the nodes of the shortest path; of several, the one that the controller takes."""
        if destination not in self._first:
            self._first |= next_hops(self._arcs, {destination: destination})
        towards = self._first[destination]
        return _walk(source, destination, towards.__getitem__)

    def hashed(self, source: str, destination: str, key: str) -> tuple[str, ...]:
        """Return the nodes of one of the shortest paths: `key` is hashed at each node."""
        if destination not in self._equal:
            self._equal |= equal_next_hops(self._arcs, {destination: destination})
        towards = self._equal[destination]

        def choose(node: str) -> str:
            digest = hashlib.blake2b(f"{key} {node}".encode(), digest_size=8).digest()
            return towards[node][int.from_bytes(digest, "big") % len(towards[node])]

        return _walk(source, destination, choose)


def _walk(source: str, destination: str, choose: Callable[[str], str]) -> tuple[str, ...]:
    nodes = [source]
    while nodes[-1] != destination:
        nodes.append(choose(nodes[-1]))
    return tuple(nodes)
