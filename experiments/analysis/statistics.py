"""Means over seeds and their confidence intervals (Student's t), without SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
FRACTION_TERMS = 60
"""Pairs of terms; the fraction needs in the order of the root of the degrees of freedom."""


@dataclass(frozen=True)
class Estimate:
    """A mean over `count` runs; `half_width` is that of its confidence interval, None for a single run."""

    mean: float
    half_width: float | None
    count: int


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """Return mean and confidence interval of independent measurements.

    Args:
        values: One measurement for each seed, in any unit.
        confidence: Coverage of the interval, between 0 and 1.

    Returns:
        The estimate in the unit of `values`, or None where there is no measurement.
    """
    count = len(values)
    if count == 0:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, 1)
    quantile = student_t_quantile(0.5 + confidence / 2, count - 1)
    return Estimate(mean, quantile * math.sqrt(_variance(values) / count), count)


@dataclass(frozen=True)
class Difference:
    """A difference of two means; `half_width` is that of its interval, None where a side has a single run."""

    value: float
    half_width: float | None

    @property
    def significant(self) -> bool | None:
        """Whether the interval excludes zero; None where there is no interval."""
        return None if self.half_width is None else abs(self.value) > self.half_width


def welch(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Difference | None:
    """Return the mean of `b` less that of `a`, with its confidence interval (Welch, Biometrika 34, 1947).

    The samples are independent; their variances need not be equal.

    Args:
        a: One measurement for each seed, in any unit.
        b: Likewise.
        confidence: Coverage of the interval, between 0 and 1.

    Returns:
        The difference in the unit of the measurements, or None where a side has no measurement.
    """
    if not a or not b:
        return None
    value = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    if min(len(a), len(b)) == 1:
        return Difference(value, None)
    shares = [_variance(values) / len(values) for values in (a, b)]
    total = math.fsum(shares)
    if total == 0:
        return Difference(value, 0.0)
    # Welch and Satterthwaite's degrees of freedom: not whole, between those of the smaller side and both.
    degrees = 1 / math.fsum(
        (share / total) ** 2 / (len(values) - 1) for share, values in zip(shares, (a, b), strict=True)
    )
    return Difference(value, student_t_quantile(0.5 + confidence / 2, degrees) * math.sqrt(total))


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def student_t_cdf(t: float, degrees: float) -> float:
    """Return P(T <= t) for Student's t (Abramowitz and Stegun, 26.7.1); degrees need not be whole."""
    ratio = t * t / degrees
    # Both arguments are computed as they are, since 1 - x would lose the digits of a small one.
    tail = _incomplete_beta(degrees / 2, 0.5, 1 / (1 + ratio), ratio / (1 + ratio)) / 2
    return 1 - tail if t > 0 else tail


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), where y = 1 - x (ibidem, 26.5.8)."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly, its mirror image does not
        return 1 - _incomplete_beta(b, a, y, x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(a * math.log(x) + b * math.log(y) - log_beta) / a * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, from its far end."""
    value = 1.0
    for m in range(FRACTION_TERMS, -1, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)) if m else 0.0
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        value = 1 + odd / value
        value = 1 + even / value if m else value
    return 1 / value


@lru_cache(maxsize=64)
def student_t_quantile(probability: float, degrees: float) -> float:
    """Return the t that `probability` of Student's distribution lies below, by bisection.

    Args:
        probability: At least 0.5 and below 1.
        degrees: Degrees of freedom, at least 1; they need not be whole.

    Raises:
        ValueError: An argument is out of its range.
    """
    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(
            f"no quantile of Student's t for probability {probability} and {degrees:g} degrees of freedom"
        )
    low, high = 0.0, 1.0
    while student_t_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
