"""First objectives as linear programmes over edges, the flows of each source together, for other solvers."""

from __future__ import annotations

import time
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from gomr import Problem
from gomr.engines.by_edges.highs_program import HighsProgram
from gomr.engines.by_edges.model import RoutingModel
from gomr.engines.time_budget import TimeBudget
from gomr.objectives import PLAIN, Objective


def source_program(problem: Problem, objective: Objective = PLAIN) -> highspy.HighsLp:
    """Return the programme, to be minimised; rates are in units of the problem's."""
    program = HighsProgram(TimeBudget("highs", None))
    model = RoutingModel(problem, problem.unit_bps, {}, program)
    stated: highspy.HighsLp = program.stated(model.worthless(objective))
    return stated


def arrays(lp: highspy.HighsLp) -> dict[str, NDArray[Any]]:
    """Return a programme as arrays: the entries of its matrix, its bounds and what is to be maximised."""
    matrix = lp.a_matrix_
    inner = np.array(matrix.index_)
    outer = np.repeat(np.arange(len(matrix.start_) - 1), np.diff(matrix.start_))
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    return {
        "row": inner if by_column else outer,
        "column": outer if by_column else inner,
        "value": np.array(matrix.value_),
        "lower": np.array(lp.row_lower_),
        "upper": np.array(lp.row_upper_),
        "most": np.array(lp.col_upper_),
        "worth": -np.array(lp.col_cost_),
    }


def by_highs(
    problem: Problem, objective: Objective = PLAIN, budget_s: float = 60.0
) -> tuple[float, float | None]:
    """Return the CPU time of HiGHS' quicker method and the optimum in bit/s; None where neither ended."""
    lp = source_program(problem, objective)
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
            best = (taken_s, -solver.getInfo().objective_function_value * problem.unit_bps)
    return best
