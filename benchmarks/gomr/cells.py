"""One cell of the table: an engine on a network, in a process of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import TypeVar

from benchmarks.gomr.networks import SEED, Loaded, Size, load
from benchmarks.peak_memory import peak_memory_mib
from experiments.routing.events import links_of, percentiles_ms
from gomr import ENGINES, Allocation, Engine, Problem
from gomr.demands import poisson_events
from gomr.errors import SolverError
from gomr.paths.finder import PathFinder
from gomr.solving import allocate

Result = TypeVar("Result")

PATH_FORM = "pulp k=8"
"""PuLP over the 8 shortest paths of each demand, as it is usually done: not exact."""
ENGINE_NAMES = (*ENGINES, PATH_FORM)


@dataclass(frozen=True)
class RunSize:
    """How much to measure.

    Attributes:
        budget_s: Seconds that a solve, and each series of solves, may take.
        repeats: Solves from scratch.
        events: Flow events.
        failures: Link failures.
    """

    budget_s: float
    repeats: int
    events: int
    failures: int


@dataclass(frozen=True)
class Cell:
    """What was measured; times are CPU times of the thread in milliseconds, None for over the budget.

    `failure` says why there is nothing more.
    """

    network: str
    nodes: int
    edges: int
    flows: int
    engine: str
    cold_ms: float | None = None
    overload_ms: float | None = None
    overload_tried: bool = False
    flow_ms: dict[str, float] | None = None
    flow_events: int = 0
    link_failure_ms: dict[str, float] | None = None
    link_failures: int = 0
    admitted_share: float | None = None
    admitted_bps: float | None = None
    gap: float | None = None
    peak_mb: float | None = None
    failure: str | None = None


def in_own_process(measure: Callable[..., Result], *args: object) -> Result | None:
    """Return what a function returns in a process of its own, so that the peak of memory is its alone.

    None if the process ended without an answer.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(measure, *args).result()
        except BrokenProcessPool:
            return None


NO_ANSWER = "the process ended without an answer"


def measure(size: Size, engine: str, effort: RunSize) -> Cell:
    """Measure an engine on a network, in a process of its own."""
    cell = Cell(size.name, 0, 0, size.flows, engine)
    return in_own_process(_loaded, cell, size, effort) or replace(cell, failure=NO_ANSWER)


def _loaded(cell: Cell, size: Size, effort: RunSize) -> Cell:
    loaded = load(size)
    cell = replace(
        cell, nodes=loaded.nodes, edges=len(loaded.problem.edges), flows=len(loaded.problem.demands)
    )
    try:
        cell = _measured(cell, loaded, cell.engine, effort)
    except SolverError as error:
        cell = replace(cell, failure=str(error))
    return replace(cell, peak_mb=peak_memory_mib())


def _measured(cell: Cell, loaded: Loaded, engine: str, effort: RunSize) -> Cell:
    run = _runner(engine, effort.budget_s)
    problem = loaded.problem
    run(problem if len(problem.demands) < 10 else replace(problem, demands=problem.demands[:10]))  # warms up
    cold_ms, allocation = _timed(lambda: run(problem), effort)
    if allocation is None:
        return cell
    share = allocation.admitted_bps / allocation.requested_bps
    cell = replace(
        cell, cold_ms=cold_ms, admitted_share=share, admitted_bps=allocation.admitted_bps, gap=allocation.gap
    )
    if engine == PATH_FORM:
        return cell
    cell = _with_events(cell, loaded, engine, effort)
    if engine != "pulp" and loaded.traffic is not None:
        overloaded = loaded.overloaded()
        overload_ms, _ = _timed(lambda: run(overloaded), effort)
        cell = replace(cell, overload_ms=overload_ms, overload_tried=True)
    return cell


def _runner(engine: str, budget_s: float) -> Callable[[Problem], Allocation]:
    if engine == PATH_FORM:
        return lambda problem: allocate(_over_shortest(problem), engine="pulp", time_limit_s=budget_s)
    return lambda problem: allocate(problem, engine=engine, time_limit_s=budget_s)


def _over_shortest(problem: Problem) -> Problem:
    """Return the problem with the eight shortest paths of each demand as the only ones."""
    finder = PathFinder(problem)
    paths = {
        ends: tuple(tuple(edge.id for edge in path) for path in finder.shortest(*ends, 8))
        for ends in {(demand.source, demand.destination) for demand in problem.demands}
    }
    demands = tuple(replace(d, fixed_paths=paths[d.source, d.destination]) for d in problem.demands)
    return replace(problem, demands=demands)


def _timed(run: Callable[[], Allocation], effort: RunSize) -> tuple[float | None, Allocation | None]:
    """Return the median of some runs in ms, and the last answer; None for over the budget."""
    times_s: list[float] = []
    allocation = None
    while len(times_s) < effort.repeats and sum(times_s) < effort.budget_s:
        started = time.thread_time()
        try:
            allocation = run()
        except SolverError:
            return None, None
        times_s.append(time.thread_time() - started)
    return statistics.median(times_s) * 1e3, allocation


def _with_events(cell: Cell, loaded: Loaded, engine: str, effort: RunSize) -> Cell:
    live = Engine(loaded.problem, engine=engine, time_limit_s=effort.budget_s)
    _ = live.allocation
    rng = random.Random(SEED)
    poisson = itertools.islice(poisson_events(loaded.problem.demands, loaded.arriving, rng), effort.events)
    flow_ms = _within(
        (
            (live.add_flow(event.demand) if event.arrives else live.remove_flow(event.demand.id)).cpu_s
            for event in poisson
        ),
        effort.budget_s,
    )
    links = links_of(loaded.problem)

    def failures() -> Iterable[float]:
        for link in rng.sample(links, min(len(links), effort.failures)):
            yield live.fail_link(link).cpu_s
            live.restore_link(link)

    failure_ms = _within(failures(), effort.budget_s)
    return replace(
        cell,
        flow_ms=percentiles_ms(flow_ms),
        flow_events=len(flow_ms),
        link_failure_ms=percentiles_ms(failure_ms),
        link_failures=len(failure_ms),
    )


def _within(times_s: Iterable[float], budget_s: float) -> list[float]:
    """Return times in ms, the first in any case, until they have used the budget up."""
    taken: list[float] = []
    for time_s in times_s:
        taken.append(time_s * 1e3)
        if sum(taken) > budget_s * 1e3:
            break
    return taken
