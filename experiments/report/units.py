"""Numbers as text for people: Mbit/s, milliseconds, percent; an en dash for what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable

from experiments.analysis.statistics import Estimate

MISSING = "\N{EN DASH}"


def decimal(value: float, places: int = 2) -> str:
    """Return `value` with `places` decimals, with as many as it takes for two digits where it is smaller."""
    if value and abs(value) < 10 ** (1 - places):
        places = min(12, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def mbps(rate_bps: float) -> str:
    """Return a rate in Mbit/s; two decimals, as in the paper."""
    return decimal(rate_bps / 1e6)


def ms(time_s: float) -> str:
    """Return a time in milliseconds; two decimals, as in the paper."""
    return decimal(time_s * 1e3)


def interval(text: str, half_width: float) -> str:
    """Return half the width of an interval, in the unit of the mean that `text` shows, with its decimals."""
    return f"{half_width:.{len(text.partition('.')[2])}f}"


def with_interval(value: Estimate | None, form: Callable[[float], str], scale: float) -> str:
    """Return a mean with half the width of its interval; a dash where it is missing.

    `form` makes a text of the mean, `scale` leads to the unit of that text.
    """
    if value is None:
        return MISSING
    mean = form(value.mean)
    return mean if value.half_width is None else f"{mean} ±{interval(mean, value.half_width * scale)}"


def percent(ratio: float, places: int = 2) -> str:
    """Return a ratio in percent, without the sign."""
    return f"{ratio * 100:.{places}f}"


def rate_label(rate_bps: float) -> str:
    """Return a rate as a short label with its unit's letter: `850k`, `30M`, `2.5G` (bit/s)."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate_bps >= factor:
            return f"{rate_bps / factor:.3g}{letter}"
    return f"{rate_bps:.3g}"


def size(size_bytes: float) -> str:
    """Return a size in bytes, kB or MB (powers of ten)."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes:.0f} B"


_AXIS_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "_bps": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "_bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "_us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs")),
    "_s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
}


def axis_unit(name: str, largest: float) -> tuple[float, str]:
    """Return what values of a column are multiplied with on an axis, and the axis's label with the unit.

    The name has the column's unit, as `delay_mean_s`; `largest` is of the values to be drawn.
    """
    for suffix, units in _AXIS_UNITS.items():
        if name.endswith(suffix):
            size, unit = next(((size, unit) for size, unit in units if largest >= size), units[-1])
            return 1 / size, f"{name.removesuffix(suffix).replace('_', ' ')} in {unit}"
    return 1.0, name.replace("_", " ")
