"""Limits on paths: the best of all choices, and a bound that knows the limits."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from controller.gomr import Demand, Edge, Problem, solve
from tests.controller.gomr.gomr_oracles import check_allocation, simple_paths

MOST_CHOICES = 300


def small(seed: int) -> Problem:
    """A few nodes with links of unlike rates, and demands with one or two paths each."""
    draw = random.Random(seed)
    names = [f"n{number}" for number in range(draw.randint(4, 6))]
    edges: list[Edge] = []
    for one, other in itertools.combinations(names, 2):
        if draw.random() < 0.6:
            rate_bps, delay_s = float(draw.choice([1, 2, 3, 5, 8])), 1e-3 * draw.randint(1, 5)
            edges += [Edge(f"{a}>{b}", a, b, rate_bps, delay_s) for a, b in ((one, other), (other, one))]
    demands = []
    for number in range(draw.randint(1, 3)):
        source, destination = draw.sample(names, 2)
        rate_bps, most = float(draw.randint(2, 14)), draw.choice([1, 1, 2])
        demands.append(Demand(f"d{number}", source, destination, rate_bps, max_paths=most))
    return Problem((*edges, Edge("spare", names[0], names[1], 1.0, 1e-3)), tuple(demands))


def best_of_all_choices(problem: Problem, objective: str) -> float | None:
    """The value of the best choice of paths by trying each; None where there are too many."""
    every = [simple_paths(problem, demand) for demand in problem.demands]
    choices = [
        list(itertools.combinations(paths, min(demand.max_paths or 0, len(paths))))
        for paths, demand in zip(every, problem.demands, strict=True)
    ]
    if any(not paths for paths in every) or len(list(itertools.product(*choices))) > MOST_CHOICES:
        return None
    values = []
    for choice in itertools.product(*choices):
        pairs = zip(problem.demands, choice, strict=True)
        bound = tuple(replace(demand, fixed_paths=paths, max_paths=None) for demand, paths in pairs)
        values.append(solve(replace(problem, demands=bound), objective).value_bps)
    return max(values)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair"])
def test_a_few_limited_demands_get_the_best_of_all_paths(objective: str) -> None:
    compared = 0
    for seed in range(40):
        problem = small(seed)
        best_bps = best_of_all_choices(problem, objective)
        if best_bps is None:
            continue
        found = solve(problem, objective)
        check_allocation(problem, found)
        assert found.value_bps == pytest.approx(best_bps, rel=1e-7), seed
        assert found.upper_bound_bps >= best_bps * (1 - 1e-9), seed
        assert found.gap <= 1e-8, seed
        compared += 1
    assert compared >= 15


@pytest.mark.parametrize("engine", ["highs", "pulp"])
def test_the_other_engines_find_the_same(engine: str) -> None:
    for seed in range(6):
        problem = small(seed)
        native, other = solve(problem), solve(problem, engine=engine)
        assert other.value_bps == pytest.approx(native.value_bps, rel=1e-7)
        assert other.gap <= 1e-8


def test_acknowledgements_and_delay_limits_count_in_the_search() -> None:
    # Twelve parallel ways: the widest is too late, the next has no way back for its acknowledgements.
    ways = [(10.0, 9e-3, 10.0), (8.0, 1e-3, 0.1), (6.0, 1e-3, 6.0), *((2.0, 1e-3, 2.0),) * 9]
    edges = [Edge(f"on{i}", "A", f"m{i}", rate, delay) for i, (rate, delay, _) in enumerate(ways)]
    edges += [Edge(f"back{i}", f"m{i}", "A", back, 1e-3) for i, (_, _, back) in enumerate(ways)]
    edges += [Edge(f"in{i}", f"m{i}", "B", 20.0, 1e-3) for i in range(len(ways))]
    edges += [Edge(f"out{i}", "B", f"m{i}", 20.0, 1e-3) for i in range(len(ways))]
    reverse = {f"on{i}": f"back{i}" for i in range(len(ways))} | {
        f"in{i}": f"out{i}" for i in range(len(ways))
    }
    reverse |= {back: on for on, back in reverse.items()}
    demand = Demand("f", "A", "B", 30.0, max_paths=1, ack_ratio=0.1, max_delay_s=5e-3)
    found = solve(Problem(tuple(edges), (demand,), reverse))
    assert found.admitted_bps == pytest.approx(6.0)
    assert found.gap <= 1e-8


def test_without_time_for_the_search_the_gap_is_told() -> None:
    problem = small(3)
    found = solve(problem, time_limit_s=0.0)
    assert found.timed_out
    assert found.upper_bound_bps >= solve(problem).value_bps * (1 - 1e-9)
