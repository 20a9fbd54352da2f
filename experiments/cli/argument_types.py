"""Readers of single arguments, as argparse's `type` takes them: each says what an argument must be."""

from __future__ import annotations

import argparse
import math
from typing import TypeVar

from topologies.units import UnitError, parse_rate_bps, rate_unit_bps, time_unit_us

MOST_LOAD = 1e6
DAY_S = 86_400.0
MTU_LIMITS = (68, 65535)
"""RFC 791: every host forwards 68 bytes; the longest IPv4 packet."""

Item = TypeVar("Item")


def whole(text: str) -> int:
    """Read an argument that is a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def mtu_bytes(text: str) -> int:
    """Read an argument that is an MTU in bytes."""
    least, most = MTU_LIMITS
    number = whole(text)
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text} is not an MTU of {least} to {most} bytes")
    return number


def positive(text: str) -> float:
    """Read an argument that is a number above 0."""
    number = _number(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def simulated_seconds(text: str) -> float:
    """Read an argument that is how long a simulation lasts: a day at most."""
    number = _number(text)
    if not 0 < number <= DAY_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, {DAY_S:g} at most")
    return number


def seconds(text: str) -> float:
    """Read an argument that is a duration, which may be 0."""
    number = _number(text)
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")
    return number


def load_number(text: str) -> float:
    """Read an argument that is a load."""
    load = positive(text)
    if load > MOST_LOAD:
        raise argparse.ArgumentTypeError(f"{text} is beyond the largest load of {MOST_LOAD:g}")
    return load


def rate(text: str) -> float:
    """Read an argument that is a rate above 0, with or without its unit."""
    try:
        value_bps = parse_rate_bps(text)
    except UnitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not value_bps > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate above 0")
    return value_bps


def rate_unit(text: str) -> float:
    """Read an argument that is a unit of rates; returns bit/s."""
    try:
        return rate_unit_bps(text)
    except UnitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def delay_unit(text: str) -> float:
    """Read an argument that is a unit of times; returns microseconds."""
    try:
        return time_unit_us(text)
    except UnitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def port(text: str) -> int:
    """Read an argument that is a TCP port."""
    number = int(text) if text.isdecimal() else -1
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (1 to 65535)")
    return number


def names(text: str) -> tuple[str, ...]:
    """Read an argument that is names separated by commas."""
    listed = [name.strip() for name in text.split(",")]
    if not all(listed):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name; write names separated by commas")
    return distinct(listed, text)


def loads(text: str) -> tuple[float, ...]:
    """Read an argument that is loads separated by commas."""
    return distinct([positive(part) for part in text.split(",")], text)


def distinct(values: list[Item], text: str) -> tuple[Item, ...]:
    """Return the values of an argument; refused where one stands there twice."""
    if len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(f"{text!r} names one twice")
    return tuple(values)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
