"""Limits on paths: the best of all choices, and a bound that knows the limits."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest
from gomr import Demand, Edge, Problem
from gomr.engines.result import EngineResult
from gomr.objectives import OBJECTIVES, Objective
from gomr.paths.limits import keeps_limits, solve_within_limits
from gomr.solving import ENGINES, allocate

from tests.gomr.gomr_oracles import check_allocation, simple_paths

MAX_CHOICES = 300


def small(seed: int) -> Problem:
    """A few nodes with links of unlike rates, and demands with one or two paths each."""
    draw = random.Random(seed)
    names = [f"n{number}" for number in range(draw.randint(4, 6))]
    edges: list[Edge] = []
    for one, other in itertools.combinations(names, 2):
        if draw.random() < 0.6:
            rate_bps, delay_s = float(draw.choice([1, 2, 3, 5, 8])), 1e-3 * draw.randint(1, 5)
            edges += [Edge(f"{a}>{b}", a, b, rate_bps, delay_s) for a, b in ((one, other), (other, one))]
    edges.append(Edge("spare", names[0], names[1], 1.0, 1e-3))
    known = [name for name in names if any(name in (edge.tail, edge.head) for edge in edges)]
    demands = []
    for number in range(draw.randint(1, 3)):
        source, destination = draw.sample(known, 2)
        rate_bps, most = float(draw.randint(2, 14)), draw.choice([1, 1, 2])
        demands.append(Demand(f"d{number}", source, destination, rate_bps, max_paths=most))
    return Problem(tuple(edges), tuple(demands))


def best_of_all_choices(problem: Problem, objective: str) -> float | None:
    """The value of the best choice of paths by trying each; None where there are too many."""
    every = [simple_paths(problem, demand) for demand in problem.demands]
    choices = [
        list(itertools.combinations(paths, min(demand.max_paths or 0, len(paths))))
        for paths, demand in zip(every, problem.demands, strict=True)
    ]
    if any(not paths for paths in every) or math.prod(map(len, choices)) > MAX_CHOICES:
        return None
    values = []
    for choice in itertools.product(*choices):
        pairs = zip(problem.demands, choice, strict=True)
        bound = tuple(replace(demand, fixed_paths=paths, max_paths=None) for demand, paths in pairs)
        values.append(allocate(replace(problem, demands=bound), objective).value_bps)
    return max(values)


@pytest.mark.parametrize(("objective", "seeds"), [("max_throughput_min_delay", 100), ("fair", 30)])
def test_a_few_limited_demands_get_the_best_of_all_paths(objective: str, seeds: int) -> None:
    compared = 0
    for seed in range(seeds):
        problem = small(seed)
        best_bps = best_of_all_choices(problem, objective)
        if best_bps is None:
            continue
        allocation = allocate(problem, objective)
        check_allocation(problem, allocation)
        assert allocation.value_bps == pytest.approx(best_bps, rel=1e-7), seed
        assert allocation.upper_bound_bps >= best_bps * (1 - 1e-9), seed
        assert allocation.gap <= 1e-8, seed
        compared += 1
    assert compared >= seeds // 3


@pytest.mark.parametrize("engine", ["highs", "pulp"])
def test_the_other_engines_find_the_same(engine: str) -> None:
    for seed in range(6):
        problem = small(seed)
        native, other = allocate(problem), allocate(problem, engine=engine)
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
    allocation = allocate(Problem(tuple(edges), (demand,), reverse))
    assert allocation.admitted_bps == pytest.approx(6.0)
    assert allocation.gap <= 1e-8


def test_rates_too_far_apart_for_highs_leave_the_best_that_is_known() -> None:
    """What others leave of an edge may be the rounding of a rate: HiGHS takes no factor of 1e16."""
    rates = {"s>a": 9e7, "a>t": 2e-9, "a>b": 7e-5, "b>t": 7e-5, "t>u": 9e7}
    edges = tuple(Edge(name, name[0], name[2], rate_bps, 1e-3) for name, rate_bps in rates.items())
    allocation = allocate(Problem(edges, (Demand("d", "s", "u", 3e7, max_paths=1),)))
    assert allocation.admitted_bps == pytest.approx(0.0, abs=1e-3)


def test_without_time_for_the_search_the_gap_is_told() -> None:
    problem = small(3)
    allocation = allocate(problem, time_limit_s=0.0)
    assert allocation.timed_out
    assert allocation.upper_bound_bps >= allocate(problem).value_bps * (1 - 1e-9)


def test_time_that_ends_after_the_choice_leaves_the_optimum_cut_to_the_limits() -> None:
    engine = ENGINES["native"]()

    def ending(problem: Problem, objective: Objective, time_limit_s: float | None) -> EngineResult:
        answer = engine(problem, objective, time_limit_s)
        if not any(demand.fixed_paths for demand in problem.demands):
            return answer
        return replace(answer, rates=dict.fromkeys(answer.rates, ()), complete=False)

    problem = small(2)
    assert not keeps_limits(problem, engine(problem, OBJECTIVES["max_throughput_min_delay"], None).rates)
    answer = solve_within_limits(problem, OBJECTIVES["max_throughput_min_delay"], ending, None)
    assert not answer.complete
    assert keeps_limits(problem, answer.rates)
    assert sum(rate_bps for paths in answer.rates.values() for _, rate_bps in paths) > 0


def many_limited(seed: int) -> Problem:
    """Nine nodes in a grid with links of unlike rates, and sixteen demands of one path each."""
    draw = random.Random(seed)
    edges: list[Edge] = []
    for row, column in itertools.product(range(3), repeat=2):
        for other in ((row + 1, column), (row, column + 1)):
            if max(other) < 3:
                rate_bps = float(draw.choice([4, 6, 9]))
                ends = f"{row}{column}", f"{other[0]}{other[1]}"
                edges += [Edge(f"{a}>{b}", a, b, rate_bps, 1e-3) for a, b in (ends, ends[::-1])]
    pairs = list(itertools.permutations(sorted({edge.tail for edge in edges}), 2))
    demands = [
        Demand(f"d{number}", *ends, float(draw.randint(1, 4)), max_paths=1)
        for number, ends in enumerate(draw.sample(pairs, 16))
    ]
    return Problem(tuple(edges), tuple(demands))


def test_the_bound_for_many_limited_demands_knows_the_limits() -> None:
    for seed in range(2):
        problem = many_limited(seed)
        allocation = allocate(problem)
        check_allocation(problem, allocation)
        assert allocation.gap <= 0.02, seed
        unlimited = replace(problem, demands=tuple(replace(d, max_paths=None) for d in problem.demands))
        assert allocation.upper_bound_bps <= allocate(unlimited).value_bps * (1 + 1e-8), seed


@pytest.mark.parametrize("objective", ["fair", "max_min"])
def test_fair_objectives_keep_limits_and_are_no_worse_than_with_the_paths_of_most_throughput(
    objective: str,
) -> None:
    for seed in (1, 2):
        problem = many_limited(seed)
        allocation, widest = allocate(problem, objective), allocate(problem)
        check_allocation(problem, allocation)
        kept = tuple(
            replace(demand, fixed_paths=tuple(path.edges for path in own), max_paths=None)
            for demand in problem.demands
            if (own := widest.paths[demand.id])
        )
        bound = allocate(replace(problem, demands=kept), objective)
        least = min(allocation.rate_bps(demand.id) / demand.weight for demand in problem.demands)
        others = [bound.rate_bps(demand.id) / demand.weight for demand in kept]
        others += [0.0] * (len(problem.demands) - len(kept))
        if objective == "fair":
            assert allocation.value_bps >= bound.value_bps * (1 - 1e-9), seed
        else:
            assert least >= min(others) * (1 - 1e-9), seed
