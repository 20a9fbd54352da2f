"""Cells of tables: means over seeds with their 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.analysis.statistics import estimate


def interval(values: Iterable[float | None], scale: float = 1.0, digits: int = 2) -> str:
    """Return `mean ± half width` of measurements times `scale`; `-` where nothing was measured."""
    measured = [value * scale for value in values if value is not None]
    estimated = estimate(measured)
    if estimated is None:
        return "-"
    mean = f"{estimated.mean:.{digits}f}"
    if estimated.half_width is None or estimated.half_width < 0.5 * 10**-digits:
        return mean
    return f"{mean} ± {estimated.half_width:.{digits}f}"


def spread(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """Return `mean (least to most)` of measurements times `scale`."""
    scaled = [value * scale for value in values]
    mean, least, most = (
        f"{value:.{digits}f}" for value in (sum(scaled) / len(scaled), min(scaled), max(scaled))
    )
    return mean if least == most else f"{mean} ({least} to {most})"
