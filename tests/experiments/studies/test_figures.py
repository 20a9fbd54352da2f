"""Figures of studies as text."""

from __future__ import annotations

import pytest

from experiments.studies.figures import number, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (4.2, "4.2"),
        (68.114, "68.11"),
        (780.0, "780"),
        (12345.6, "12346"),
        (0.00123, "0.00123"),
        (-3.5, "-3.5"),
    ],
)
def test_a_figure_has_four_digits_and_no_exponent(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "half_width", "text"),
    [
        (780.0, 132.4, "780.0 ± 132.4"),
        (93.784, 0.0012, "93.78 ± 0.00"),
        (0.0, 0.0, "0 ± 0"),
        (0.0, 0.25, "0.0000 ± 0.2500"),
        (42.0, None, "42"),
    ],
)
def test_mean_and_interval_have_the_same_decimals(mean: float, half_width: float | None, text: str) -> None:
    assert with_interval(mean, half_width) == text
