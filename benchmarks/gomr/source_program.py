"""Throughput as a linear programme over edges, the flows of each source together, for other solvers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from gomr import Problem


@dataclass(frozen=True)
class SourceProgram:
    """Maximise `worth x` where `lower <= A x <= upper` and `0 <= x <= most`.

    A variable is the rate of one source on one edge, or of one part of a demand; a row is a node's balance
    for one source, or an edge's capacity. Rates are in units of `unit_bps`, the largest request.

    Attributes:
        row, column, value: The entries of `A`.
        lower, upper: Of each row.
        most, worth: Of each variable.
        unit_bps: The unit.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    most: NDArray[np.float64]
    worth: NDArray[np.float64]
    unit_bps: float

    def highs(self) -> highspy.HighsLp:
        """Return it as HiGHS takes it."""
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = len(self.lower), len(self.most)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.worth, np.zeros(lp.num_col_), self.most
        lp.row_lower_, lp.row_upper_ = self.lower, self.upper
        order = np.lexsort((self.row, self.column))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.concatenate(
            [[0], np.cumsum(np.bincount(self.column, minlength=lp.num_col_))]
        )
        lp.a_matrix_.index_, lp.a_matrix_.value_ = self.row[order], self.value[order]
        return lp


def source_program(problem: Problem, values: Sequence[float] = (1.0,)) -> SourceProgram:
    """Return the programme; `values` is what a bit/s of each equal part of a request is worth."""
    nodes = {name: at for at, name in enumerate(sorted(problem.nodes))}
    sources = {name: at for at, name in enumerate(sorted({demand.source for demand in problem.demands}))}
    edges, parts = len(problem.edges), len(values)
    balances, flows = len(sources) * len(nodes), len(sources) * edges
    unit_bps = max(demand.rate_bps for demand in problem.demands)
    entries: list[tuple[int, int, float]] = []
    for source in range(len(sources)):
        for at, edge in enumerate(problem.edges):
            column = source * edges + at
            entries.append((source * len(nodes) + nodes[edge.tail], column, 1.0))
            entries.append((source * len(nodes) + nodes[edge.head], column, -1.0))
            entries.append((balances + at, column, 1.0))
    for number, demand in enumerate(problem.demands):
        first = sources[demand.source] * len(nodes)
        for column in range(flows + number * parts, flows + (number + 1) * parts):
            entries.append((first + nodes[demand.source], column, -1.0))
            entries.append((first + nodes[demand.destination], column, 1.0))
    row, column_of, value = zip(*entries, strict=True)
    requests = np.repeat([demand.rate_bps / unit_bps / parts for demand in problem.demands], parts)
    capacities = [edge.capacity_bps / unit_bps for edge in problem.edges]
    return SourceProgram(
        np.array(row),
        np.array(column_of),
        np.array(value),
        np.concatenate([np.zeros(balances), np.full(edges, -np.inf)]),
        np.concatenate([np.zeros(balances), capacities]),
        np.concatenate([np.full(flows, np.inf), requests]),
        np.concatenate([np.zeros(flows), np.tile(values, len(problem.demands))]),
        unit_bps,
    )


def by_highs(
    problem: Problem, values: Sequence[float] = (1.0,), budget_s: float = 60.0
) -> tuple[float, float | None]:
    """Return the CPU time of HiGHS' quicker method and the optimum in bit/s; None where neither ended."""
    program = source_program(problem, values)
    lp = program.highs()
    best: tuple[float, float | None] = (budget_s, None)
    for method in ("simplex", "ipm"):
        solver = highspy.Highs()
        for option, value in (("output_flag", False), ("solver", method), ("threads", 1)):
            solver.setOptionValue(option, value)
        solver.setOptionValue("time_limit", best[0])
        solver.passModel(lp)
        started = time.process_time()
        solver.run()
        taken_s = time.process_time() - started
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal and taken_s < best[0]:
            best = (taken_s, solver.getInfo().objective_function_value * program.unit_bps)
    return best
