"""Rates and times as people write them."""

from __future__ import annotations

import pytest

from topologies.units import UnitError, parse_rate_bps, parse_time_us, rate_unit_bps


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("10G", 10e9), ("10Gbps", 10e9), ("10 Gbit/s", 10e9), ("10 Gb/s", 10e9), ("2.5Gbit", 2.5e9),
        ("100 mbps", 100e6), ("64 kbit/s", 64e3), ("1e9", 1e9), (" 7 bit/s ", 7.0), ("622 MBITPERSEC", 622e6),
        ("1 Tbps", 1e12), (5, 5.0), (2.5e3, 2.5e3), (".5 M", 5e5),
    ],
)  # fmt: skip
def test_rates(text: object, rate_bps: float) -> None:
    assert parse_rate_bps(text) == pytest.approx(rate_bps)


def test_a_bare_number_counts_in_the_unit_that_is_given() -> None:
    assert parse_rate_bps("3", 1e6) == 3e6
    assert parse_rate_bps("3 kbit/s", 1e6) == 3e3
    assert parse_time_us("3", 1e3) == 3e3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("10 GB/s", "counts bytes"), ("3 KiB/s", "counts bytes"), ("10 parsec", "is no unit of rate"),
        ("fast", "is not a number"), ("", "is not a number"), (True, "is not a number"),
        (None, "is not a number"), ("nan", "must be a finite"), ("inf", "must be a finite"),
        (float("inf"), "must be a finite"), ("1e400", "must be a finite"), ("1e308 G", "must be a finite"),
        (10**400, "must be a finite"),
    ],
)  # fmt: skip
def test_what_is_no_rate(text: object, sentence: str) -> None:
    with pytest.raises(UnitError, match=sentence):
        parse_rate_bps(text)


def test_times() -> None:
    assert parse_time_us("5ms", None) == 5000
    assert parse_time_us("5 µs", None) == 5
    assert parse_time_us("2 s", None) == 2e6
    with pytest.raises(UnitError, match="has no unit"):
        parse_time_us(5, None)
    with pytest.raises(UnitError, match="is no unit of time"):
        parse_time_us("5 km", None)


def test_a_unit_alone() -> None:
    assert rate_unit_bps("Mbit/s") == 1e6
    with pytest.raises(UnitError):
        rate_unit_bps("5")
