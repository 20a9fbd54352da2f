"""Means over seeds and their confidence intervals (Student's t)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

CONFIDENCE = 0.95


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
    half_width = _half_width(confidence, len(kept.values) - 1, kept.mean_variance)
    return Estimate(kept.mean, half_width, count)


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
    return Difference(value, _half_width(confidence, degrees, total))


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


def _half_width(confidence: float, degrees: float, variance: float) -> float:
    """Return that of the confidence interval of a mean, by Student's distribution."""
    return float(stdtrit(degrees, 0.5 + confidence / 2)) * math.sqrt(variance)
