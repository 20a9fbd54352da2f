"""The default engine: exact column generation in Rust (crates/gomr), basis kept between calls.

This file converts.
"""

from __future__ import annotations

import os
from dataclasses import replace

from gomr._native import Engine, Flows, InvalidInput, NotSolved, TimeIsUp
from gomr.engines import regular
from gomr.engines.assembly import NativeResult
from gomr.engines.native.network import NativeNetwork
from gomr.engines.result import EngineResult
from gomr.engines.time_budget import TimeBudget
from gomr.errors import InvalidProblem, SolverError
from gomr.even_split import spread_in_time
from gomr.objectives import Objective
from gomr.problem import Problem

NAME = "native"
MATRIX_DEMANDS = 30_000
MATRIX_DEMANDS_PER_NODE = 32
"""This many demands, and this many for each node, are a matrix: those of one source are routed together."""


def solve(problem: Problem, objective: Objective, time_limit_s: float | None) -> EngineResult:
    """Solve a problem; an engine as `gomr.engines.result` wants it.

    Raises:
        InvalidProblem: A number is beyond what the engine takes.
        SolverError: The engine failed.
    """
    budget = TimeBudget(NAME, time_limit_s)
    network = NativeNetwork(problem)
    try:
        flows = network.flows(problem.demands)
        solution = _by_symmetry(objective, network, flows, time_limit_s)
        solution = solution or _by_source(problem, objective, network, flows, time_limit_s)
        if solution is None:
            engine = start(network, flows, objective)
            if objective.evens_load and regular.suits(problem):

                def by_pivots(most_looks: int | None) -> tuple[EngineResult, bool]:
                    found = result_of(engine, network, flows, budget.rest_s(), most_looks)
                    return found.answer(problem), found.complete

                return regular.raced(problem, by_pivots, lambda _: regular.least_utilisation(problem, budget))
            solution = result_of(engine, network, flows, time_limit_s)
    except InvalidInput as error:
        raise refusal(error) from error
    except NotSolved as error:
        raise failure(error, time_limit_s) from error
    answer = solution.answer(problem)
    if objective.evens_split and solution.complete:
        rates, complete = spread_in_time(problem, answer.rates, budget)
        bound_bps = solution.audit(objective).upper_bound
        return replace(answer, rates=rates, complete=complete, bound_bps=bound_bps, native=None)
    return answer


def is_matrix(problem: Problem, network: NativeNetwork) -> bool:
    """Return whether nodes send to enough others that the demands of one source are routed together."""
    return len(problem.demands) >= max(MATRIX_DEMANDS, MATRIX_DEMANDS_PER_NODE * network.nodes.count)


def _by_symmetry(
    objective: Objective, network: NativeNetwork, flows: Flows, time_limit_s: float | None
) -> NativeResult | None:
    """Return the answer where edges and demands fall into few classes.

    None elsewhere, and where throughput is all: commodities are as quick there, and have fewer paths.
    """
    if not (objective.is_fair or objective.evens_load):
        return None
    solved = network.network.solve_by_symmetry(flows, objective.name, time_limit_s=time_limit_s)
    return None if solved is None else NativeResult(network, flows, *solved)


def _by_source(
    problem: Problem, objective: Objective, network: NativeNetwork, flows: Flows, time_limit_s: float | None
) -> NativeResult | None:
    """Return the answer to a matrix that is routed by source; None where commodities do better."""
    if not is_matrix(problem, network) or not objective.is_plain:
        return None
    routed = network.network.route_by_source(flows, threads=threads(), time_limit_s=time_limit_s)
    if routed is None:
        return None
    paths, prices, complete = routed
    return NativeResult(network, flows, paths, prices, [], complete)


def result_of(
    engine: Engine,
    network: NativeNetwork,
    flows: Flows,
    time_limit_s: float | None,
    most_looks: int | None = None,
) -> NativeResult:
    """Solve within the time and looks at it; where these are up, the answer is what the engine has come to.

    Raises:
        NotSolved: The engine failed.
    """
    try:
        paths, complete = engine.path_rates(time_limit_s=time_limit_s, most_looks=most_looks), True
    except TimeIsUp:
        paths, complete = engine.path_rates_so_far(), False
    return NativeResult(network, flows, paths, *engine.prices_so_far(), complete)


def start(network: NativeNetwork, flows: Flows, objective: Objective) -> Engine:
    """Return a compiled engine with these demands, not solved yet."""
    first = objective.solved_as
    return Engine(network.network, flows, first, threads=threads())


def threads() -> int:
    """Return how many threads may search for paths: one for each core that this process may use."""
    return len(os.sched_getaffinity(0))


def failure(error: NotSolved, time_limit_s: float | None) -> SolverError:
    """Return what an engine's failure is for a caller."""
    reason, state = error.args
    limit = "" if time_limit_s is None else f"; the time limit was {time_limit_s:g} s"
    return SolverError(NAME, f"{reason} before the optimum{limit}", state)


def refusal(error: InvalidInput) -> InvalidProblem:
    """Return what a refused field is for a caller."""
    field, reason = error.args
    return InvalidProblem(field, reason)
