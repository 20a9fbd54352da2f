"""All engines agree on all objectives, over random networks and demands.

GOMR_PROBLEMS problems for each objective (60 unless told otherwise; `make agreement` takes 600).
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from gomr import ENGINES, OBJECTIVES, Allocation, Problem
from gomr.solving import allocate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gomr.gomr_fractions import max_min_rates
from tests.gomr.gomr_oracles import check_allocation, problems

EXACT = 1e-9
VISIBLE = 1e-12
"""A rate under `max_min` is exact to EXACT of it, or to this share of the unit of rates."""
PROBLEMS = int(os.environ.get("GOMR_PROBLEMS", "60"))


@st.composite
def any_problems(draw: st.DrawFn) -> Problem:
    """Random problems with flows of 1 bit/s to 1 Tbit/s in one, and some that stay within a node."""
    problem = draw(problems(most_nodes=6, most_demands=5))
    magnitudes = st.sampled_from([None, None, 1.0, 1e3, 1e6, 1e9, 1e12])
    weights = st.sampled_from([1.0, 1.0, 0.5, 3.0])
    demands = []
    for demand in problem.demands:
        rate_bps = draw(magnitudes)
        destination = demand.source if draw(st.integers(0, 9)) == 0 else demand.destination
        demands.append(
            replace(
                demand,
                destination=destination,
                rate_bps=demand.rate_bps if rate_bps is None else rate_bps,
                weight=draw(weights),
            )
        )
    return replace(problem, demands=tuple(demands))


def assert_agree(problem: Problem, objective: str, one: Allocation, other: Allocation) -> None:
    """Both have the same values of all objectives that are one by one."""
    largest_bps = max(edge.capacity_bps for edge in problem.edges)
    exact_bps = EXACT * min(largest_bps, problem.unit_bps or largest_bps)
    names = f"{one.engine}, {other.engine}"
    assert one.value_bps == pytest.approx(other.value_bps, rel=EXACT, abs=exact_bps), names
    if objective == "max_min":
        for demand in problem.demands:
            rates = one.rate_bps(demand.id), other.rate_bps(demand.id)
            assert rates[0] == pytest.approx(rates[1], rel=EXACT, abs=10 * exact_bps), (names, demand.id)
    if objective == "min_max_utilisation":
        assert one.max_utilisation == pytest.approx(other.max_utilisation, rel=1e-7, abs=EXACT), names


@st.composite
def problems_of_any_magnitude(draw: st.DrawFn) -> Problem:
    """Random problems in which capacities too are of 1 bit/s to 1 Tbit/s side by side."""
    problem = draw(any_problems())
    magnitudes = st.sampled_from([None, None, None, 1.0, 1e3, 1e6, 1e9, 1e12])
    edges = []
    for edge in problem.edges:
        capacity_bps = draw(magnitudes)
        edges.append(edge if capacity_bps is None else replace(edge, capacity_bps=capacity_bps))
    return replace(problem, edges=tuple(edges))


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(problem=any_problems())
@settings(
    deadline=None,
    max_examples=PROBLEMS,
    suppress_health_check=[HealthCheck.too_slow],
)
@pytest.mark.timeout(3600)
def test_engines_agree(objective: str, problem: Problem) -> None:
    first, *others = (allocate(problem, objective, engine) for engine in ENGINES)
    for allocation in (first, *others):
        check_allocation(problem, allocation)
        assert allocation.gap <= 1e-8
    for other in others:
        assert_agree(problem, objective, first, other)


@given(problem=any_problems() | problems_of_any_magnitude())
@settings(deadline=None, max_examples=PROBLEMS, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.timeout(3600)
def test_max_min_rates_are_those_of_rational_arithmetic(problem: Problem) -> None:
    exact = max_min_rates(problem)
    for engine in ENGINES:
        allocation = allocate(problem, "max_min", engine)
        check_allocation(problem, allocation)
        assert allocation.gap <= 1e-8
        for name, rate in exact.items():
            lost_bps = VISIBLE * problem.unit_bps
            assert allocation.rate_bps(name) == pytest.approx(float(rate), rel=EXACT, abs=lost_bps), engine
