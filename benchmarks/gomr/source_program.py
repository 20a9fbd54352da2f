"""First objectives as linear programmes over edges, the flows of each source together, for other solvers.

The arrays are made from the definition, and share nothing with the engines.
"""

from __future__ import annotations

import numpy as np

from benchmarks.gomr import one_program
from benchmarks.gomr.one_program import Arrays, Solved
from gomr import Problem
from gomr.objectives import PLAIN, Objective


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


def by_highs(problem: Problem, objective: Objective = PLAIN, budget_s: float = 60.0) -> Solved:
    """Return the CPU time of HiGHS' quickest method and the optimum in bit/s; None where none ended."""
    program = source_program(problem, objective)
    best: Solved = (budget_s, None)
    for method in ("simplex", "ipm"):
        taken_s, value = one_program.by_highs(program, method, best[0])
        if value is not None and taken_s < best[0]:
            best = (taken_s, value * problem.unit_bps)
    return best
