"""Generated demands: reproducible, and distributed as their models say."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter

import pytest
from gomr.demands import MODELS, FlowEvent, Traffic, poisson_events
from gomr.errors import InvalidProblem

NODES = [f"n{i}" for i in range(40)]


@pytest.mark.parametrize("model", MODELS)
def test_the_seed_settles_everything(model: str) -> None:
    first, again = (Traffic(model, NODES, seed=7) for _ in range(2))
    assert first.flows(300) == again.flows(300)
    assert first.flow("x") == again.flow("x")
    assert Traffic(model, NODES, seed=8).flows(300) != Traffic(model, NODES, seed=7).flows(300)


@pytest.mark.parametrize("model", MODELS)
def test_pairs_are_drawn_evenly_and_repeat_only_when_all_have_come(model: str) -> None:
    flows = Traffic(model, NODES[:5], seed=1).flows(50)
    assert len({flow.id for flow in flows}) == 50
    every = set(itertools.permutations(NODES[:5], 2))
    assert {(f.source, f.destination) for f in flows[:20]} == every
    assert Counter((f.source, f.destination) for f in flows[:40]) == dict.fromkeys(every, 2)
    assert len({(f.source, f.destination) for f in flows[40:]}) == 10


@pytest.mark.parametrize("model", MODELS)
def test_rates_are_positive_with_a_mean_of_1(model: str) -> None:
    """Four standard errors; of gravity, only the mean over the masses of many seeds is 1."""
    seeds = range(200 if model == "gravity" else 1)
    rates = [flow.rate_bps for seed in seeds for flow in Traffic(model, NODES, seed).flows(1560)]
    assert min(rates) > 0
    assert statistics.fmean(rates) == pytest.approx(1, abs=0.07)


def test_gravity_is_a_product_of_masses() -> None:
    rate = {(f.source, f.destination): f.rate_bps for f in Traffic("gravity", NODES, seed=3).flows(1560)}
    for a, b, c, d in itertools.permutations(NODES[:6], 4):
        assert rate[a, b] * rate[c, d] == pytest.approx(rate[a, d] * rate[c, b])
    assert all(rate[a, b] == rate[b, a] for a, b in rate)


def test_uniform_rates_fill_their_range_evenly() -> None:
    rates = sorted(flow.rate_bps for flow in Traffic("uniform", NODES, seed=3).flows(1560))
    assert 0 < rates[0] <= rates[-1] <= 2
    # Kolmogorov and Smirnov's statistic, 1 % level.
    assert max(abs(rate / 2 - i / 1560) for i, rate in enumerate(rates)) < 1.63 / math.sqrt(1560)


def test_bimodal_rates_have_two_modes() -> None:
    rates = [flow.rate_bps * 480 for flow in Traffic("bimodal", NODES, seed=3).flows(1560)]
    large = [rate for rate in rates if rate > 600]
    # 600 is two deviations from either mean: 2.3 % of the small ones lie above, of the large ones below.
    assert len(large) / len(rates) == pytest.approx(0.8 * 0.023 + 0.2 * 0.977, abs=0.04)
    assert statistics.median(large) == pytest.approx(800, abs=40)
    assert statistics.median(rate for rate in rates if rate <= 600) == pytest.approx(400, abs=20)


def events(count: int, running: int = 50, mean_holding_s: float = 10.0, seed: int = 1) -> list[FlowEvent]:
    traffic = Traffic("gravity", NODES, seed)
    made = poisson_events(traffic.flows(running), traffic.flow, random.Random(seed), mean_holding_s)
    return list(itertools.islice(made, count))


def test_events_come_in_order_and_only_running_flows_leave() -> None:
    running = {f"f{i}" for i in range(1, 51)}
    made = events(2000)
    assert made == events(2000)
    assert [event.time_s for event in made] == sorted(event.time_s for event in made)
    for event in made:
        if event.arrives:
            assert event.demand.id not in running
            running.add(event.demand.id)
        else:
            running.remove(event.demand.id)  # KeyError if it does not run


def test_arrivals_and_times_are_exponential() -> None:
    made = events(40_000)
    arrivals = {event.demand.id: event.time_s for event in made if event.arrives}
    gaps = [b - a for a, b in itertools.pairwise(arrivals.values())]
    assert statistics.fmean(gaps) == pytest.approx(10 / 50, rel=0.05)
    assert statistics.pstdev(gaps) == pytest.approx(statistics.fmean(gaps), rel=0.05)
    last = made[-1].time_s
    stays = [
        event.time_s - arrivals[event.demand.id]
        for event in made
        if not event.arrives and event.demand.id in arrivals and arrivals[event.demand.id] < last - 200
    ]
    assert statistics.fmean(stays) == pytest.approx(10, rel=0.05)
    assert statistics.pstdev(stays) == pytest.approx(10, rel=0.05)


def test_as_many_flows_run_on_average_as_at_the_start() -> None:
    population, area, before = 50, 0.0, 0.0
    for event in events(40_000):
        area += population * (event.time_s - before)
        before = event.time_s
        population += 1 if event.arrives else -1
    assert area / before == pytest.approx(50, rel=0.1)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="'gravty' is not one of gravity, uniform, bimodal"):
        Traffic("gravty", NODES, 1)
    with pytest.raises(InvalidProblem, match="two nodes"):
        Traffic("gravity", ["alone"], 1)
    with pytest.raises(InvalidProblem, match="flows: must be at least 1, not 0"):
        Traffic("gravity", NODES, 1).flows(0)
    traffic = Traffic("gravity", NODES, 1)
    with pytest.raises(InvalidProblem, match="need flows to begin with"):
        poisson_events((), traffic.flow, random.Random(1))
    with pytest.raises(InvalidProblem, match="mean_holding_s: must be above 0"):
        poisson_events(traffic.flows(1), traffic.flow, random.Random(1), math.nan)
