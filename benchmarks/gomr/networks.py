"""The networks of the benchmark and their demands."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from pathlib import Path

import topologies
from gomr import Demand, Problem, from_network
from gomr.demands import Traffic, scaled
from gomr.load import load_factor
from topologies import Link, Network, Node

LOAD = 1.1
"""91 % are admitted."""
SEED = 1


@dataclass(frozen=True)
class Size:
    """A network by how it is made, and how many flows it gets.

    `spec` is `butterfly`, `geometric:N` or the path of a GraphML file.
    """

    spec: str
    flows: int

    @property
    def name(self) -> str:
        """A short name."""
        return Path(self.spec).stem.replace(":", " ")


@dataclass(frozen=True)
class Loaded:
    """A problem, what makes further flows, and the problem with three times the rates."""

    problem: Problem
    nodes: int
    traffic: Traffic | None
    factor: float

    def arriving(self, name: str) -> Demand:
        """Return a further flow."""
        if self.traffic is None:
            return replace(random.Random(name).choice(self.problem.demands), id=name)
        return scaled([self.traffic.flow(name)], self.factor)[0]

    def overloaded(self) -> Problem:
        """Return the problem with three times the rates."""
        return replace(self.problem, demands=scaled(self.problem.demands, 3.0))


def load(size: Size) -> Loaded:
    """Return a network with its demands: gravity at a load of 1.1, on the butterfly the paper's two flows."""
    if size.spec == "butterfly":
        network = topologies.load("butterfly")
        demands = (Demand("1", "T0", "T2", 9.5e6), Demand("2", "T1", "T3", 5e6))
        return Loaded(from_network(network, demands), len(network.nodes), None, 1.0)
    if size.spec.startswith("geometric:"):
        network = geometric(int(size.spec.partition(":")[2]))
    else:
        # networkx is slow to import, and nothing else here needs it.
        from topologies.routable import load_routable

        network = load_routable(size.spec).network
    traffic = Traffic("gravity", network.switches, SEED)
    flows = traffic.flows(size.flows)
    factor = load_factor(from_network(network, flows), LOAD)
    return Loaded(from_network(network, scaled(flows, factor)), len(network.nodes), traffic, factor)


def geometric(count: int) -> Network:
    """Return a wide-area network: nodes in a square, each linked to its three nearest, 10, 40 or 100 Gbit/s.

    Every node is linked to the nearest of those before it too, so the network is connected. The side of the
    square is 20 ms long.
    """
    rng = random.Random(SEED)
    places = [(rng.random(), rng.random()) for _ in range(count)]

    def far(a: int, b: int) -> float:
        return math.dist(places[a], places[b])

    pairs = {(min(range(a), key=lambda b, a=a: far(a, b)), a) for a in range(1, count)}  # type: ignore[misc]
    for a in range(count):
        nearest = sorted((b for b in range(count) if b != a), key=lambda b, a=a: far(a, b))  # type: ignore[misc]
        pairs |= {(min(a, b), max(a, b)) for b in nearest[:3]}
    links = tuple(
        Link(ends=(f"n{a}", f"n{b}"), rate_bps=rng.choice((10e9, 40e9, 100e9)), delay_us=far(a, b) * 20e3)
        for a, b in sorted(pairs)
    )
    nodes = tuple(Node(name=f"n{i}", kind="switch", x=x, y=y) for i, (x, y) in enumerate(places))
    return Network(name=f"geometric{count}", nodes=nodes, links=links)
