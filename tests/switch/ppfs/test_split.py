"""Flows, splits and counters as the splitter's program has them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switch.errors import InvalidSplit, SwitchError
from switch.ppfs.split import (
    COUNTERS_BYTES,
    KEY,
    MAX_PATHS,
    SPLIT,
    FlowKey,
    pack_key,
    pack_split,
    thresholds,
    unpack_counters,
)

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 40000, 5001)
STAMPS = [f"0a:50:50:00:01:{path:02x}" for path in range(MAX_PATHS + 1)]


@st.composite
def share_lists(draw: st.DrawFn) -> list[float]:
    weights = draw(
        st.lists(st.floats(0, 1e6), min_size=1, max_size=MAX_PATHS).filter(lambda w: sum(w) > 1e-3)
    )
    return [weight / sum(weights) for weight in weights]


@given(share_lists())
def test_every_path_gets_its_share_of_the_draws(shares: list[float]) -> None:
    limits = thresholds(shares)
    total = sum(map(Fraction, shares), Fraction(0))
    assert limits[-1] == 2**32
    for path, share in enumerate(shares):
        draws = limits[path] - (limits[path - 1] if path else 0)
        assert draws >= 0
        assert abs(Fraction(draws, 2**32) - Fraction(share) / total) < Fraction(1, 2**31)
        if share == 0:
            assert draws == 0


@given(share_lists(), st.integers(0, 2**32 - 1))
def test_every_draw_has_a_path_with_a_share(shares: list[float], draw: int) -> None:
    limits = SPLIT.unpack(pack_split(shares, STAMPS[: len(shares)]))[:MAX_PATHS]
    path = next(path for path, limit in enumerate(limits) if draw < limit)
    assert shares[path] > 0


def test_known_thresholds() -> None:
    assert thresholds([1]) == (2**32,)
    assert thresholds([0.5, 0.5]) == (2**31, 2**32)
    assert thresholds([0, 0.25, 0, 0.75, 0]) == (0, 2**30, 2**30, 2**32, 2**32)
    assert thresholds([1 / 3] * 3) == (1431655765, 2863311531, 2**32)
    # A solver's rounding is no error.
    assert thresholds([0.5, 0.4999999]) == (round(2**32 * 0.5 / 0.9999999), 2**32)


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ([], "there are 0, not 1 to 16"),
        ([1 / 17] * 17, "there are 17"),
        ([0.5, 0.4], "their sum is 0.9, not 1"),
        ([0.5, 0.51], "their sum is 1.01"),
        ([0, 0], "their sum is 0"),
        ([1.5, -0.5], "-0.5 is not a number from 0 to 1"),
        ([float("nan"), 1], "nan is not"),
        ([float("inf")], "inf is not"),
    ],
)
def test_shares_that_cannot_be(shares: list[float], reason: str) -> None:
    with pytest.raises(InvalidSplit, match=reason) as caught:
        thresholds(shares)
    assert caught.value.field == "shares"
    assert str(caught.value).startswith("shares: ")


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        (STAMPS[:1], "there are 1 for 2 shares"),
        ([STAMPS[0], STAMPS[0].upper()], "two paths have the same one"),
        ([STAMPS[0], "0a:50:50:00:01"], "no Ethernet address"),
        ([STAMPS[0], "0a-50-50-00-01-01"], "no Ethernet address"),
        ([STAMPS[0], "0a:50:50:00:01:01\n"], "no Ethernet address"),
        ([STAMPS[0], "01:50:50:00:01:01"], "a group's address"),
    ],
)
def test_stamps_that_cannot_be(stamps: list[str], reason: str) -> None:
    with pytest.raises(InvalidSplit, match=reason) as caught:
        pack_split([0.5, 0.5], stamps)
    assert caught.value.field == "stamps"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source_ip", "10.0.0.256"),
        ("destination_ip", "::1"),
        ("source_port", 0),
        ("destination_port", 65536),
        ("protocol", 1),
    ],
)
def test_flows_that_cannot_be(field: str, value: Any) -> None:
    make: Callable[..., FlowKey] = replace
    with pytest.raises(InvalidSplit) as caught:
        make(FLOW, **{field: value})
    assert caught.value.field == field
    assert str(value) in caught.value.reason
    assert isinstance(caught.value, SwitchError)
    assert isinstance(caught.value, ValueError)


PORTS = st.integers(1, 65535)


def keys(version: int) -> st.SearchStrategy[FlowKey]:
    addresses = st.ip_addresses(v=4 if version == 4 else 6).map(str)
    return st.builds(FlowKey, addresses, addresses, PORTS, PORTS, st.sampled_from([6, 17]))


@given(keys(4) | keys(6))
def test_key_is_the_headers_bytes(flow: FlowKey) -> None:
    packed = pack_key(flow)
    assert len(packed) == 40
    ends = [ip if ":" in ip else f"::ffff:{ip}" for ip in (flow.source_ip, flow.destination_ip)]
    assert packed[:32] == b"".join(socket.inet_pton(socket.AF_INET6, ip) for ip in ends)
    assert packed[32:36] == struct.pack("!HH", flow.source_port, flow.destination_port)
    assert packed[36:] == bytes([flow.protocol, 0, 0, 0])
    assert KEY.unpack(packed)[4] == flow.protocol


def test_split_is_thresholds_and_stamps() -> None:
    packed = pack_split([0.25, 0.75], STAMPS[:2])
    assert len(packed) == 16 * 8 + 16 * 6
    *limits, stamps = SPLIT.unpack(packed)
    assert limits == [2**30, *[2**32] * 15]
    assert stamps == bytes.fromhex("0a50500001000a5050000101").ljust(96, b"\0")


def test_flow_reads_like_one() -> None:
    assert str(FLOW) == "tcp 10.0.0.1:40000 -> 10.0.0.2:5001"
    assert str(replace(FLOW, protocol=17)).startswith("udp ")
    assert str(FlowKey("fd00::1", "fd00::2", 1, 2)) == "tcp [fd00::1]:1 -> [fd00::2]:2"


COUNTS = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**50)), min_size=16, max_size=16)


@given(st.lists(COUNTS, min_size=1, max_size=4), st.integers(1, 16))
def test_counters_are_summed_over_the_cpus(cpus: list[list[tuple[int, int]]], paths: int) -> None:
    values = b"".join(struct.pack("=QQ", *count) for cpu in cpus for count in cpu)
    assert len(values) == len(cpus) * COUNTERS_BYTES
    assert unpack_counters(values, paths) == [
        (sum(cpu[path][0] for cpu in cpus), sum(cpu[path][1] for cpu in cpus)) for path in range(paths)
    ]
