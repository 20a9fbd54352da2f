"""Checks of what an application asks for; each raises LocalProtocolError with a sentence."""

from __future__ import annotations

import math

from mstcp.errors import LocalProtocolError


def check_whole(name: str, value: object, least: int, most: int, *, optional: bool = False) -> None:
    """Check an option that is a whole number; LocalProtocolError if it is none or out of range."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        otherwise = " or None" if optional else ""
        raise LocalProtocolError(f"{name} is a whole number from {least} to {most}{otherwise}, not {value!r}")


def check_seconds(name: str, value: object, *, least: float = 0.001) -> None:
    """Check an option that is a time in seconds; LocalProtocolError if it is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= least):  # type: ignore[arg-type, operator]
        raise LocalProtocolError(f"{name} is a time in seconds from {least:g} on, not {value!r}")


def check_type(name: str, value: object, kind: type, what: str) -> None:
    """Check an option that is None or of a type; LocalProtocolError if it is neither."""
    if value is not None and not isinstance(value, kind):
        raise LocalProtocolError(f"{name} is {what} or None, not {value!r}")
