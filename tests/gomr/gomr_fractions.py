"""Max-min fairness in rational arithmetic: no tolerance, so nothing is too small to be seen.

Progressive filling over all paths, straight from the definition; for networks of a few nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from gomr import Demand, Problem

from tests.gomr.gomr_oracles import EdgePath, simple_paths

Row = dict[int, Fraction]
"""Factors by column."""


class Tableau:
    """The simplex method by Bland's rule: maximise over x >= 0 with rows of factors at most their bounds."""

    def __init__(self, rows: Sequence[Row], bounds: Sequence[Fraction], columns: int) -> None:
        """Start at 0, which must be feasible: no bound is negative."""
        # Column -1 is the right side; slacks follow the columns.
        self.rows = [
            {**row, columns + place: Fraction(1), -1: bound}
            for place, (row, bound) in enumerate(zip(rows, bounds, strict=True))
        ]
        self.basic = [columns + place for place in range(len(rows))]

    def maximise(self, *goals: Row) -> list[Fraction]:
        """Maximise the first goal, then the next with the first one kept, and so on; return their values."""
        left: list[Row] = [dict(goal) for goal in goals]
        for goal in left:
            for place, column in enumerate(self.basic):
                _subtract(goal, self.rows[place], goal.get(column, Fraction(0)))
        while (entering := _entering(left)) is not None:
            self._pivot(entering, left)
        return [-goal.get(-1, Fraction(0)) for goal in left]

    def _pivot(self, entering: int, goals: list[Row]) -> None:
        ratios = [
            (row.get(-1, Fraction(0)) / row[entering], self.basic[place], place)
            for place, row in enumerate(self.rows)
            if row.get(entering, 0) > 0
        ]
        _, _, leaving = min(ratios)
        factor = self.rows[leaving][entering]
        pivot = self.rows[leaving] = {column: value / factor for column, value in self.rows[leaving].items()}
        for row in (*self.rows[:leaving], *self.rows[leaving + 1 :], *goals):
            _subtract(row, pivot, row.get(entering, Fraction(0)))
        self.basic[leaving] = entering


def max_min_rates(problem: Problem) -> dict[str, Fraction]:
    """Return the max-min fair rate of each demand that does not stay at its source, in bit/s."""
    filling = _Filling(problem)
    held: dict[str, Fraction] = {}
    while rising := [demand for demand in filling.demands if demand.id not in held]:
        level = filling.highest_level(rising, held)
        floor = held | {demand.id: level * Fraction(demand.weight) for demand in rising}
        stopped = [demand for demand in rising if filling.most(demand, floor) == floor[demand.id]]
        assert stopped
        held |= {demand.id: floor[demand.id] for demand in stopped}
    return held


class _Filling:
    """The linear programmes of progressive filling: a column for each path, and one for the level."""

    def __init__(self, problem: Problem) -> None:
        self.demands = [demand for demand in problem.demands if not demand.is_local]
        columns: list[tuple[Demand, EdgePath]] = [
            (demand, path) for demand in self.demands for path in simple_paths(problem, demand)
        ]
        self.own: dict[str, list[int]] = {demand.id: [] for demand in self.demands}
        loads: dict[str, Row] = {edge.id: {} for edge in problem.edges}
        for number, (demand, path) in enumerate(columns):
            self.own[demand.id].append(number)
            for edge_id, load in _loads(problem, demand, path):
                loads[edge_id][number] = loads[edge_id].get(number, Fraction(0)) + load
        self.level = len(columns)
        self.rows = [loads[edge.id] for edge in problem.edges]
        self.bounds = [Fraction(edge.capacity_bps) for edge in problem.edges]
        for demand in self.demands:
            self.rows.append(self._total(demand))
            self.bounds.append(Fraction(demand.rate_bps))

    def highest_level(self, rising: Sequence[Demand], held: Mapping[str, Fraction]) -> Fraction:
        """Return the largest level that all rising demands reach while the others keep what they hold."""
        rows = list(self.rows)
        bounds = list(self.bounds)
        for demand in rising:
            weight = Fraction(demand.weight)
            rows.append({self.level: weight, **{path: Fraction(-1) for path in self.own[demand.id]}})
            bounds.append(Fraction(0))
        *_, level = self._keep(held, rows, bounds).maximise(self._kept(held), {self.level: Fraction(1)})
        return level

    def most(self, demand: Demand, floor: Mapping[str, Fraction]) -> Fraction:
        """Return the most that a demand can get while every other gets at least its floor."""
        others = {name: rate for name, rate in floor.items() if name != demand.id}
        *_, most = self._keep(others, self.rows, self.bounds).maximise(
            self._kept(others), self._total(demand)
        )
        return most

    def _total(self, demand: Demand) -> Row:
        return dict.fromkeys(self.own[demand.id], Fraction(1))

    def _kept(self, floor: Mapping[str, Fraction]) -> Row:
        """Return the goal whose optimum gives every demand its floor, under the limits of `_keep`."""
        return {path: Fraction(1) for name in floor for path in self.own[name]}

    def _keep(self, floor: Mapping[str, Fraction], rows: list[Row], bounds: list[Fraction]) -> Tableau:
        # What a demand gets beyond its floor is of no use to another: its floor may be its limit.
        limits = [dict.fromkeys(self.own[name], Fraction(1)) for name in floor]
        return Tableau([*rows, *limits], [*bounds, *floor.values()], self.level + 1)


def _loads(problem: Problem, demand: Demand, path: EdgePath) -> list[tuple[str, Fraction]]:
    ratio = Fraction(demand.ack_ratio)
    acks = [(problem.reverse or {})[edge_id] for edge_id in path] if demand.reverse_ack_ratio else []
    own_way = demand.ack_edges or ()
    return [(edge_id, Fraction(1)) for edge_id in path] + [(edge_id, ratio) for edge_id in (*acks, *own_way)]


def _entering(goals: Sequence[Row]) -> int | None:
    """Return the first column that raises a goal and lowers none before it."""
    columns = sorted({column for goal in goals for column in goal if column >= 0})
    for column in columns:
        gains = [gain for goal in goals if (gain := goal.get(column, Fraction(0)))]
        if gains and gains[0] > 0:
            return column
    return None


def _subtract(row: Row, pivot: Row, factor: Fraction) -> None:
    if not factor:
        return
    for column, value in pivot.items():
        difference = row.get(column, Fraction(0)) - factor * value
        if difference or column == -1:
            row[column] = difference
        else:
            row.pop(column, None)
