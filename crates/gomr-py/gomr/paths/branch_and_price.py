"""The best paths of a few demands that may use at most this many, and a bound that knows these limits.

A demand with `max_paths` of k becomes k copies of one path each. The programme of a node of the search has a
variable x_p for each copy and path known, and for each copy the row

    sum of x_p / u_p  <=  1        with u_p the most that path p can carry of the demand,

which one path alone always keeps. Paths are priced by Dijkstra's algorithm, for each width that a path may
have over the edges that are so wide: the programme's optimum bounds what any choice of paths admits, known or
not. Where a copy uses two paths, they part at some node; one branch forbids the copy half of the edges that
leave it, the other the rest (C. Barnhart, C. Hane and P. Vance, "Using Branch-and-Price-and-Cut to Solve
Origin-Destination Integer Multicommodity Flow Problems", Operations Research 48, 2000).
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gomr.allocation import edges_loaded
from gomr.engines.linear_program import LinearProgram
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.objectives import Objective
from gomr.paths.finder import PathFinder
from gomr.problem import Demand, Edge, Path, Problem

Choice = Mapping[str, tuple[Path, ...]]
"""The paths of each demand with a limit, by its id."""
Copy = tuple[str, int]

_MOST_DEMANDS = 300
_MOST_COPIES = 300
"""Copies of all limited demands together; beyond, programmes take too long."""
_MOST_NODES = 400
"""Programmes that a search without a time limit may take."""
_ROUNDING = 1e-9
"""Share of a programme's value by which its bound is raised: the solver's tolerance."""
_CLOSED = 3e-9
"""Share of the value that counts as nothing."""
_GAIN = 1e-9
"""A path that gains less per bit/s is not worth adding."""
_USED = 1e-9
"""Rates up to this, in units, are the solver's rounding."""


@dataclass(frozen=True)
class Chosen:
    """What a search found.

    Attributes:
        paths: The best choice; None where none is better than the one known before.
        bound_bps: No choice of paths within the limits has a larger value of the first objective.
        timed_out: Whether the time limit came first.
    """

    paths: Choice | None
    bound_bps: float
    timed_out: bool


def can_search(problem: Problem, objective: Objective) -> bool:
    """Return whether the limits are few enough, and of a kind that the search knows."""
    limited = [demand for demand in problem.demands if demand.max_paths is not None]
    copies = sum(demand.max_paths or 0 for demand in limited)
    plain = all(demand.disjoint is None for demand in problem.demands)
    return (
        plain
        and not objective.by_level
        and len(problem.demands) <= _MOST_DEMANDS
        and copies <= _MOST_COPIES
        and all(demand.fixed_paths is None for demand in limited)
    )


def search(
    problem: Problem, objective: Objective, known: Choice, known_bps: float, time_limit_s: float | None
) -> Chosen:
    """Look for better paths until the best are proved or the time is up.

    Args:
        problem: The problem; `can_search` must hold.
        objective: The objective; its first stage decides.
        known: Paths within the limits.
        known_bps: The value that they reach.
        time_limit_s: Seconds that it may take; None for no limit.

    Raises:
        SolverError: HiGHS failed.
    """
    budget = TimeBudget("highs", time_limit_s)
    budget.stage = "branch and price"
    tree = _Tree(known_bps)
    try:
        programme = _Programme(problem, objective, known, LinearProgram(budget))
        tree.grow(programme, None if budget.has_limit else _MOST_NODES)
    except OutOfTime:
        return Chosen(tree.best, tree.bound_bps(), timed_out=True)
    return Chosen(tree.best, tree.bound_bps(), timed_out=False)


@dataclass(order=True)
class _Node:
    """A part of all choices: what each copy may not use. Its bound is that of the node it comes from."""

    minus_bound_bps: float
    number: int
    forbidden: Mapping[Copy, frozenset[str]] = field(compare=False)


class _Tree:
    """The search, best bound first.

    Attributes:
        best: The best choice found, if it is better than the one known.
    """

    def __init__(self, known_bps: float) -> None:
        self.best: Choice | None = None
        self._best_bps = known_bps
        self._open = [_Node(-math.inf, 0, {})]

    def bound_bps(self) -> float:
        """Return what no choice exceeds."""
        return max([self._best_bps * (1 + _CLOSED), *(-node.minus_bound_bps for node in self._open)])

    def grow(self, programme: _Programme, most_nodes: int | None) -> None:
        """Branch until nothing open can be better, or as often as is allowed (None: until the time is up)."""
        for number in itertools.count(1):
            if most_nodes is not None and number > most_nodes:
                return
            while self._open and not self._may_gain(-self._open[0].minus_bound_bps):
                heapq.heappop(self._open)
            if not self._open:
                return
            # The node stays open until its programme is solved: its bound counts if the time is up.
            node = self._open[0]
            bound_bps = min(-node.minus_bound_bps, programme.solve(node.forbidden))
            branches = programme.branches(node.forbidden) if self._may_gain(bound_bps) else []
            value_bps, choice = programme.rounded()
            if value_bps > self._best_bps * (1 + _CLOSED):
                self._best_bps, self.best = value_bps, choice
            heapq.heappop(self._open)
            for side, forbidden in enumerate(branches):
                heapq.heappush(self._open, _Node(-bound_bps, 2 * number + side, forbidden))

    def _may_gain(self, bound_bps: float) -> bool:
        return bound_bps > self._best_bps * (1 + _CLOSED)


@dataclass(frozen=True)
class _Column:
    demand: Demand
    copy: Copy | None
    path: Path
    variable: int


class _Programme:
    """The linear programme of all nodes: each closes the paths that it forbids."""

    def __init__(self, problem: Problem, objective: Objective, known: Choice, program: LinearProgram) -> None:
        self._problem = problem
        self._program = program
        self._unit_bps = problem.unit_bps
        self._row = {
            edge.id: program.row({}, upper=problem.useful_capacity_bps(edge) / self._unit_bps)
            for edge in problem.edges
        }
        self._balance: dict[str, int] = {}
        self._copies: dict[Copy, int] = {}
        self._costs: dict[int, float] = {}
        self._columns: list[_Column] = []
        self._known: set[tuple[str, Copy | None, Path]] = set()
        finder = PathFinder(problem)
        self._pricing = {demand.id: _Pricing(problem, finder, demand) for demand in problem.demands}
        for demand in problem.demands:
            self._add_demand(demand, objective)
            for path in known.get(demand.id, ()):
                self._add_to_all(demand, path)

    def solve(self, forbidden: Mapping[Copy, frozenset[str]]) -> float:
        """Solve a node to the optimum over all paths; return its bound in bit/s."""
        self._close(lambda column: self._is_forbidden(column, forbidden))
        while True:
            self._program.minimise(self._costs)
            if not self._price(forbidden):
                self._solution = self._program.values()
                return self._value_bps() * (1 + _ROUNDING)

    def branches(self, forbidden: Mapping[Copy, frozenset[str]]) -> list[Mapping[Copy, frozenset[str]]]:
        """Return what two branches forbid; none where every copy uses one path."""
        most, split = 0.0, None
        for copy in self._copies:
            used = self._used(copy)
            if len(used) > 1 and used[1][0] > most:
                most, split = used[1][0], (copy, used[0][1], used[1][1])
        if split is None:
            return []
        copy, one, other = split
        at = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        leaving = self._pricing[copy[0]].leaving(one[at].tail)
        rest = [edge.id for edge in leaving if edge.id not in (one[at].id, other[at].id)]
        halves = ({one[at].id, *rest[::2]}, {other[at].id, *rest[1::2]})
        before = forbidden.get(copy, frozenset())
        return [{**forbidden, copy: before | half} for half in halves]

    def rounded(self) -> tuple[float, Choice]:
        """Return a choice near the last node's solution, and its value over the paths known."""
        kept = {copy: used[0][1] for copy in self._copies if (used := self._used(copy))}
        self._close(lambda column: column.copy is not None and kept.get(column.copy) != column.path)
        self._program.minimise(self._costs)
        self._solution = self._program.values()
        choice: dict[str, tuple[Path, ...]] = {}
        for (name, _), path in kept.items():
            choice[name] = tuple(dict.fromkeys((*choice.get(name, ()), path)))
        for column in self._columns:
            # Who gets nothing is bound to a path all the same.
            if column.copy is not None:
                choice.setdefault(column.demand.id, (column.path,))
        return self._value_bps(), choice

    def _add_demand(self, demand: Demand, objective: Objective) -> None:
        program, unit_bps = self._program, self._unit_bps
        (admitted,) = program.variables(1, demand.rate_bps / unit_bps)
        self._balance[demand.id] = program.row({admitted: -1.0}, lower=0.0, upper=0.0)
        for edge_id in demand.ack_edges or ():
            program.set_factor(self._row[edge_id], admitted, demand.ack_ratio)
        parts = objective.worths(demand)
        if len(parts) == 1:
            self._costs[admitted] = -parts[0][0]
        else:
            own = [program.variables(1, rate_bps / unit_bps)[0] for _, rate_bps in parts]
            program.row({admitted: -1.0, **dict.fromkeys(own, 1.0)}, lower=0.0, upper=0.0)
            self._costs.update({part: -worth for part, (worth, _) in zip(own, parts, strict=True)})
        for number in range(demand.max_paths or 0):
            self._copies[demand.id, number] = program.row({}, upper=1.0)
        for path in self._pricing[demand.id].given:
            self._add_to_all(demand, path)

    def _copies_of(self, demand: Demand) -> list[Copy | None]:
        return [None] if demand.max_paths is None else [(demand.id, n) for n in range(demand.max_paths)]

    def _add_to_all(self, demand: Demand, path: Path) -> None:
        for copy in self._copies_of(demand):
            self._add(demand, copy, path)

    def _add(self, demand: Demand, copy: Copy | None, path: Path) -> bool:
        if (demand.id, copy, path) in self._known:
            return False
        entry = {self._balance[demand.id]: 1.0}
        for edge_id, load in edges_loaded(self._problem, demand.reverse_ack_ratio, path):
            entry[self._row[edge_id]] = entry.get(self._row[edge_id], 0.0) + load
        if copy is not None:
            entry[self._copies[copy]] = self._unit_bps / self._pricing[demand.id].width_bps(path)
        (variable,) = self._program.columns([0.0], [entry])
        self._columns.append(_Column(demand, copy, path, variable))
        self._known.add((demand.id, copy, path))
        return True

    def _price(self, forbidden: Mapping[Copy, frozenset[str]]) -> bool:
        duals = self._program.duals()
        price = {edge_id: max(0.0, -float(duals[row])) for edge_id, row in self._row.items()}
        added = False
        for demand in self._problem.demands:
            pricing = self._pricing[demand.id]
            worth = float(duals[self._balance[demand.id]])
            if demand.fixed_paths is not None or worth <= _GAIN:
                continue
            for copy in self._copies_of(demand):
                closed = frozenset() if copy is None else forbidden.get(copy, frozenset())
                share = 0.0 if copy is None else max(0.0, -float(duals[self._copies[copy]])) * self._unit_bps
                for path in pricing.gaining(price, closed, worth - _GAIN, share):
                    added |= self._add(demand, copy, path)
        return added

    def _close(self, is_closed: Callable[[_Column], bool]) -> None:
        for column in self._columns:
            self._program.bound_variable(column.variable, 0.0, 0.0 if is_closed(column) else math.inf)

    @staticmethod
    def _is_forbidden(column: _Column, forbidden: Mapping[Copy, frozenset[str]]) -> bool:
        closed = frozenset() if column.copy is None else forbidden.get(column.copy, frozenset())
        return any(edge.id in closed for edge in column.path)

    def _used(self, copy: Copy) -> list[tuple[float, Path]]:
        """Return the paths of a copy in the last solution with their rates, the largest first."""
        own = [(float(self._solution[c.variable]), c.path) for c in self._columns if c.copy == copy]
        return sorted((one for one in own if one[0] > _USED), key=lambda one: -one[0])

    def _value_bps(self) -> float:
        costs = (cost * float(self._solution[variable]) for variable, cost in self._costs.items())
        return -math.fsum(costs) * self._unit_bps


class _Pricing:
    """The paths of one demand.

    Attributes:
        given: The only paths that it may take; none where it may take any.
    """

    def __init__(self, problem: Problem, finder: PathFinder, demand: Demand) -> None:
        self._demand = demand
        self._reverse = (problem.reverse or {}) if demand.reverse_ack_ratio > 0 else {}
        by_id = problem.edges_by_id
        acks = demand.ack_edges if demand.ack_ratio > 0 and demand.ack_edges is not None else ()
        limits_bps = [by_id[edge_id].capacity_bps / demand.ack_ratio for edge_id in acks]
        self._most_bps = min([problem.useful_rate_bps(demand), *limits_bps])
        self._width_bps = {edge.id: self._edge_width_bps(problem, edge) for edge in problem.edges}
        is_open = self._most_bps > 0
        edges = [edge for edge in problem.edges if is_open and self._width_bps[edge.id] > 0]
        self._edges, self._finder = edges, finder
        self._widths_bps = sorted({self._width_bps[edge.id] for edge in edges})
        given = [tuple(by_id[edge_id] for edge_id in path) for path in demand.fixed_paths or ()]
        self.given = [
            path for path in given if not demand.is_too_long(path) and is_open and self.width_bps(path) > 0
        ]

    def _edge_width_bps(self, problem: Problem, edge: Edge) -> float:
        width_bps = min(edge.capacity_bps, self._most_bps)
        if self._demand.reverse_ack_ratio > 0:
            back = problem.edges_by_id[self._reverse[edge.id]]
            width_bps = min(width_bps, back.capacity_bps / self._demand.reverse_ack_ratio)
        return width_bps

    def leaving(self, node: str) -> list[Edge]:
        """Return the edges on which it may leave a node."""
        return [edge for edge in self._edges if edge.tail == node]

    def width_bps(self, path: Path) -> float:
        """Return the most that a path can carry of the demand."""
        return min(self._width_bps[edge.id] for edge in path)

    def gaining(
        self, price: Mapping[str, float], closed: frozenset[str], worth: float, share_bps: float
    ) -> Iterator[Path]:
        """Yield a path that gains for each width that gains: costs less than `worth - share_bps / width`."""
        ratio = self._demand.reverse_ack_ratio
        place = 0
        while place < len(self._widths_bps):
            least_bps = self._widths_bps[place]

            def length(edge: Edge, least_bps: float = least_bps) -> float:
                if edge.id in closed or not 0 < least_bps <= self._width_bps[edge.id]:
                    return math.inf
                back = ratio * price[self._reverse[edge.id]] if ratio > 0 else 0.0
                return price[edge.id] + back

            found = self._finder.cheapest(self._demand, length)
            if found is None:
                return
            cost, path = found
            if cost >= worth:
                return  # wider ones cost no less
            width_bps = self.width_bps(path)
            if cost + share_bps / width_bps < worth:
                yield path
            if share_bps == 0:
                return
            # Up to here no other path of this width is cheaper; nothing narrower than that gains.
            needed_bps = max(width_bps, share_bps / (worth - cost))
            place = max(place + 1, bisect_right(self._widths_bps, width_bps))
            while place < len(self._widths_bps) and self._widths_bps[place] * (1 + 1e-12) < needed_bps:
                place += 1
