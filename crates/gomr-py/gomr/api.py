"""`solve` and `solve_series`: graphs and matrices as programs hold them in, solutions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gomr.columns import DemandColumns, Floats
from gomr.errors import InvalidProblem
from gomr.graphs import network_of, problem_of
from gomr.live.engine import Engine
from gomr.matrices import Matrix, demands_of
from gomr.problem import Demand, Problem
from gomr.solution import Solution
from gomr.solving import DEFAULT_ENGINE, allocate

__all__ = ["problem_of", "solve", "solve_series"]


def solve(
    graph: Any,
    demands: Iterable[Demand] | DemandColumns | Matrix | None = None,
    objective: str = "max_throughput_min_delay",
    engine: str = DEFAULT_ENGINE,
    *,
    time_limit_s: float | None = None,
    **reading: Any,
) -> Solution:
    """Route demands over a network.

    Args:
        graph: The network: a networkx graph, capacities by pair, edges as tuples, a capacity matrix, or a
            `Problem` (`problem_of` says what each means).
        demands: Rates by pair of nodes, a dict of dicts, a NumPy array or SciPy sparse matrix in the order of
            the nodes, a pandas table, tuples (source, destination, rate), or `Demand` objects.
        objective: A name in `OBJECTIVES`.
        engine: A name in `ENGINES`.
        time_limit_s: Seconds that it may take; None for no limit. The best answer by then is returned, within
            all limits and with its gap (`Solution.timed_out`).
        **reading: As `problem_of` has them: `capacity`, `delay`, `unit_bps`, `nodes`, `directed`.

    Raises:
        InvalidProblem: Something in it contradicts itself; `field` names it.
        SolverError: The engine failed.
    """
    problem = problem_of(graph, demands, **reading)
    return Solution.of(problem, allocate(problem, objective, engine, time_limit_s=time_limit_s))


def solve_series(
    graph: Any,
    matrices: Iterable[Matrix | DemandColumns],
    objective: str = "max_throughput_min_delay",
    *,
    time_limit_s: float | None = None,
    **reading: Any,
) -> Iterator[Solution]:
    """Route one matrix after another over a network; each solve goes on from the basis of the last.

    Args:
        graph: As `solve`.
        matrices: Matrices in time order, in any form that `solve` takes.
        objective: A name in `OBJECTIVES`.
        time_limit_s: Seconds that each solve may take.
        **reading: As `problem_of`.

    Returns:
        The solution of each matrix, found when it is asked for.

    Raises:
        InvalidProblem, SolverError: As `solve`.
    """
    network, nodes = network_of(graph, **reading)
    unit_bps = float(reading.get("unit_bps", 1.0))
    given = list(matrices)
    if given and all(isinstance(matrix, np.ndarray) for matrix in given):
        series = _of_arrays([np.array(matrix, dtype=np.float64) * unit_bps for matrix in given], nodes)
    else:
        series = _on_same_pairs([_columns(matrix, nodes, unit_bps) for matrix in given])
    return _solved(network, series, objective, time_limit_s)


def _solved(
    network: Problem, series: list[DemandColumns], objective: str, time_limit_s: float | None
) -> Iterator[Solution]:
    if not series:
        return
    engine = Engine(replace(network, demands=series[0]), objective=objective, time_limit_s=time_limit_s)
    yield engine.solution
    for columns in series[1:]:
        engine.become(columns)
        yield engine.solution


def _of_arrays(arrays: list[Floats], nodes: list[str]) -> list[DemandColumns]:
    """Return the matrices over the pairs that have a rate in any of them."""
    used = np.zeros((len(nodes), len(nodes)))
    for array in arrays:
        if array.shape == used.shape:
            np.maximum(used, np.abs(array), out=used)
    pairs = DemandColumns.from_matrix(nodes, used)
    ends = pairs.source, pairs.destination
    return [
        pairs.asking(array[ends]) if array.shape == used.shape else DemandColumns.from_matrix(nodes, array)
        for array in arrays
    ]


def _columns(matrix: Matrix | DemandColumns, nodes: list[str], unit_bps: float) -> DemandColumns:
    demands = demands_of(matrix, nodes)
    if not isinstance(demands, DemandColumns):
        place = {node: at for at, node in enumerate(nodes)}
        for demand in demands:
            if demand != Demand(demand.id, demand.source, demand.destination, demand.rate_bps):
                raise InvalidProblem(
                    "matrices", f"demand {demand.id} has limits; use Engine.become for those"
                )
            for node in (demand.source, demand.destination):
                if node not in place:
                    raise InvalidProblem(f"demands[{demand.id}]", f"{node!r} is not a node of the network")
        demands = DemandColumns(
            [demand.id for demand in demands],
            nodes,
            [place[demand.source] for demand in demands],
            [place[demand.destination] for demand in demands],
            [demand.rate_bps for demand in demands],
        )
    return demands if unit_bps == 1 else demands.scaled(unit_bps)


def _on_same_pairs(series: list[DemandColumns]) -> list[DemandColumns]:
    """Return all matrices over the pairs of any of them, which is what lets a solve go on from the last."""
    if all(columns.has_ends_of(series[0]) for columns in series[1:]):
        return series
    ends: dict[str, tuple[str, str]] = {}
    for columns in series:
        sources = [columns.nodes[at] for at in columns.source.tolist()]
        destinations = [columns.nodes[at] for at in columns.destination.tolist()]
        for name, *pair in zip(columns.ids, sources, destinations, strict=True):
            if ends.setdefault(name, (pair[0], pair[1])) != tuple(pair):
                raise InvalidProblem("matrices", f"demand {name} has other ends in another matrix")
    ids = list(ends)
    nodes = list(dict.fromkeys(node for pair in ends.values() for node in pair))
    place = {node: at for at, node in enumerate(nodes)}
    source = [place[tail] for tail, _ in ends.values()]
    destination = [place[head] for _, head in ends.values()]
    row = {name: at for at, name in enumerate(ids)}
    common = DemandColumns(ids, nodes, source, destination, np.zeros(len(ids)))
    made = []
    for columns in series:
        rates = np.zeros(len(ids))
        rates[[row[name] for name in columns.ids]] = columns.rate_bps
        made.append(common.asking(rates))
    return made
