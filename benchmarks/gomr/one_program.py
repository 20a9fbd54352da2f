"""Solves one linear programme: `python -m benchmarks.gomr.one_program MODEL.npz METHOD SECONDS`.

`benchmarks.gomr.sizes` writes the model and starts this, in an environment of its own where a solver needs
one. It imports nothing of the project, and of the solvers the one that is asked for: or-tools and HiGHS
cannot be loaded into one process. The kernel limits its processor time and memory.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

Arrays: TypeAlias = dict[str, NDArray[Any]]
Solved: TypeAlias = tuple[float, float | None]
"""The CPU time, and the optimum; None where there is none in time."""
OR_TOOLS = "or-tools' PDLP"
MAX_BYTES = 8 << 30
"""Address space that a solver may have."""


def matrix_of(program: Arrays) -> Any:
    """Return a programme's matrix, by columns."""
    entries = (program["value"], (program["row"].astype(int), program["column"].astype(int)))
    return csc_matrix(entries, shape=(len(program["lower"]), len(program["most"])))


def by_highs(program: Arrays, method: str, limit_s: float = math.inf) -> Solved:
    """Solve a programme by a method of HiGHS, within some wall time."""
    import highspy

    matrix = matrix_of(program)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = -program["worth"], np.zeros(lp.num_col_), program["most"]
    lp.row_lower_, lp.row_upper_ = program["lower"], program["upper"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    solver = highspy.Highs()
    options = (("output_flag", False), ("solver", method), ("threads", 1), ("time_limit", limit_s))
    for option, setting in options:
        if solver.setOptionValue(option, setting) != highspy.HighsStatus.kOk:
            raise ValueError(f"this HiGHS has no {option} {setting}")
    solver.passModel(lp)
    started = time.process_time()
    solver.run()
    taken_s = time.process_time() - started
    is_optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return taken_s, -solver.getInfo().objective_function_value if is_optimal else None


def by_or_tools(program: Arrays) -> Solved:
    """Solve a programme by or-tools' PDLP, to a millionth."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp

    matrix = matrix_of(program)
    quadratic = pdlp.QuadraticProgram()
    quadratic.resize_and_initialize(matrix.shape[1], matrix.shape[0])
    quadratic.objective_vector = -program["worth"]
    quadratic.constraint_matrix = matrix
    quadratic.constraint_lower_bounds = program["lower"]
    quadratic.constraint_upper_bounds = program["upper"]
    quadratic.variable_lower_bounds = np.zeros(matrix.shape[1])
    quadratic.variable_upper_bounds = program["most"]
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative, criteria.eps_optimal_absolute = 1e-6, 1e-9
    started = time.process_time()
    solution = pdlp.primal_dual_hybrid_gradient(quadratic, parameters)
    taken_s = time.process_time() - started
    is_optimal = solution.solve_log.termination_reason == solve_log_pb2.TERMINATION_REASON_OPTIMAL
    return taken_s, float(program["worth"] @ solution.primal_solution) if is_optimal else None


def main(path: str, method: str, limit_s: float) -> None:
    """Solve it and print a line of JSON."""
    program = dict(np.load(path))
    most_s = math.ceil(time.process_time() + limit_s)
    resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    print(json.dumps(by_or_tools(program) if method == OR_TOOLS else by_highs(program, method)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
