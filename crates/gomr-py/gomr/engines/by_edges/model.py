"""The linear programme of routing, as README.md writes it down.

Demands that may take any path are put together by source (and acknowledgement ratio): one variable per source
and edge. Demands that are bound to some paths have one variable per path. Rates are in units of `scale`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gomr.allocation import edges_loaded
from gomr.engines.by_edges.program import Program, Row, Variable
from gomr.engines.decomposition import decompose
from gomr.errors import SolverError
from gomr.objectives import Objective
from gomr.paths.finder import PathFinder
from gomr.problem import Demand, Edge, Path, Problem

PathSets = Mapping[str, tuple[Path, ...]]
"""The only paths that some demands may take, by demand id."""

_MAX_PATHS = 2000
"""Paths that are listed for a demand with a delay limit; one with more is left to another engine."""


def fixed_path_sets(problem: Problem) -> PathSets:
    """Return the paths of the demands that may not take any: given ones, or all within a delay limit.

    Raises:
        SolverError: A delay limit leaves too many paths to list.
    """
    by_id = problem.edges_by_id
    finder = PathFinder(problem)
    sets: dict[str, tuple[Path, ...]] = {}
    for demand in problem.demands:
        if demand.fixed_paths is not None:
            given = [tuple(by_id[edge_id] for edge_id in path) for path in demand.fixed_paths]
            sets[demand.id] = tuple(path for path in given if not demand.is_too_long(path))
        elif demand.max_delay_s is not None:
            try:
                sets[demand.id] = tuple(finder.within_delay(demand, _MAX_PATHS))
            except OverflowError as error:
                reason = f"demands[{demand.id}].max_delay_s leaves {error}; use the engine native"
                raise SolverError("pulp", reason) from None
    return sets


@dataclass
class _SourceGroup:
    """Demands of one source that may take any path, and the flow that they share."""

    source: str
    ack_ratio: float
    demands: list[Demand] = field(default_factory=list)
    flow: dict[Edge, Variable] = field(default_factory=dict)


class RoutingModel:
    """The variables and constraints of one routing problem.

    Attributes:
        program: The programme; solve it for the objectives below.
    """

    def __init__(self, problem: Problem, scale: float, path_sets: PathSets, program: Program) -> None:
        """Build the model; demands outside `path_sets` may take any path."""
        self.program = program
        self._problem = problem
        self._scale = scale
        self._admitted: dict[str, Variable] = {}
        self._loads: dict[str, list[tuple[Variable, float]]] = {edge.id: [] for edge in problem.edges}
        self._path_rates: dict[str, list[tuple[Path, Variable]]] = {}
        self._leaving: dict[str, list[Edge]] = {}
        for edge in problem.edges:
            if edge.capacity_bps > 0:
                self._leaving.setdefault(edge.tail, []).append(edge)
        self._groups = self._make_groups(path_sets)
        for demand in problem.demands:
            if demand.id in path_sets:
                self._add_paths(demand, path_sets[demand.id])
        for group in self._groups:
            self._add_arcs(group)
        self._capacity_rows: dict[str, Row] = {
            edge.id: self.program.row(self._loads[edge.id], problem.useful_capacity_bps(edge) / scale)
            for edge in problem.edges
            if self._loads[edge.id]
        }

    @property
    def unserved(self) -> list[tuple[Variable, float]]:
        """Minus the admitted rate: minimising it maximises the throughput."""
        return [(admitted, -1.0) for admitted in self._admitted.values()]

    @property
    def delay(self) -> list[tuple[Variable, float]]:
        """Sum of delay times rate, in units of the longest edge's delay; hops times rate if all are 0."""
        longest_s = max(edge.delay_s for edge in self._problem.edges)

        def cost(edge: Edge) -> float:
            return edge.delay_s / longest_s if longest_s > 0 else 1.0

        terms = [(variable, cost(edge)) for group in self._groups for edge, variable in group.flow.items()]
        for paths in self._path_rates.values():
            terms += [(variable, math.fsum(map(cost, path))) for path, variable in paths]
        return terms

    def worthless(self, objective: Objective) -> list[tuple[Variable, float]]:
        """Minus the first objective's value; adds the variables that it takes."""
        if not objective.by_parts:
            return self.unserved
        terms = []
        for demand in self._problem.demands:
            if demand.id not in self._admitted:
                continue
            parts = [
                (self.program.variable(rate_bps / self._scale), worth)
                for worth, rate_bps in objective.worths(demand)
            ]
            whole = [(part, 1.0) for part, _ in parts]
            self.program.row([*whole, (self._admitted[demand.id], -1.0)], 0.0, equal=True)
            terms += [(part, -worth) for part, worth in parts]
        return terms

    def utilisation(self) -> list[tuple[Variable, float]]:
        """Return the largest utilisation of an edge; adds the variable and the constraints that it takes."""
        largest = self.program.variable()
        for edge in self._problem.edges:
            if self._loads[edge.id] and edge.capacity_bps > 0:
                share = self._scale / edge.capacity_bps
                terms = [(variable, load * share) for variable, load in self._loads[edge.id]]
                self.program.row([*terms, (largest, -1.0)], 0.0)
        return [(largest, 1.0)]

    def raise_together(self, rising: Iterable[Demand], limit: float) -> tuple[Variable, dict[str, Row]]:
        """Add a level of at most `limit` (in units of rate per weight) that all these demands get.

        Returns:
            The level, and the constraint of each demand that has a path.
        """
        level = self.program.variable(limit / self._scale)
        rows = {
            demand.id: self.program.row([(level, demand.weight), (self._admitted[demand.id], -1.0)], 0.0)
            for demand in rising
        }
        return level, rows

    def hold_at_least(self, rates_bps: Mapping[str, float]) -> None:
        """Let every demand get at least so much."""
        for demand_id, rate_bps in rates_bps.items():
            if rate_bps > 0:
                self.program.row([(self._admitted[demand_id], -1.0)], -rate_bps / self._scale)

    def can_get_something(self, demand: Demand) -> bool:
        """Return whether a demand has a path."""
        if demand.id in self._path_rates:
            return bool(self._path_rates[demand.id])
        return demand.id in self._admitted

    def hold_admitted(self, rates_bps: Mapping[str, float]) -> None:
        """Fix what every demand gets in all."""
        for demand_id, admitted in self._admitted.items():
            self.program.row([(admitted, 1.0)], rates_bps[demand_id] / self._scale, equal=True)

    def rates(self) -> dict[str, list[tuple[Path, float]]]:
        """Return paths and their rates in bit/s, by demand id."""
        rates = {
            demand_id: [(path, self.program.value(variable)) for path, variable in paths]
            for demand_id, paths in self._path_rates.items()
        }
        for group in self._groups:
            flow = {edge: self.program.value(variable) for edge, variable in group.flow.items()}
            admitted = [(demand, self.program.value(self._admitted[demand.id])) for demand in group.demands]
            rates |= decompose(flow, admitted)
        return {
            demand.id: [(path, rate * self._scale) for path, rate in rates.get(demand.id, [])]
            for demand in self._problem.demands
        }

    def prices(self) -> dict[str, float]:
        """Return what one more bit/s of each edge would admit (dual values, after minimising `unserved`)."""
        return {edge_id: -self.program.dual(row) for edge_id, row in self._capacity_rows.items()}

    def _make_groups(self, path_sets: PathSets) -> list[_SourceGroup]:
        groups: dict[tuple[str, float], _SourceGroup] = {}
        for demand in self._problem.demands:
            if demand.id not in path_sets:
                key = (demand.source, demand.reverse_ack_ratio)
                groups.setdefault(key, _SourceGroup(*key)).demands.append(demand)
        return list(groups.values())

    def _add_paths(self, demand: Demand, paths: tuple[Path, ...]) -> None:
        """Add path variables: together they carry what is admitted."""
        admitted = self.program.variable(demand.rate_bps / self._scale)
        rates = [(path, self.program.variable()) for path in paths]
        self.program.row([(rate, 1.0) for _, rate in rates] + [(admitted, -1.0)], 0.0, equal=True)
        for path, rate in rates:
            for edge_id, load in edges_loaded(self._problem, demand.reverse_ack_ratio, path):
                self._loads[edge_id].append((rate, load))
        self._add_admitted(demand, admitted)
        self._path_rates[demand.id] = rates

    def _add_admitted(self, demand: Demand, admitted: Variable) -> None:
        """Note a demand's admitted rate, and the load of the acknowledgements that go their own way."""
        self._admitted[demand.id] = admitted
        for edge_id in demand.ack_edges or ():
            self._loads[edge_id].append((admitted, demand.ack_ratio))

    def _add_arcs(self, group: _SourceGroup) -> None:
        """Add arc variables: what enters a node leaves it, but for what is admitted to it."""
        edges = self._edges_from(group.source)
        reached = {edge.head for edge in edges}
        group.demands = [demand for demand in group.demands if demand.destination in reached]
        balance: dict[str, list[tuple[Variable, float]]] = {}
        for edge in edges:
            variable = group.flow[edge] = self.program.variable()
            balance.setdefault(edge.head, []).append((variable, 1.0))
            if edge.tail != group.source:
                balance.setdefault(edge.tail, []).append((variable, -1.0))
            for edge_id, load in edges_loaded(self._problem, group.ack_ratio, (edge,)):
                self._loads[edge_id].append((variable, load))
        for demand in group.demands:
            admitted = self.program.variable(demand.rate_bps / self._scale)
            self._add_admitted(demand, admitted)
            balance[demand.destination].append((admitted, -1.0))
        for terms in balance.values():
            self.program.row(terms, 0.0, equal=True)

    def _edges_from(self, source: str) -> list[Edge]:
        """Return the edges that a path from a node can use, by breadth-first search; none leads back."""
        nodes, edges, reached = [source], [], {source}
        for node in nodes:  # grows while it is read
            if node != source and node in self._problem.endpoints:
                continue
            for edge in self._leaving.get(node, ()):
                if edge.head != source:
                    edges.append(edge)
                if edge.head not in reached:
                    reached.add(edge.head)
                    nodes.append(edge.head)
        return edges
