"""The bound holds for any prices, and is worthless only if the prices are."""

from __future__ import annotations

import pytest
from gomr import Demand, Edge, Problem
from gomr.engines.assembly import NativeResult
from gomr.engines.result import EngineResult
from gomr.objectives import PLAIN
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gomr.gomr_oracles import problems_with_fixed_paths, unit_of, unlimited_optimum


def upper_bound_bps(problem: Problem, prices: dict[str, float]) -> float:
    nothing = EngineResult({demand.id: () for demand in problem.demands}, prices)
    return NativeResult.of(problem, nothing).audit(PLAIN).upper_bound


@given(problems_with_fixed_paths(), st.data())
@settings(deadline=None)
def test_no_prices_give_less_than_the_optimum(problem: Problem, data: st.DataObject) -> None:
    price = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-1, 30)
    prices = {edge.id: data.draw(price) for edge in problem.edges}
    optimum_bps, _ = unlimited_optimum(problem)
    assert upper_bound_bps(problem, prices) >= optimum_bps - 1e-8 * unit_of(problem)


def test_the_price_of_the_bottleneck_proves_its_capacity() -> None:
    edges = (Edge("in", "A", "B", 9e6, 0), Edge("narrow", "B", "C", 4e6, 0), Edge("out", "C", "D", 9e6, 0))
    problem = Problem(edges, (Demand("f", "A", "D", 7e6),))
    assert upper_bound_bps(problem, {}) == pytest.approx(7e6)
    assert upper_bound_bps(problem, {"narrow": 1.0}) == pytest.approx(4e6)
    assert upper_bound_bps(problem, {"narrow": 0.5}) == pytest.approx(5.5e6)


def test_acknowledgements_pay_too() -> None:
    edges = (Edge("on", "A", "B", 9e6, 0), Edge("back", "B", "A", 0.2e6, 0))
    demand = Demand("f", "A", "B", 9e6, ack_ratio=0.05)
    problem = Problem(edges, (demand,), {"on": "back", "back": "on"})
    assert upper_bound_bps(problem, {"back": 20.0}) == pytest.approx(4e6)
