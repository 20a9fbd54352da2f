"""What `mstcp-lab solve` found, as the documents that programs read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gomr import OBJECTIVES, Allocation, Demand, DemandColumns, PathRate, Problem
from gomr.allocation import loads_of_allocation
from gomr.backups import Backup
from gomr.failures import Outcome, Survey

from experiments.routing.events import EventTimes, percentiles_ms
from topologies import Network

MAX_FAILURES = 10
"""How many of the worst failures the summary names."""


@dataclass(frozen=True)
class FlowRow:
    """A flow: what it asks for and gets, and its paths."""

    demand: Demand
    admitted_bps: float
    paths: tuple[PathRate, ...]

    @property
    def share(self) -> float:
        """The part of its request that it gets; 1 for a flow that asks for nothing."""
        return min(1.0, self.admitted_bps / self.demand.rate_bps) if self.demand.rate_bps else 1.0

    @property
    def delay_s(self) -> float | None:
        """The mean delay of its bits; None where it gets nothing."""
        if not self.admitted_bps:
            return None
        return math.fsum(path.rate_bps * path.delay_s for path in self.paths) / self.admitted_bps


@dataclass(frozen=True)
class Solved:
    """A problem, its allocation, and what they cost.

    Times are CPU time of the thread: `build_ms` for the checked problem of the network and its demands,
    `solve_ms` from there to the certified allocation. `events` and `survey` are None if they were not asked
    for, or the time was up; `backups` are as many as there was time for. Notes are on what was assumed or
    left out of the files.
    """

    network: Network
    problem: Problem
    allocation: Allocation
    build_ms: float
    solve_ms: float
    events: EventTimes | None = None
    survey: Survey | None = None
    backups: tuple[Backup, ...] = ()
    notes: tuple[str, ...] = ()

    def flows(self) -> Iterator[FlowRow]:
        """Yield every flow, in the order of the demands."""
        paths = self.allocation.paths
        for demand in self.problem.demands:
            yield FlowRow(demand, self.allocation.rate_bps(demand.id), paths[demand.id])

    @cached_property
    def path_count(self) -> int:
        """How many paths are in use."""
        columns = self.allocation.columns
        if columns is not None and isinstance(self.problem.demands, DemandColumns):
            return len(columns.rate_bps)
        return sum(map(len, self.allocation.paths.values()))

    @cached_property
    def loads_bps(self) -> Mapping[str, float]:
        """The load of every edge."""
        return loads_of_allocation(self.problem, self.allocation)


def summary(solved: Solved) -> dict[str, Any]:
    """Return the summary: totals, certificate and times."""
    allocation, events = solved.allocation, solved.events
    made: dict[str, Any] = {
        "nodes": len(solved.network.nodes),
        "links": len(solved.network.links),
        "flows": len(solved.problem.demands),
        "engine": allocation.engine,
        "objective": allocation.objective,
        "admitted_bps": allocation.admitted_bps,
        "requested_bps": allocation.requested_bps,
        "cost_bps_s": allocation.cost_bps_s,
        "paths": solved.path_count,
        "certificate": {
            "upper_bound_bps": allocation.upper_bound_bps,
            "gap": allocation.gap,
            "max_violation_bps": allocation.max_violation_bps,
        },
        # Where that is what the objective is about.
        **(
            {"max_utilisation": allocation.max_utilisation}
            if OBJECTIVES[allocation.objective].evens_load
            else {}
        ),
        "cpu_ms": {"build": solved.build_ms, "solve": solved.solve_ms},
    }
    if events is not None:
        made["events"] = {
            "flow_ms": percentiles_ms(events.flow_ms),
            "link_failure_ms": percentiles_ms(events.link_failure_ms),
        }
    if solved.survey is not None:
        made["failures"] = failures_summary(solved.survey)
    return made


def failures_summary(survey: Survey) -> dict[str, Any]:
    """Return how many failures were surveyed, and the worst of them."""
    return {
        "surveyed": len(survey.outcomes),
        "exact": len(survey.outcomes) - survey.unsolved,
        "without_loss": sum(outcome.lost_bps == 0 for outcome in survey.outcomes),
        "worst": [failure_row(outcome) for outcome in survey.worst_first()[:MAX_FAILURES]],
    }


def failure_row(outcome: Outcome) -> dict[str, Any]:
    """Return what is admitted after a failure."""
    figures = ("admitted_bps", "upper_bound_bps", "lost_bps", "cut_off_bps")
    failure = outcome.failure
    return {"kind": failure.kind, "name": failure.name, **{name: getattr(outcome, name) for name in figures}}
