"""What a network of equal links can carry, by a linear programme over edges."""

from __future__ import annotations

from collections.abc import Iterable

import highspy
import numpy as np
from gomr import Problem


def most_admitted_bps(problem: Problem) -> float:
    """Return the most that can be admitted, by a programme with a variable for each source and edge."""
    sources = sorted({demand.source for demand in problem.demands})
    nodes = sorted(problem.nodes)
    edges, demands = problem.edges, problem.demands
    flows, count = len(sources) * len(edges), len(demands)
    model = highspy.HighsLp()
    model.num_col_ = flows + count
    model.num_row_ = len(edges) + len(sources) * len(nodes)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.r_[np.zeros(flows), np.ones(count)]
    model.col_lower_ = np.zeros(flows + count)
    model.col_upper_ = np.r_[np.full(flows, np.inf), [demand.rate_bps for demand in demands]]
    balance = len(edges) + np.arange(len(sources) * len(nodes)).reshape(len(sources), len(nodes))
    is_own = np.array([[node == source for node in nodes] for source in sources]).ravel()
    model.row_lower_ = np.r_[np.full(len(edges), -np.inf), np.where(is_own, -np.inf, 0.0)]
    model.row_upper_ = np.r_[[edge.capacity_bps for edge in edges], np.where(is_own, np.inf, 0.0)]
    place = {node: at for at, node in enumerate(nodes)}
    columns: list[Iterable[tuple[int, float]]] = [
        [(at, 1.0), (balance[s, place[edge.tail]], -1.0), (balance[s, place[edge.head]], 1.0)]
        for s in range(len(sources))
        for at, edge in enumerate(edges)
    ]
    columns += [
        [(balance[sources.index(demand.source), place[demand.destination]], -1.0)] for demand in demands
    ]
    entries = [list(column) for column in columns]
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.cumsum([0, *map(len, entries)])
    model.a_matrix_.index_ = np.array([row for column in entries for row, _ in column])
    model.a_matrix_.value_ = np.array([value for column in entries for _, value in column])
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(model)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)
