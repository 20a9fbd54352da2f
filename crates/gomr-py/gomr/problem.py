"""The routing problem as data: directed edges, demands, and the checks that they make sense.

A `Problem` checks itself when it is made, so every `Problem` there is can be handed to any engine. Rates are
wire rates in bit/s (all headers included), delays seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from gomr.columns import LARGEST_RATE, DemandColumns
from gomr.errors import InvalidProblem


@dataclass(frozen=True)
class Edge:
    """One direction of a link.

    Parallel edges are allowed. A capacity of 0 is a link that is down, `inf` one without a limit.
    """

    id: str
    tail: str
    head: str
    capacity_bps: float
    delay_s: float


Path = tuple[Edge, ...]


@dataclass(frozen=True)
class Demand:
    """A flow that wants `rate_bps` from `source` to `destination`.

    Attributes:
        id: Unique name of the demand.
        source: Node where the data enters the network.
        destination: Where it leaves. If this is the source too, the demand needs no network: it is admitted
            in full over a path without edges.
        rate_bps: Wire rate asked for; an allocation admits at most this much.
        max_paths: At most this many paths; None for no limit.
        fixed_paths: Only these paths (edge ids from source to destination); their rates are free. For a flow
            that runs already. None leaves the choice of paths to the engine.
        ack_ratio: Load on the reverse edge of every edge that is used, per bit/s of data. One 54-byte
            acknowledgement for every two 590-byte packets is 54 / (2 x 590) = 0.0458.
        ack_edges: The acknowledgements of all its data take this path (edge ids from destination to source),
            whichever paths the data takes. None: they take the reverse of the path of their data.
        weight: What a bit/s of it counts beside those of others, for the objectives `fair` and `max_min`.
        max_delay_s: No path has a longer delay than this.
        disjoint: Its paths share no "edges", or no "nodes" between its ends (and no edges).
    """

    id: str
    source: str
    destination: str
    rate_bps: float
    max_paths: int | None = None
    fixed_paths: tuple[tuple[str, ...], ...] | None = None
    ack_ratio: float = 0.0
    ack_edges: tuple[str, ...] | None = None
    weight: float = 1.0
    max_delay_s: float | None = None
    disjoint: Literal["edges", "nodes"] | None = None

    @property
    def is_local(self) -> bool:
        """Whether it stays at its source."""
        return self.source == self.destination

    @property
    def delay_limit_s(self) -> float:
        """`max_delay_s` with room for the rounding of a sum; infinite if there is none."""
        return math.inf if self.max_delay_s is None else self.max_delay_s * (1 + 1e-12)

    def is_too_long(self, path: Iterable[Edge]) -> bool:
        """Return whether the path has a longer delay than the demand allows."""
        return self.max_delay_s is not None and sum(edge.delay_s for edge in path) > self.delay_limit_s

    @property
    def reverse_ack_ratio(self) -> float:
        """`ack_ratio` where acknowledgements go back the way of their data, else 0."""
        return self.ack_ratio if self.ack_edges is None else 0.0


@dataclass(frozen=True)
class Problem:
    """A network and what is asked of it.

    Attributes:
        edges: The directed edges; the nodes are their ends.
        demands: The flows, in the order in which ties between them are broken: a tuple, or `DemandColumns`.
        reverse: Id of the edge that carries the acknowledgements of each edge's data. Every edge needs one as
            soon as a demand has an `ack_ratio` but no `ack_edges`.
        endpoints: Nodes that send and receive but forward nothing, such as hosts.
        isolated: Nodes without edges, whose demands get nothing.

    Raises:
        InvalidProblem: Something in it contradicts itself; `field` names it, as `demands[f1].rate_bps`.
    """

    edges: tuple[Edge, ...]
    demands: Sequence[Demand]
    reverse: Mapping[str, str] | None = None
    endpoints: frozenset[str] = frozenset()
    isolated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.edges:
            raise InvalidProblem("edges", "the network is empty; give at least one edge")
        _check_unique("edges", [edge.id for edge in self.edges])
        edges = self.edges_by_id
        for edge in self.edges:
            _check_edge(edge)
        for node in sorted(self.endpoints - self.nodes):
            raise InvalidProblem("endpoints", f"{node!r} is not a node of the network")
        if self.reverse is not None:
            _check_reverse(self.reverse, edges)
        if isinstance(self.demands, DemandColumns):
            self._check_columns(self.demands)
            return
        _check_unique("demands", [demand.id for demand in self.demands])
        for demand in self.demands:
            self.check_demand(demand)

    def _check_columns(self, demands: DemandColumns) -> None:
        """Check what the columns have not checked themselves."""
        used = np.union1d(demands.source, demands.destination)
        for node in [demands.nodes[place] for place in used.tolist()]:
            if node not in self.nodes:
                raise InvalidProblem("demands", f"{node!r} is not a node of the network")

    def asking(self, demands: Sequence[Demand]) -> Problem:
        """Return the problem with other demands, which were checked before over these edges."""
        made = object.__new__(type(self))
        of_edges = ("edges", "reverse", "endpoints", "isolated", "edges_by_id", "nodes", "_capacity_at_nodes")
        known = vars(self)
        vars(made).update({name: known[name] for name in of_edges if name in known}, demands=demands)
        return made

    @cached_property
    def edges_by_id(self) -> Mapping[str, Edge]:
        """The edges, by their ids."""
        return {edge.id: edge for edge in self.edges}

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The ends of the edges, and the nodes without edges."""
        return self.isolated.union(node for edge in self.edges for node in (edge.tail, edge.head))

    def useful_capacity_bps(self, edge: Edge) -> float:
        """Return the capacity of an edge, cut at what all demands together could ever put on it."""
        return min(edge.capacity_bps, self._largest_load_bps)

    def useful_rate_bps(self, demand: Demand) -> float:
        """Return a demand's rate, cut at what the edges at its ends could ever carry."""
        leaving, entering = self._capacity_at_nodes
        return min(demand.rate_bps, leaving.get(demand.source, 0.0), entering.get(demand.destination, 0.0))

    @cached_property
    def _capacity_at_nodes(self) -> tuple[dict[str, float], dict[str, float]]:
        leaving: dict[str, float] = {}
        entering: dict[str, float] = {}
        for edge in self.edges:
            leaving[edge.tail] = leaving.get(edge.tail, 0.0) + edge.capacity_bps
            entering[edge.head] = entering.get(edge.head, 0.0) + edge.capacity_bps
        return leaving, entering

    @cached_property
    def unit_bps(self) -> float:
        """A unit that keeps the numbers of a programme around 1, the largest useful rate to a power of two.

        A power of two, so that scaling rounds nothing; 0 if nothing can be carried.
        """
        useful_bps = max(self.useful_capacity_bps(edge) for edge in self.edges)
        return math.ldexp(1.0, math.frexp(useful_bps)[1]) if useful_bps > 0 else 0.0

    @cached_property
    def _largest_load_bps(self) -> float:
        # A path visits no node twice, so it loads an edge with data or with acknowledgements, and once,
        # unless the acknowledgements go their own way.
        return math.fsum(
            demand.rate_bps
            * (max(1.0, demand.ack_ratio) if demand.ack_edges is None else 1.0 + demand.ack_ratio)
            for demand in self.demands
        )

    def check_demand(self, demand: Demand) -> None:
        """Check that a demand makes sense over these edges, whether it is one of the problem's or not.

        Raises:
            InvalidProblem: It does not; `field` names what is wrong.
        """
        field = f"demands[{demand.id}]"
        check_own_fields(field, demand)
        for name, node in (("source", demand.source), ("destination", demand.destination)):
            if node not in self.nodes:
                raise InvalidProblem(f"{field}.{name}", f"{node!r} is not a node of the network")
        if demand.is_local and (demand.fixed_paths is not None or demand.ack_edges is not None):
            raise InvalidProblem(
                f"{field}.destination", "is the source too; such a flow has no paths to give"
            )
        if demand.reverse_ack_ratio > 0 and len(self.reverse or {}) < len(self.edges):
            raise InvalidProblem("reverse", f"{field} has an ack_ratio, so every edge needs a reverse edge")
        if demand.fixed_paths is not None:
            self._check_fixed_paths(demand, demand.fixed_paths)
        if demand.ack_edges is not None:
            ends = (demand.destination, demand.source)
            self._check_path(f"demands[{demand.id}].ack_edges", ends, demand.ack_edges)

    def _check_fixed_paths(self, demand: Demand, paths: tuple[tuple[str, ...], ...]) -> None:
        field = f"demands[{demand.id}].fixed_paths"
        if not paths:
            raise InvalidProblem(field, "holds no path; leave it None to let the engine choose")
        if len(set(paths)) < len(paths):
            raise InvalidProblem(field, "holds the same path twice")
        for index, path in enumerate(paths):
            self._check_path(f"{field}[{index}]", (demand.source, demand.destination), path)

    def _check_path(self, field: str, ends: tuple[str, str], path: tuple[str, ...]) -> None:
        nodes = [ends[0]]
        for edge_id in path:
            edge = self.edges_by_id.get(edge_id)
            if edge is None:
                raise InvalidProblem(field, f"{edge_id!r} is not an edge of the network")
            if edge.tail != nodes[-1]:
                raise InvalidProblem(field, f"edge {edge_id!r} does not start at {nodes[-1]!r}")
            nodes.append(edge.head)
        if nodes[-1] != ends[1]:
            raise InvalidProblem(field, f"ends at {nodes[-1]!r}, not at {ends[1]!r}")
        if len(set(nodes)) < len(nodes):
            raise InvalidProblem(field, "visits a node twice")
        for node in nodes[1:-1]:
            if node in self.endpoints:
                raise InvalidProblem(field, f"passes through {node!r}, which forwards nothing")


def _check_unique(field: str, ids: Iterable[str]) -> None:
    seen = set()
    for name in ids:
        if name in seen:
            raise InvalidProblem(f"{field}[{name}].id", "is given twice; ids must be unique")
        seen.add(name)


def _check_edge(edge: Edge) -> None:
    field = f"edges[{edge.id}]"
    check_capacity(f"{field}.capacity_bps", edge.capacity_bps)
    check_number(f"{field}.delay_s", edge.delay_s)
    if edge.tail == edge.head:
        raise InvalidProblem(f"{field}.head", f"is the tail too ({edge.tail!r}); an edge joins two nodes")


def check_own_fields(field: str, demand: Demand) -> None:
    """Check what needs no network."""
    check_number(f"{field}.rate_bps", demand.rate_bps)
    check_number(f"{field}.ack_ratio", demand.ack_ratio)
    check_number(f"{field}.weight", demand.weight)
    if demand.weight == 0:
        raise InvalidProblem(f"{field}.weight", "must be above 0")
    if demand.max_paths is not None and demand.max_paths < 1:
        raise InvalidProblem(f"{field}.max_paths", f"must be at least 1, not {demand.max_paths}")
    if demand.max_delay_s is not None:
        check_number(f"{field}.max_delay_s", demand.max_delay_s)
    if demand.disjoint not in (None, "edges", "nodes"):
        raise InvalidProblem(f"{field}.disjoint", f"must be 'edges' or 'nodes', not {demand.disjoint!r}")


def _check_reverse(reverse: Mapping[str, str], edges: Mapping[str, Edge]) -> None:
    for edge_id, reverse_id in reverse.items():
        field = f"reverse[{edge_id}]"
        for name in (edge_id, reverse_id):
            if name not in edges:
                raise InvalidProblem(field, f"{name!r} is not an edge of the network")
        forth, back = edges[edge_id], edges[reverse_id]
        if (forth.tail, forth.head) != (back.head, back.tail):
            raise InvalidProblem(field, f"{reverse_id!r} does not lead from {forth.head!r} to {forth.tail!r}")


def check_capacity(field: str, value: float) -> None:
    """Check that a capacity is a number of at least 0, perhaps infinite; InvalidProblem names the field."""
    if value != math.inf:
        check_number(field, value)


def check_number(field: str, value: float) -> None:
    """Check that a rate, delay or weight is a finite number, not negative; InvalidProblem names the field."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidProblem(field, f"must be a number, not {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise InvalidProblem(field, f"must be a finite number of at least 0, not {value}")
    if value > LARGEST_RATE:
        raise InvalidProblem(field, f"must be a number of at most {LARGEST_RATE:g}, not {value}")
