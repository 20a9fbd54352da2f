"""Intervals against figures computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis.statistics import (
    Estimate,
    estimate,
    estimate_of_seeds,
    welch,
    welch_of_seeds,
)


def test_an_interval_computed_by_hand() -> None:
    # Mean 9, deviations -1, 0, 1: variance 1, standard error 1/sqrt(3), t of two degrees of freedom 4.302653.
    computed = estimate([8.0, 9.0, 10.0])
    assert computed is not None
    assert computed.mean == 9.0
    assert computed.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert computed.count == 3


def test_one_measurement_has_no_interval_and_none_has_no_estimate() -> None:
    assert estimate([5.0]) == Estimate(5.0, None, 1)
    assert estimate([]) is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=30), st.floats(-1e6, 1e6))
def test_shifting_all_values_shifts_the_mean_and_keeps_the_width(values: list[float], shift: float) -> None:
    before, after = estimate(values), estimate([value + shift for value in values])
    assert before is not None
    assert after is not None
    assert after.mean == pytest.approx(before.mean + shift, abs=1e-3)
    assert after.half_width == pytest.approx(before.half_width, rel=1e-6, abs=1e-3)


def test_a_difference_computed_by_hand() -> None:
    # Variances 1 and 4 of three each: standard error sqrt(5/3), 2 (5/3)^2 / ((1/3)^2 + (4/3)^2) = 2.941
    # degrees of freedom, whose quantile is a little above the printed 3.182 of three.
    difference = welch([8.0, 9.0, 10.0], [10.0, 12.0, 14.0])
    assert difference is not None
    assert difference.value == 3.0
    assert difference.half_width is not None
    assert 3.182 < difference.half_width / math.sqrt(5 / 3) < 3.3
    assert difference.significant is False


def test_equal_spreads_and_counts_have_the_degrees_of_both() -> None:
    difference = welch([1.0, 2.0, 3.0], [11.0, 12.0, 13.0])
    assert difference is not None
    assert difference.half_width == pytest.approx(2.776445 * math.sqrt(2 / 3), rel=1e-6)
    assert difference.significant is True


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
)
def test_the_other_way_round_the_difference_changes_its_sign_alone(a: list[float], b: list[float]) -> None:
    forth, back = welch(a, b), welch(b, a)
    assert forth is not None
    assert back is not None
    assert forth.value == -back.value
    assert forth.half_width == pytest.approx(back.half_width, rel=1e-9)


def test_single_runs_have_no_interval_and_exact_ones_a_width_of_zero() -> None:
    assert welch([], [1.0]) is None
    single = welch([1.0], [2.0, 3.0])
    assert single is not None
    assert (single.value, single.half_width, single.significant) == (1.5, None, None)
    exact = welch([1.0, 1.0], [2.0, 2.0])
    assert exact is not None
    assert (exact.half_width, exact.significant) == (0.0, True)
    same = welch([1.0, 1.0], [1.0, 1.0])
    assert same is not None
    assert same.significant is False


def test_over_seeds_runs_that_are_all_alike_are_one_measurement() -> None:
    tenth = estimate_of_seeds([0.1, 0.1, 0.1])  # whose mean is a rounding error away
    assert tenth is not None
    assert (tenth.half_width, tenth.count) == (None, 3)
    for other in (1.0, 1.00001, 2.0):
        alike = welch_of_seeds([1.0, 1.0], [other, other])
        assert alike is not None
        assert (alike.half_width, alike.significant) == (None, None)
    values = [8.0, 9.0, 10.0]
    assert estimate_of_seeds(values) == estimate(values)
    assert welch_of_seeds(values, [1.0, 1.0]) == welch(values, [1.0, 1.0])
    assert (estimate_of_seeds([]), welch_of_seeds([], values)) == (None, None)
