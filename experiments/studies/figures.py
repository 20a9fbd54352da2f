"""Figures of studies as text: four digits, no exponents."""

from __future__ import annotations

import math

DIGITS = 4
MAX_DECIMALS = 6


def number(value: float) -> str:
    """Return a figure as papers print it, without zeros at its end."""
    text = f"{value:.{_decimals(value)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_interval(mean: float, half_width: float | None) -> str:
    """Return a mean and half of its interval with as many decimals."""
    if half_width is None:
        return number(mean)
    decimals = _decimals(mean or half_width)
    return f"{mean:.{decimals}f} ± {half_width:.{decimals}f}"


def _decimals(value: float) -> int:
    if not value:
        return 0
    return min(MAX_DECIMALS, max(0, DIGITS - 1 - math.floor(math.log10(abs(value)))))
