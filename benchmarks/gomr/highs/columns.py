"""The programme of the engine `highs`: one variable for each path known, and the pricing that finds more.

Row 0 to the number of edges less 1 are the edges; each demand has a
row that says that its paths carry what is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from benchmarks.gomr.highs.filling import Throughput
from benchmarks.gomr.highs.trees import Relaxation, Trees
from gomr.allocation import Rates
from gomr.engines.answer import Answer
from gomr.engines.linear_program import LinearProgram, Numbers
from gomr.objectives import Objective
from gomr.paths.finder import PathFinder
from gomr.paths.numbering import Numbering
from gomr.problem import Demand, Edge, Path, Problem

_GAIN = 1e-12
"""A path that gains less than this, relative to the largest gain there can be, is not worth adding."""
_PROVED = 5e-10
"""Relative gap up to which the first objective counts as proved."""
_WELL_SCALED = 0.25
"""A utilisation above this, in its unit, is exact to the solver's tolerance."""
_MOST_RAISES = 12
_NO_PRICE = 1e-11
"""A price up to this is the rounding of 0."""
_ASKED = 1e-10
"""What is asked for is served to this share of it ..."""
_LOST = 1e-12
"""... or to this share of the unit of rates."""
_RATE_TOLERANCE = 1e-13
"""Rates up to this, in units, are rounding."""


class ColumnMaster:
    """A problem's programme, kept in the solver from one question to the next."""

    def __init__(
        self, problem: Problem, objective: Objective, unit_bps: float, program: LinearProgram
    ) -> None:
        """State the problem.

        Args:
            problem: The problem.
            objective: What a demand's rate is worth.
            unit_bps: The unit of rates.
            program: An empty programme.
        """
        self._problem = problem
        self._objective = objective
        self._unit_bps = unit_bps
        self._program = program
        self._pricing = _Pricing(problem)
        self._asked = {demand.id: demand.rate_bps for demand in problem.demands}
        self._columns: list[tuple[Demand, Path, int]] = []
        self._known: set[tuple[str, Path]] = set()
        self._big_m = 1.0
        for edge in problem.edges:
            self._program.row({}, upper=problem.useful_capacity_bps(edge) / self._unit_bps)
        self._row: dict[str, int] = {}
        self._widest = max(problem.edges, key=problem.useful_capacity_bps)
        self._admitted: dict[str, int] = {}
        self._parts: dict[str, list[tuple[float, int]]] = {}
        for demand in problem.demands:
            self._add_demand(demand)
        self._add_first_paths()
        self._reached = {demand.id for demand, _, _ in self._columns}

    def can_reach(self, demand: Demand) -> bool:
        """Return whether a path can carry something of a demand."""
        return demand.id in self._reached

    def ask(self, rates_bps: Mapping[str, float]) -> None:
        """Let the demands ask for other rates; for objectives that value a demand's rate as a whole."""
        self._asked = dict(rates_bps)
        for name, rate_bps in rates_bps.items():
            self._program.bound_variable(self._admitted[name], 0.0, rate_bps / self._unit_bps)

    def lexicographic(self, *, refine: bool = False) -> tuple[Rates, Throughput]:
        """Maximise the first objective and then minimise the delay; return the rates and the proof.

        Args:
            refine: Correct the rates beyond the solver's tolerance. Then all that is asked for must fit, and
                an answer that does not serve it is none.

        Raises:
            SolverError: HiGHS failed, the time is up or the first objective cannot be proved.
        """
        for _ in range(_MOST_RAISES):
            first = {variable: -self._big_m * worth for variable, worth in self._worths()}
            costs = {**first, **self._delays()}
            self._generate(costs, self._pricing.delay, weight=self._big_m, refine=refine)
            rates = self._rates()
            value = self._value()
            self._program.minimise({variable: -worth for variable, worth in self._worths()})
            proof = self._proof()
            gap = 1 - value / proof.bound_bps if proof.bound_bps > 0 else 0.0
            self._program.budget.learn(value_bps=value, bound_bps=proof.bound_bps, gap=gap)
            served = refine and self._serves_what_is_asked(rates)
            if served or (not refine and proof.bound_bps - value <= _PROVED * proof.bound_bps):
                return rates, proof
            self._big_m *= 4
        raise self._program.budget.failure("the first objective is not proved optimal")

    def _serves_what_is_asked(self, rates: Rates) -> bool:
        lost_bps = _LOST * self._unit_bps
        return all(
            math.fsum(rate_bps for _, rate_bps in rates[name]) >= asked_bps * (1 - _ASKED) - lost_bps
            for name, asked_bps in self._asked.items()
        )

    def throughput(self, *, refine: bool = False) -> Throughput:
        """Maximise the first objective alone; return what proves it.

        Args:
            refine: Correct the proof beyond the solver's tolerance.

        Raises:
            SolverError: HiGHS failed or the time is up.
        """
        nothing = np.zeros(len(self._problem.edges))
        costs = {variable: -worth for variable, worth in self._worths()}
        self._generate(costs, nothing, weight=1.0, refine=refine)
        return self._proof()

    def spread_over_edges(self) -> Rates:
        """Keep what all demands ask for, make the fullest edge as empty as can be, then minimise the delay.

        Raises:
            SolverError: HiGHS failed or the time is up.
        """
        program = self._program
        for name, variable in self._admitted.items():
            if name in self._reached:
                rate = self._asked[name] / self._unit_bps
                program.bound_variable(variable, rate, rate)
        (largest,) = program.columns([0.0], [dict.fromkeys(range(len(self._problem.edges)), -1.0)])
        unit = 1.0
        while True:
            self._relate_capacities(largest, unit)
            self._generate({largest: 1.0}, np.zeros(len(self._problem.edges)))
            largest_value = float(program.values()[largest])
            if largest_value == 0 or largest_value > _WELL_SCALED:
                break
            unit *= largest_value
        program.bound_variable(largest, 0.0, largest_value)
        self._generate(self._delays(), self._pricing.delay)
        return self._rates()

    def _relate_capacities(self, largest: int, unit: float) -> None:
        """Let no edge carry more than its share of `largest`, which counts in `unit`s of utilisation.

        Edges that all demands together cannot fill so far take no part: their numbers would be too large
        beside the others.
        """
        most = 2.0 * self._problem.useful_capacity_bps(self._widest) / self._unit_bps
        for row, edge in enumerate(self._problem.edges):
            capacity = edge.capacity_bps / self._unit_bps * unit
            matters = math.isfinite(capacity) and (unit == 1.0 or capacity * _WELL_SCALED <= most)
            self._program.set_factor(row, largest, -capacity if matters else 0.0)
            self._program.bound_row(row, -math.inf, 0.0 if matters else math.inf)

    def _add_demand(self, demand: Demand) -> None:
        (admitted,) = self._program.variables(1, demand.rate_bps / self._unit_bps)
        acks = {self._pricing.number[edge_id]: demand.ack_ratio for edge_id in demand.ack_edges or ()}
        self._admitted[demand.id] = admitted
        self._row[demand.id] = self._program.row({admitted: -1.0}, lower=0.0, upper=0.0)
        for row, ratio in acks.items():
            self._program.set_factor(row, admitted, ratio)
        parts = self._objective.worths(demand)
        if len(parts) == 1:
            self._parts[demand.id] = [(parts[0][0], admitted)]
            return
        upper = np.array([rate_bps / self._unit_bps for _, rate_bps in parts])
        own = self._program.variables(len(parts), upper)
        self._program.row({admitted: -1.0, **dict.fromkeys(own, 1.0)}, lower=0.0, upper=0.0)
        self._parts[demand.id] = [(worth, variable) for (worth, _), variable in zip(parts, own, strict=True)]

    def _add_first_paths(self) -> None:
        """Give every demand its given paths or its shortest, and set M by the longest of these."""
        by_id = self._problem.edges_by_id
        paths: list[tuple[Demand, Path]] = []
        free = [demand for demand in self._problem.demands if demand.fixed_paths is None]
        nothing = np.zeros(len(self._problem.edges))
        paths += [
            (demand, path) for demand, _, path in self._pricing.cheapest(free, self._pricing.delay, nothing)
        ]
        for demand in self._problem.demands:
            given = [tuple(by_id[edge_id] for edge_id in path) for path in demand.fixed_paths or ()]
            paths += [
                (demand, path)
                for path in given
                if not demand.is_too_long(path) and self._pricing.is_open(demand, path)
            ]
        self._add(paths)
        least = {
            demand.id: min(worth for worth, _ in self._parts[demand.id]) for demand in self._problem.demands
        }
        costs = [self._cost(path) / least[demand.id] for demand, path in paths]
        self._big_m = max([1.0, *(4.0 * cost for cost in costs)])

    def _add(self, paths: Iterable[tuple[Demand, Path]]) -> int:
        new = [(demand, path) for demand, path in paths if (demand.id, path) not in self._known]
        entries = []
        for demand, path in new:
            entry = {self._row[demand.id]: 1.0}
            for row, load in self._pricing.loads(demand, path):
                entry[row] = entry.get(row, 0.0) + load
            entries.append(entry)
        if new:
            numbers = self._program.columns([0.0] * len(new), entries)
            self._columns += [(*pair, number) for pair, number in zip(new, numbers, strict=True)]
            self._known.update((demand.id, path) for demand, path in new)
        return len(new)

    def _generate(
        self,
        costs: Mapping[int, float],
        lengths: Numbers,
        *,
        weight: float | None = None,
        refine: bool = False,
    ) -> None:
        """Minimise over all paths; a path not known yet costs the sum of its edges' `lengths`.

        `weight` is that of the first objective in the costs, None where it has no part in them.
        """
        costs = dict(costs)
        while True:
            self._program.minimise(costs)
            if weight is not None:
                self._keep(weight)
            added = self._add_gaining(costs, lengths)
            if not added and refine:
                # Beyond the tolerance another basis may be the optimal one, with other prices.
                self._program.refine()
                added = self._add_gaining(costs, lengths)
            if not added:
                return

    def _add_gaining(self, costs: dict[int, float], lengths: Numbers) -> int:
        """Add the paths that gain under the last solution's prices, to `costs` too; return how many."""
        largest = max((abs(cost) for cost in costs.values()), default=1.0)
        free = [demand for demand in self._problem.demands if demand.fixed_paths is None]
        duals = self._program.duals()
        prices = np.maximum(0.0, -duals[: len(self._problem.edges)])
        gaining = [
            (demand, path)
            for demand, length, path in self._pricing.cheapest(free, lengths, prices)
            if length < duals[self._row[demand.id]] - _GAIN * largest
        ]
        before = len(self._columns)
        added = self._add(gaining)
        for _, path, number in self._columns[before:]:
            costs[number] = math.fsum(lengths[self._pricing.number[edge.id]] for edge in path)
        return added

    def _worths(self) -> list[tuple[int, float]]:
        return [(variable, worth) for parts in self._parts.values() for worth, variable in parts]

    def _delays(self) -> dict[int, float]:
        return {number: self._cost(path) for _, path, number in self._columns}

    def _cost(self, path: Path) -> float:
        return math.fsum(self._pricing.delay[self._pricing.number[edge.id]] for edge in path)

    def _value(self) -> float:
        values = self._program.values()
        return (
            math.fsum(worth * float(values[variable]) for variable, worth in self._worths()) * self._unit_bps
        )

    def _keep(self, weight: float) -> None:
        """Keep the last solution as the answer that stands if the time is up: rates that fit, and prices."""
        values, duals, columns = self._program.values(), self._program.duals(), len(self._columns)
        prices = np.maximum(0.0, -duals[: len(self._problem.edges)]) / weight

        def answer() -> Answer:
            by_id = {edge.id: float(price) for edge, price in zip(self._problem.edges, prices, strict=True)}
            return Answer(self._rates_of(values, columns), by_id)

        self._program.budget.keep(answer)

    def _rates(self) -> Rates:
        return self._rates_of(self._program.values(), len(self._columns))

    def _rates_of(self, values: Numbers, columns: int) -> Rates:
        rates: dict[str, list[tuple[Path, float]]] = {demand.id: [] for demand in self._problem.demands}
        for demand, path, number in self._columns[:columns]:
            if values[number] > _RATE_TOLERANCE:
                rates[demand.id].append((path, float(values[number]) * self._unit_bps))
        return rates

    def _proof(self) -> Throughput:
        """Return the bound that the last solution's prices prove, over all paths."""
        problem = self._problem
        duals = self._program.duals()
        prices = np.maximum(0.0, -duals[: len(problem.edges)])
        # Any prices prove a bound: rounding must not be magnified by the capacity of a far larger edge.
        prices[prices < _NO_PRICE] = 0.0
        nothing = np.zeros(len(problem.edges))
        free = [demand for demand in problem.demands if demand.fixed_paths is None]
        distance = {demand.id: math.inf for demand in problem.demands}
        given = [
            (demand, math.fsum(prices[row] * load for row, load in self._pricing.loads(demand, path)))
            for demand, path, _ in self._columns
            if demand.fixed_paths is not None
        ]
        priced = [(demand, length) for demand, length, _ in self._pricing.cheapest(free, nothing, prices)]
        for demand, length in given + priced:
            distance[demand.id] = min(distance[demand.id], length + self._pricing.ack_price(demand, prices))
        share = {name: min(1.0, length) for name, length in distance.items()}
        room_bps = math.fsum(
            price * problem.useful_capacity_bps(edge)
            for price, edge in zip(prices, problem.edges, strict=True)
        )
        surplus = [
            # A request far beyond all capacities would magnify the rounding of a distance.
            min(rate_bps, problem.useful_rate_bps(demand)) * max(0.0, worth - distance[demand.id])
            for demand in problem.demands
            for worth, rate_bps in self._worths_asked(demand)
        ]
        by_id = {edge.id: float(price) for edge, price in zip(problem.edges, prices, strict=True)}
        return Throughput(room_bps + math.fsum(surplus), room_bps, share, by_id)

    def _worths_asked(self, demand: Demand) -> list[tuple[float, float]]:
        if len(self._parts[demand.id]) == 1:
            return [(1.0, self._asked[demand.id])]
        return self._objective.worths(demand)


class _Pricing:
    """The cheapest paths under some prices.

    Attributes:
        number: The place of each edge, by id.
        delay: The delay of each edge in units of the longest; 1 for all if none has any.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._nodes = Numbering(problem)
        self._finder = PathFinder(problem)
        ends = np.array([self._nodes.of_edge(edge) for edge in problem.edges])
        self._relaxation = Relaxation(self._nodes.count, ends[:, 0], ends[:, 1])
        self.number = {edge.id: place for place, edge in enumerate(problem.edges)}
        delays = np.array([edge.delay_s for edge in problem.edges])
        self.delay: Numbers = delays / delays.max() if delays.max() > 0 else np.ones(len(delays))
        self._closed = np.array([edge.capacity_bps == 0 for edge in problem.edges])
        reverse = problem.reverse or {}
        self._reverse = np.array([self.number[reverse[edge.id]] if edge.id in reverse else -1
                                  for edge in problem.edges])  # fmt: skip

    def lengths(self, ack_ratio: float, lengths: Numbers, prices: Numbers) -> Numbers:
        """Return the length of each edge with its price, and that of its acknowledgements."""
        whole = lengths + prices
        closed = self._closed
        if ack_ratio > 0:
            whole = whole + ack_ratio * prices[self._reverse]
            closed = closed | self._closed[self._reverse]
        return np.where(closed, np.inf, whole)

    def cheapest(
        self, demands: Iterable[Demand], lengths: Numbers, prices: Numbers
    ) -> list[tuple[Demand, float, Path]]:
        """Return the cheapest path of each demand that has one, and its price without `ack_edges`."""
        groups: dict[float, list[Demand]] = {}
        for demand in demands:
            if self._ack_way_is_open(demand):
                groups.setdefault(demand.reverse_ack_ratio, []).append(demand)
        cheaper = []
        for ack_ratio, members in groups.items():
            whole = self.lengths(ack_ratio, lengths, prices)
            ends = [self._nodes.of_ends(demand.source, demand.destination) for demand in members]
            trees = self._relaxation.trees(sorted({source for source, _ in ends}), whole)
            for demand, (source, destination) in zip(members, ends, strict=True):
                one = self._one(demand, trees, source, destination, whole)
                if one is not None:
                    cheaper.append((demand, *one))
        return cheaper

    def _one(
        self, demand: Demand, trees: Trees, source: int, destination: int, whole: Numbers
    ) -> tuple[float, Path] | None:
        distance = float(trees.distance[trees.row[source], destination])
        if not math.isfinite(distance):
            return None
        path = tuple(self._problem.edges[number] for number in trees.path(source, destination))
        if not demand.is_too_long(path):
            return distance, path

        def length(edge: Edge) -> float:
            return float(whole[self.number[edge.id]])

        return self._finder.cheapest(demand, length)

    def loads(self, demand: Demand, path: Path) -> list[tuple[int, float]]:
        """Return the edges that data on a path loads, with the ACKs that go back its way."""
        numbers = [self.number[edge.id] for edge in path]
        own = [(number, 1.0) for number in numbers]
        if demand.reverse_ack_ratio > 0:
            own += [(int(self._reverse[number]), demand.ack_ratio) for number in numbers]
        return own

    def is_open(self, demand: Demand, path: Path) -> bool:
        """Return whether data and acknowledgements find capacity all the way."""
        on_path = all(not self._closed[number] for number, _ in self.loads(demand, path))
        return on_path and self._ack_way_is_open(demand)

    def ack_price(self, demand: Demand, prices: Numbers) -> float:
        """Return what the acknowledgements of one bit/s pay on a way of their own."""
        return demand.ack_ratio * math.fsum(
            prices[self.number[edge_id]] for edge_id in demand.ack_edges or ()
        )

    def _ack_way_is_open(self, demand: Demand) -> bool:
        closed = any(self._closed[self.number[edge_id]] for edge_id in demand.ack_edges or ())
        return demand.ack_ratio == 0 or not closed
