"""Means over seeds and their confidence intervals (Student's t), without SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95


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
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = student_t_quantile(0.5 + confidence / 2, count - 1)
    return Estimate(mean, quantile * math.sqrt(variance / count), count)


def student_t_cdf(t: float, degrees: int) -> float:
    """Return P(T <= t) for Student's t, whole degrees of freedom (Abramowitz and Stegun, 26.7.3, 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    cos2 = math.cos(theta) ** 2
    total, term = 0.0, 1.0
    if degrees % 2:
        for k in range(3, degrees + 1, 2):
            total += term
            term *= cos2 * (k - 1) / k
        central = 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    else:
        for k in range(2, degrees + 1, 2):
            total += term
            term *= cos2 * (k - 1) / k
        central = math.sin(theta) * total
    return 0.5 + central / 2


@lru_cache(maxsize=64)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the t that `probability` of Student's distribution lies below, by bisection.

    Args:
        probability: At least 0.5 and below 1.
        degrees: Degrees of freedom, at least 1.

    Raises:
        ValueError: An argument is out of its range.
    """
    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(
            f"no quantile of Student's t for probability {probability} and {degrees} degrees of freedom"
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
