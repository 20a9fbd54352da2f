"""Rates and times as people write them: `10G`, `10Gbps`, `2.5 Gbit/s`, `40 ms`, or a bare number.

The space before the unit is optional. Prefixes of rates are decimal (SI): 1 kbit/s is 1000 bit/s.
"""

from __future__ import annotations

import math
import re

RATE_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
TIMES_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ns": 1e-3}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_VALUE = re.compile(rf"\s*({_NUMBER})\s*([^\d\s].*?)?\s*", re.DOTALL)
_BITS = re.compile(r"([kmgt]?)(?:b|bps|bit|bits|bitps|b/s|bit/s|bits/s|bitpersec)?", re.IGNORECASE)
_BYTES = re.compile(r"[kmgt]?i?(?:B|Bps|B/s|BPS|B/S|[Bb]ytes?(?:/s|ps)?)")


class UnitError(ValueError):
    """A text that is no rate or time, or could be two; its text says what to write."""


def rate_unit_bps(text: str) -> float:
    """Return the bit/s of one unit of rate, as `Mbit/s` or `kbps`.

    Raises:
        UnitError: it is not one.
    """
    unit = text.strip()
    if _BYTES.fullmatch(unit):
        raise UnitError(f"{unit!r} counts bytes; rates are in bits: write as Mbit/s")
    matched = _BITS.fullmatch(unit)
    if matched is None or not unit:
        raise UnitError(f"{unit!r} is no unit of rate; write bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s")
    return RATE_PREFIXES[matched[1].lower()]


def time_unit_us(text: str) -> float:
    """Return the microseconds of one unit of time, as `ms`.

    Raises:
        UnitError: it is not one.
    """
    try:
        return TIMES_US[text.strip().lower()]
    except KeyError:
        raise UnitError(f"{text.strip()!r} is no unit of time; write s, ms, us or ns") from None


def parse_rate_bps(value: object, unit_bps: float = 1.0) -> float:
    """Return a rate in bit/s.

    Args:
        value: a number, or a text with or without a unit (`10 Gbit/s`, `10G`, `1e9`).
        unit_bps: what a number without a unit counts in.

    Raises:
        UnitError: it is not a finite number with a unit of rate.
    """
    number, unit = _parts(value)
    rate_bps = number * (rate_unit_bps(unit) if unit else unit_bps)
    if not math.isfinite(rate_bps):
        raise UnitError(f"must be a finite number of at least 0, not {value}")
    return rate_bps


def parse_time_us(value: object, unit_us: float | None) -> float:
    """Return a time in microseconds.

    Args:
        value: a number, or a text with or without a unit (`40 ms`).
        unit_us: what a number without a unit counts in; None if there is no saying.

    Raises:
        UnitError: it is not a finite number with a unit of time, or has no unit where it needs one.
    """
    number, unit = _parts(value)
    if unit:
        return number * time_unit_us(unit)
    if unit_us is None:
        raise UnitError(f"{value!r} has no unit; write as {number:g} ms, or give --delay-unit")
    return number * unit_us


def _parts(value: object) -> tuple[float, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"{value!r} is not a number")
    try:
        is_finite = math.isfinite(float(value))
    except ValueError:
        is_finite = True  # a text with a unit, or none at all
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise UnitError(f"must be a finite number of at least 0, not {value}")
    matched = _VALUE.fullmatch(value if isinstance(value, str) else repr(float(value)))
    if matched is None:
        raise UnitError(f"{value!r} is not a number")
    return float(matched[1]), matched[2] or ""
