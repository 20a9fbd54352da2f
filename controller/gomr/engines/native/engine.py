"""The default engine: exact column generation in Rust (crates/gomr), basis kept between calls.

This file converts.
"""

from __future__ import annotations

from dataclasses import replace

from gomr_native import Engine, InvalidInput, NotSolved

from controller.errors import InvalidProblem, SolverError
from controller.gomr.allocation import Rates
from controller.gomr.engines.answer import Answer
from controller.gomr.engines.native.network import NativeNetwork
from controller.gomr.even_split import spread
from controller.gomr.problem import Problem

NAME = "native"


def solve(problem: Problem, objective: str, time_limit_s: float | None) -> Answer:
    """Solve a problem; an engine as `controller.gomr.engines.answer` wants it.

    Raises:
        InvalidProblem: A number is beyond what the engine takes.
        SolverError: The engine failed or ran out of time.
    """
    network = NativeNetwork(problem)
    try:
        engine = start(network, problem, objective)
        summary, flows = engine.changes(time_limit_s=time_limit_s)
        prices = {} if objective == "max_min" else dict(zip(network.number, engine.prices(), strict=True))
    except InvalidInput as error:
        raise refusal(error) from error
    except NotSolved as error:
        raise failure(error, time_limit_s) from error
    rates: Rates = {problem.demands[number].id: paths for number, paths in flows}
    answer = Answer(rates, prices, bound_bps=summary.upper_bound)
    if objective == "even_split":
        return replace(answer, rates=spread(problem, rates, NAME, time_limit_s))
    return answer


def start(network: NativeNetwork, problem: Problem, objective: str) -> Engine:
    """Return a compiled engine with the problem's demands, not solved yet."""
    first = "max_throughput_min_delay" if objective == "even_split" else objective
    return Engine(network.network, [network.flow(demand) for demand in problem.demands], first)


def failure(error: NotSolved, time_limit_s: float | None) -> SolverError:
    """Return what an engine's failure is for a caller."""
    reason, state = error.args
    limit = "" if time_limit_s is None else f"; the time limit was {time_limit_s:g} s"
    return SolverError(NAME, f"{reason} before the optimum{limit}", state)


def refusal(error: InvalidInput) -> InvalidProblem:
    """Return what a refused field is for a caller."""
    field, reason = error.args
    return InvalidProblem(field, reason)
