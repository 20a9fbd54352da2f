"""First objectives as linear programmes over edges, the flows of each source together, for other solvers.

The arrays are made from the definition, and share nothing with the engines.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeAlias

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from gomr import Problem
from gomr.objectives import PLAIN, Objective

Arrays: TypeAlias = dict[str, NDArray[Any]]
HIGHS_METHODS = ("simplex", "ipm", "pdlp")


def source_program(problem: Problem, objective: Objective = PLAIN) -> Arrays:
    """Return the matrix of a problem of plain demands, its bounds, and what is to be maximised.

    A variable is what a source has on an edge, or what a demand gets of a part that is worth alike, in units
    of the problem's. A row is a node as one source sees it, or the capacity of an edge.
    """
    edges = [edge for edge in problem.edges if edge.capacity_bps > 0]
    names = dict.fromkeys(node for edge in edges for node in (edge.tail, edge.head))
    number = {name: place for place, name in enumerate(names)}
    tails, heads = (np.array([number[getattr(edge, end)] for edge in edges]) for end in ("tail", "head"))
    forwards = np.array([name not in problem.endpoints for name in names])
    asking = [
        demand
        for demand in problem.demands
        if demand.rate_bps > 0 and demand.source in names and demand.destination in names
    ]
    places = {source: place for place, source in enumerate(dict.fromkeys(one.source for one in asking))}
    own = np.array([number[source] for source in places])[:, None]
    flows = np.arange(len(places) * len(edges)).reshape(len(places), -1)
    first_row = len(names) * np.arange(len(places))[:, None]
    parts = [
        (len(names) * places[demand.source] + number[demand.destination], part_bps, worth)
        for demand in asking
        for worth, part_bps in objective.worths(demand)
    ]
    served = flows.size + np.arange(len(parts))
    leaves = tails != own
    entries = (
        ((first_row + heads).ravel(), flows.ravel(), np.ones(flows.size)),
        ((first_row + tails)[leaves], flows[leaves], np.full(leaves.sum(), -1.0)),
        (np.array([row for row, _, _ in parts]), served, np.full(len(parts), -1.0)),
        (len(names) * len(places) + np.arange(flows.size) % len(edges), flows.ravel(), np.ones(flows.size)),
    )
    row, column, value = (np.concatenate(each) for each in zip(*entries, strict=True))
    is_open = (heads != own) & (forwards[tails] | (tails == own))
    in_units = np.array([edge.capacity_bps for edge in edges]) / problem.unit_bps
    at_nodes = np.zeros(len(names) * len(places))
    return {
        "row": row,
        "column": column,
        "value": value,
        "lower": np.concatenate([at_nodes, np.full(len(edges), -np.inf)]),
        "upper": np.concatenate([at_nodes, in_units]),
        "most": np.concatenate(
            [np.where(is_open.ravel(), np.inf, 0.0), [part / problem.unit_bps for _, part, _ in parts]]
        ),
        "worth": np.concatenate([np.zeros(flows.size), [worth for _, _, worth in parts]]),
    }


def solved(program: Arrays, method: str, budget_s: float) -> tuple[float, float | None]:
    """Return the CPU time of a method of HiGHS, and the optimum; None where it did not end in time."""
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = len(program["lower"]), len(program["most"])
    entries = (program["value"], (program["row"], program["column"]))
    matrix = csc_matrix(entries, shape=(lp.num_row_, lp.num_col_))
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = -program["worth"], np.zeros(lp.num_col_), program["most"]
    lp.row_lower_, lp.row_upper_ = program["lower"], program["upper"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    solver = highspy.Highs()
    options = (("output_flag", False), ("solver", method), ("threads", 1), ("time_limit", budget_s))
    for option, setting in options:
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    started = time.process_time()
    solver.run()
    taken_s = time.process_time() - started
    is_optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return taken_s, -solver.getInfo().objective_function_value if is_optimal else None


def by_highs(
    problem: Problem,
    objective: Objective = PLAIN,
    budget_s: float = 60.0,
    methods: Sequence[str] = ("simplex", "ipm"),
) -> tuple[float, float | None]:
    """Return the CPU time of HiGHS' quickest method and the optimum in bit/s; None where none ended."""
    program = source_program(problem, objective)
    best: tuple[float, float | None] = (budget_s, None)
    for method in methods:
        taken_s, value = solved(program, method, best[0])
        if value is not None and taken_s < best[0]:
            best = (taken_s, value * problem.unit_bps)
    return best
