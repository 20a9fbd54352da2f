"""One step of iterative refinement: what a solver's tolerance hides is solved for again, magnified.

The solution x of min cx, Ax <= b is right to the tolerance. The programme of what is left of every bound,
magnified, has the same basis, and its solution y corrects it: x + y / magnification is right to the tolerance
divided by the magnification (A. M. Gleixner, D. E. Steffy and K. Wolter, "Iterative Refinement for Linear
Programming", INFORMS Journal on Computing 28, 2016).
"""

from __future__ import annotations

import math
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_MAGNIFICATION = math.ldexp(1.0, 10)
"""1e-10 becomes 1e-13. More would magnify the rounding of the bounds themselves into contradictions."""


def refined(highs: Any) -> tuple[Numbers, Numbers]:
    """Return the last solution of a linear programme, corrected as far as it can be.

    Args:
        highs: A `highspy.Highs` that has just found an optimum; it keeps its programme and basis.

    Returns:
        The values of the variables and the dual values of the rows: the solver's own where the corrected
        programme has no optimum.
    """
    model = highs.getLp()
    solution = highs.getSolution()
    values: Numbers = np.array(solution.col_value)
    low, high = np.array(model.col_lower_), np.array(model.col_upper_)
    row_low, row_high = np.array(model.row_lower_), np.array(model.row_upper_)
    values = np.clip(values, low, high)
    carried = _rows(model, values)
    rest = highspy.Highs()
    for option in ("output_flag", "threads", "primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        rest.setOptionValue(option, highs.getOptionValue(option)[1])
    rest.setOptionValue("presolve", "off")
    rest.passModel(model)
    columns, rows = len(values), len(row_low)
    every = np.arange(columns, dtype=np.int32)
    rest.changeColsBounds(columns, every, _left(low, values), _left(high, values))
    for row in range(rows):
        rest.changeRowBounds(
            row, float(_left(row_low[row], carried[row])), float(_left(row_high[row], carried[row]))
        )
    rest.setBasis(highs.getBasis())
    rest.run()
    if rest.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return values, np.array(solution.row_dual)
    rest_of_it = rest.getSolution()
    correction: Numbers = np.array(rest_of_it.col_value)
    return values + correction / _MAGNIFICATION, np.array(rest_of_it.row_dual)


def _left(bound: Any, value: Any) -> Any:
    return (bound - value) * _MAGNIFICATION


def _rows(model: Any, values: Numbers) -> list[float]:
    """Return the value of every row, rounded once."""
    matrix = model.a_matrix_
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    starts, places, factors = matrix.start_, matrix.index_, matrix.value_
    terms: list[list[float]] = [[] for _ in range(model.num_row_)]
    for outer in range(len(starts) - 1):
        for entry in range(starts[outer], starts[outer + 1]):
            row, column = (places[entry], outer) if by_column else (outer, places[entry])
            terms[row].append(factors[entry] * float(values[column]))
    return [math.fsum(row) for row in terms]
