"""Solves one linear programme by or-tools' PDLP: `python pdlp.py MODEL.npz SECONDS`.

`benchmarks.gomr.sizes` writes the model and starts this; it imports nothing of the project.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import scipy.sparse
from ortools.pdlp import solve_log_pb2, solvers_pb2
from ortools.pdlp.python import pdlp


def main(path: str, budget_s: float) -> None:
    """Solve it and print a line of JSON."""
    model = np.load(path)
    shape = (len(model["lower"]), len(model["most"]))
    entries = (model["value"], (model["row"].astype(int), model["column"].astype(int)))
    program = pdlp.QuadraticProgram()
    program.resize_and_initialize(shape[1], shape[0])
    program.objective_vector = -model["worth"]
    program.constraint_matrix = scipy.sparse.csc_matrix(entries, shape=shape)
    program.constraint_lower_bounds = model["lower"]
    program.constraint_upper_bounds = model["upper"]
    program.variable_lower_bounds = np.zeros(shape[1])
    program.variable_upper_bounds = model["most"]
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_relative = 1e-6
    criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-9
    criteria.time_sec_limit = budget_s
    started = time.process_time()
    solution = pdlp.primal_dual_hybrid_gradient(program, parameters)
    reason = solution.solve_log.termination_reason
    is_optimal = reason == solve_log_pb2.TERMINATION_REASON_OPTIMAL
    said = {
        "status": "optimal" if is_optimal else "stopped",
        "value": float(model["worth"] @ solution.primal_solution),
        "cpu_s": time.process_time() - started,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
