"""Failures ahead: what a network would still admit if one of its links or nodes failed.

    survey = survey_failures(problem, [*link_failures(problem), *node_failures(problem)])
    for outcome in survey.worst_first()[:5]:
        print(outcome.failure.name, outcome.lost_bps)

Each outcome is the most that any allocation admits after the failure, solved from a copy of the optimum
without failures, on all cores. A failure of links that carry nothing changes nothing, and takes no solve.
Every outcome has a proven bound; one that was not reached in time has the bounds that are known without a
solve: all the rest of the optimum before the failure stays admitted, and the prices of its links say what is
lost at least.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from gomr._native import Engine, InvalidInput, NotSolved, TimeIsUp
from gomr.engines.native import engine as native
from gomr.engines.native.network import NativeNetwork, finite_bps
from gomr.engines.time_budget import OutOfTime
from gomr.objectives import PLAIN, objective_of
from gomr.problem import Demand, Problem
from gomr.solving import check_names, without_local


@dataclass(frozen=True)
class Failure:
    """Links that fail together.

    Attributes:
        kind: Whether a link or a node fails.
        name: Of the link (`A-B`) or the node.
        edges: Ids of the edges that carry nothing then.
    """

    kind: Literal["link", "node"]
    name: str
    edges: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What is admitted after a failure.

    Attributes:
        failure: The failure.
        admitted_bps: What is admitted; at least this much where `is_exact` is false.
        upper_bound_bps: No allocation admits more; proved by prices.
        lost_bps: Admitted before the failure less `admitted_bps`.
        cut_off_bps: Asked for by flows that begin or end at the node that fails; nothing can save them.
        is_exact: Whether it was solved for.
    """

    failure: Failure
    admitted_bps: float
    upper_bound_bps: float
    lost_bps: float
    cut_off_bps: float
    is_exact: bool


@dataclass(frozen=True)
class Survey:
    """All outcomes, in the order of the failures, and what is admitted and requested without any."""

    admitted_bps: float
    requested_bps: float
    outcomes: tuple[Outcome, ...]

    def worst_first(self) -> list[Outcome]:
        """Return the outcomes, those that lose most first."""
        return sorted(self.outcomes, key=lambda outcome: (-outcome.lost_bps, outcome.failure.name))

    @property
    def unsolved(self) -> int:
        """How many outcomes are known by their bounds only."""
        return sum(not outcome.is_exact for outcome in self.outcomes)


def link_failures(problem: Problem) -> list[Failure]:
    """Return the failure of each link: of an edge, and of its reverse if it has one."""
    reverse = problem.reverse or {}
    failures = []
    done: set[str] = set()
    for edge in problem.edges:
        if edge.id not in done:
            pair = (edge.id, reverse[edge.id]) if edge.id in reverse else (edge.id,)
            done.update(pair)
            failures.append(Failure("link", f"{edge.tail}-{edge.head}", pair))
    return failures


def node_failures(problem: Problem) -> list[Failure]:
    """Return the failure of each node that forwards: of all edges at it."""
    at: dict[str, list[str]] = {}
    for edge in problem.edges:
        for node in (edge.tail, edge.head):
            at.setdefault(node, []).append(edge.id)
    return [
        Failure("node", node, tuple(edges)) for node, edges in at.items() if node not in problem.endpoints
    ]


def survey_failures(
    problem: Problem,
    failures: Sequence[Failure],
    objective: str = "max_throughput_min_delay",
    *,
    time_limit_s: float | None = None,
    workers: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Survey:
    """Return what is admitted after each failure.

    Limits on numbers of paths and on disjointness do not count.

    Args:
        problem: The network and its demands.
        failures: What may fail, one at a time.
        objective: A name in `OBJECTIVES`.
        time_limit_s: Seconds for all of it; None for no limit. Failures with the most load go first.
        workers: Threads; None: one for each core.
        clock: Seconds.

    Raises:
        InvalidProblem: There is no such objective, or a number is beyond what the engine takes.
        OutOfTime: The time was up before the optimum without failures.
        SolverError: The engine failed.
    """
    check_names(objective, native.NAME, time_limit_s)
    until_s = math.inf if time_limit_s is None else clock() + time_limit_s
    base = _Baseline(problem, objective, lambda: None if math.isinf(until_s) else until_s - clock())
    waiting = [index for index, failure in enumerate(failures) if base.load_of(failure) > 0]
    waiting.sort(key=lambda index: -base.load_of(failures[index]))
    outcomes = [base.estimate(failure) for failure in failures]
    count = max(1, min(workers or os.cpu_count() or 1, len(waiting)))

    def work(index: int) -> None:
        solved = base.solve(failures[index])
        if solved is not None:
            outcomes[index] = base.outcome(failures[index], *solved)

    pool = ThreadPoolExecutor(count)
    try:
        for solved in [pool.submit(work, index) for index in waiting]:
            solved.result()
    finally:
        pool.shutdown(cancel_futures=True)
    return Survey(base.admitted_bps, base.requested_bps, tuple(outcomes))


class _Baseline:
    """The optimum without failures, and what it says of each failure."""

    def __init__(self, problem: Problem, objective: str, left_s: Callable[[], float | None]) -> None:
        self._left_s = left_s
        self._routed = without_local(problem)
        self._local = [demand for demand in problem.demands if demand.is_local]
        self._network = NativeNetwork(self._routed)
        self._is_exact_bound = not objective_of(objective).is_fair
        self._engine = self._start(objective)
        try:
            summary, flows = self._engine.changes(time_limit_s=self._left())
        except TimeIsUp as error:
            reason = "the time is up before the optimum without failures"
            raise OutOfTime(native.NAME, reason, error.args[1]) from error
        except NotSolved as error:
            raise native.failure(error, None) from error
        # After the optimum with least delays: few paths are missing there.
        self._engine.forget_poor_paths()
        if self._is_exact_bound:
            self._engine.ignore_delays()
        local_bps = math.fsum(demand.rate_bps for demand in self._local)
        self._routed_bps = summary.admitted_bps
        self.admitted_bps = summary.admitted_bps + local_bps
        self.requested_bps = math.fsum(demand.rate_bps for demand in problem.demands)
        self._loads_bps: dict[str, list[tuple[int, float]]] = {}
        for number, paths in flows:
            for path_number, (path, rate_bps) in enumerate(paths):
                for edge in path:
                    self._loads_bps.setdefault(edge.id, []).append(((number << 20) + path_number, rate_bps))
        prices = dict(zip(self._network.number, self._engine.prices(), strict=True))
        self._worth_bps = {
            edge.id: finite_bps(edge.capacity_bps) * prices[edge.id] if self._is_exact_bound else 0.0
            for edge in self._routed.edges
        }
        self._bound_bps = summary.upper_bound if self._is_exact_bound else summary.requested_bps

    def _start(self, objective: str) -> Engine:
        first = PLAIN.name if self._is_exact_bound else objective
        try:
            # Failures are what is done in parallel, so each search for paths has one thread.
            flows = self._network.flows(self._routed.demands)
            return Engine(self._network.network, flows, first, threads=1)
        except InvalidInput as error:
            raise native.refusal(error) from error

    def solve(self, failure: Failure) -> tuple[float, float] | None:
        """Return what is admitted after a failure, and its bound; None if the time is up."""
        left_s = self._left()
        if left_s is not None and left_s <= 0:
            return None
        engine = self._engine.copy()
        for edge in failure.edges:
            engine.fail_link(self._network.number[edge])
        try:
            summary = engine.solve(time_limit_s=left_s)
        except NotSolved as error:
            if left_s is None or (self._left() or 0) > 0:
                raise native.failure(error, left_s) from error
            return None
        return summary.admitted_bps, max(summary.admitted_bps, summary.upper_bound)

    def _left(self) -> float | None:
        left_s = self._left_s()
        return None if left_s is None else max(0.0, left_s)

    def load_of(self, failure: Failure) -> float:
        """Return the rate of the paths that the failure breaks, each counted once."""
        return math.fsum(self._broken(failure).values())

    def _broken(self, failure: Failure) -> dict[int, float]:
        return {path: bps for edge in failure.edges for path, bps in self._loads_bps.get(edge, ())}

    def estimate(self, failure: Failure) -> Outcome:
        """Return what is known of a failure without a solve; all of it where no load is on its links."""
        lost_bps = self.load_of(failure)
        bound_bps = self._bound_bps - math.fsum(self._worth_bps[edge] for edge in failure.edges)
        admitted_bps = self._routed_bps - lost_bps
        return self.outcome(
            failure,
            admitted_bps,
            max(admitted_bps, bound_bps) if lost_bps else self._routed_bps,
            not lost_bps,
        )

    def outcome(
        self, failure: Failure, admitted_bps: float, bound_bps: float, is_exact: bool = True
    ) -> Outcome:
        """Return an outcome, with the flows that stay at their node."""
        standing = [d for d in self._local if failure.kind == "link" or d.source != failure.name]
        kept_bps = math.fsum(demand.rate_bps for demand in standing)
        cut_off: list[Demand] = []
        if failure.kind == "node":
            cut_off = [d for d in (*self._routed.demands, *self._local) if _ends_at(d, failure)]
        admitted_bps += kept_bps
        return Outcome(
            failure,
            admitted_bps,
            bound_bps + kept_bps,
            max(0.0, self.admitted_bps - admitted_bps),
            math.fsum(demand.rate_bps for demand in cut_off),
            is_exact,
        )


def _ends_at(demand: Demand, failure: Failure) -> bool:
    return failure.name in (demand.source, demand.destination)
