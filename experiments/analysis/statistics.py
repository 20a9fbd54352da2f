"""Means over seeds and their confidence intervals (Student's t), without SciPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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


def estimate(
    values: Sequence[float], confidence: float = CONFIDENCE, *, trim: float = 0.0
) -> Estimate | None:
    """Return mean and confidence interval of independent measurements; None where there are none.

    `trim` is the share of them that is left out at each end, below 0.5 (Tukey and McLaughlin 1963).
    """
    count = len(values)
    if count == 0:
        return None
    kept = _trim(values, trim)
    if len(kept.values) == 1:
        return Estimate(kept.mean, None, count)
    quantile = student_t_quantile(0.5 + confidence / 2, len(kept.values) - 1)
    return Estimate(kept.mean, quantile * math.sqrt(kept.mean_variance), count)


def estimate_of(values: Sequence[float], confidence: float = CONFIDENCE, *, trim: float = 0.0) -> Estimate:
    """Return the same of measurements of which there is one at least."""
    computed = estimate(values, confidence, trim=trim)
    assert computed is not None, "there is a measurement"
    return computed


def mean_of(values: Iterable[float]) -> float | None:
    """Return the mean; None where there is no value."""
    known = list(values)
    return math.fsum(known) / len(known) if known else None


def estimate_of_seeds(values: Sequence[float]) -> Estimate | None:
    """Return mean and confidence interval over seeds: none where all runs are alike.

    Seeds that change nothing are one measurement, and say nothing of what another run would have.
    """
    computed = estimate(values)
    return replace(computed, half_width=computed.half_width or None) if computed else None


@dataclass(frozen=True)
class Difference:
    """A difference of two means; `half_width` is that of its interval, None where a side has a single run."""

    value: float
    half_width: float | None

    @property
    def significant(self) -> bool | None:
        """Whether the interval excludes zero; None where there is no interval."""
        return None if self.half_width is None else abs(self.value) > self.half_width


def welch(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE, *, trim: float = 0.0
) -> Difference | None:
    """Return the mean of `b` less that of `a`, with its confidence interval (Welch, Biometrika 34, 1947).

    The samples are independent; their variances need not be equal. `trim` is the share of each that is left
    out at each end, below 0.5 (Yuen, Biometrika 61, 1974). None where a side has no measurement.
    """
    if not a or not b:
        return None
    sides = [_trim(values, trim) for values in (a, b)]
    value = sides[1].mean - sides[0].mean
    if min(len(side.values) for side in sides) == 1:
        return Difference(value, None)
    total = math.fsum(side.mean_variance for side in sides)
    if total == 0:
        return Difference(value, 0.0)
    # Welch and Satterthwaite's degrees of freedom: not whole, between those of the smaller side and both.
    degrees = 1 / math.fsum((side.mean_variance / total) ** 2 / (len(side.values) - 1) for side in sides)
    return Difference(value, student_t_quantile(0.5 + confidence / 2, degrees) * math.sqrt(total))


def welch_of_seeds(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Return the difference of two means over seeds: no interval where on neither side runs differ."""
    computed = welch(a, b)
    return replace(computed, half_width=computed.half_width or None) if computed else None


@dataclass(frozen=True)
class _Trimmed:
    """What trimming leaves of measurements, and the variance of its mean (0 for a single one)."""

    values: Sequence[float]
    mean_variance: float

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


def _trim(values: Sequence[float], share: float) -> _Trimmed:
    """Leave out a share of the values at each end; those count as the last ones kept in the variance."""
    left_out = int(share * len(values))
    kept = sorted(values)[left_out : len(values) - left_out] if left_out else values
    if len(kept) == 1:
        return _Trimmed(kept, 0.0)
    winsorised = [*[kept[0]] * left_out, *kept, *[kept[-1]] * left_out]
    scale = (len(values) - 1) / (len(kept) * (len(kept) - 1))
    return _Trimmed(kept, _variance(winsorised) * scale)


def _variance(values: Sequence[float]) -> float:
    if min(values) == max(values):  # the mean may be a rounding error away from them
        return 0.0
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
    """Return the t that `probability` (0.5 to 1) of Student's distribution lies below, by bisection."""
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
