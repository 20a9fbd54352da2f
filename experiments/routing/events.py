"""What events cost: flows that come and go, and links that fail, on a live engine."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gomr import Demand, Engine, Problem
from gomr.demands import poisson_events
from gomr.failures import Failure, link_failures, node_failures

from experiments.routing.time_limit import TimeLimit

FLOW_EVENTS_PER_FAILURE = 4


@dataclass(frozen=True)
class EventTimes:
    """CPU times of events in milliseconds, in the order in which they happened."""

    flow_ms: tuple[float, ...]
    link_failure_ms: tuple[float, ...]


def measure_events(
    live: Engine,
    problem: Problem,
    arriving: Callable[[str], Demand],
    count: int,
    seed: int,
    time_limit: TimeLimit | None = None,
) -> EventTimes | None:
    """Let flows come and go by Poisson's law, then let links fail and return, one at a time.

    The engine has the flows of the problem. A link fails for every fourth of `count` flow events, at least
    one and no link twice. Half of the time that is left is for the flows.

    Returns:
        The times of as many events as there was time for; None where not one of each kind was.

    Raises:
        SolverError: The engine failed.
    """
    time_limit = time_limit or TimeLimit(None)
    rng = random.Random(seed)
    live.time_limit_s = time_limit.rest_s
    _ = live.allocation  # the first one is no event
    flow_ms = []
    of_flows = time_limit.part(0.5)
    for event in itertools.islice(poisson_events(problem.demands, arriving, rng), count):
        if of_flows.is_up:
            break
        live.time_limit_s = time_limit.rest_s
        change = live.add_flow(event.demand) if event.arrives else live.remove_flow(event.demand.id)
        flow_ms.append(change.cpu_s * 1e3)
    links = links_of(problem)
    failure_ms = []
    for link in rng.sample(links, min(len(links), max(1, count // FLOW_EVENTS_PER_FAILURE))):
        if time_limit.is_up:
            break
        live.time_limit_s = time_limit.rest_s
        failure_ms.append(live.fail_link(link).cpu_s * 1e3)
        live.restore_link(link)
    return EventTimes(tuple(flow_ms), tuple(failure_ms)) if flow_ms and failure_ms else None


def links_of(problem: Problem) -> list[str]:
    """Return one edge of every link that can fail: those to hosts only where there are no others."""
    one_each = [edge for edge in problem.edges if edge.id <= (problem.reverse or {}).get(edge.id, edge.id)]
    inner = [edge.id for edge in one_each if not {edge.tail, edge.head} & problem.endpoints]
    return inner or [edge.id for edge in one_each]


def failures_of(problem: Problem, what: str) -> list[Failure]:
    """Return the failures of `links`, of `nodes` or `all`; links to hosts only where there are no others."""
    failures = []
    if what in ("links", "all"):
        inner = set(links_of(problem))
        failures += [failure for failure in link_failures(problem) if inner & set(failure.edges)]
    if what in ("nodes", "all"):
        failures += node_failures(problem)
    return failures


def percentiles_ms(times_ms: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    p50, p95 = np.percentile(times_ms, [50, 95])
    return {"p50": float(p50), "p95": float(p95)}
