"""What engines that look for the levels of `max_min` one by one have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gomr.allocation import Rates
from gomr.engines.time_budget import TimeBudget
from gomr.problem import Problem

_FAIR = 1e-9
"""A rate is fair to this share of it ..."""
_VISIBLE = 1e-12
"""... or to this share of the unit of rates."""


def asking(problem: Problem, rates_bps: Mapping[str, float]) -> Problem:
    """Return the problem with other requests."""
    demands = tuple(replace(demand, rate_bps=rates_bps[demand.id]) for demand in problem.demands)
    return replace(problem, demands=demands)


def check_fair(problem: Problem, fair_bps: Mapping[str, float], rates: Rates, budget: TimeBudget) -> None:
    """Check that the rates on paths are the fair ones.

    Raises:
        SolverError: One is not; the engine must not pass it off as such.
    """
    lost_bps = _VISIBLE * problem.unit_bps
    for demand in problem.demands:
        fair, carried_bps = fair_bps[demand.id], math.fsum(rate_bps for _, rate_bps in rates[demand.id])
        if abs(fair - carried_bps) > max(_FAIR * fair, lost_bps):
            raise budget.failure(
                f"max_min gives demands[{demand.id}] {fair:.9g} bit/s, but its paths carry "
                f"{carried_bps:.9g}; use the engine native and report the problem"
            )
