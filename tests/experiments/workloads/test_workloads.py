"""Workloads: schema, decisions and distributions of sizes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from experiments.errors import OverrideError
from experiments.workloads import Bulk, Cbr, Decision, OnOff, Requests, Sizes, Workload
from experiments.workloads.shorthand import parse_workload
from experiments.workloads.sizes import NAMED, cdf_of, draws, mean_bytes

WORKLOAD: TypeAdapter[Workload] = TypeAdapter(Workload)
SIZES: TypeAdapter[Sizes] = TypeAdapter(Sizes)
SEEDS = st.integers(0, 2**40)

ANY_SIZES = st.one_of(
    st.integers(1, 10**9),
    st.builds(lambda mean: {"kind": "exponential", "mean_bytes": mean}, st.integers(1, 10**6)),
    st.builds(
        lambda kind, scale: {"kind": kind, "scale": scale},
        st.sampled_from(sorted(NAMED)),
        st.floats(1e-3, 10),
    ),
    st.just({"kind": "empirical", "cdf": [[10, 0.25], [20, 0.5], [1000, 1.0]]}),
)
ANY_WORKLOAD = st.one_of(
    st.just({"kind": "cbr"}),
    st.builds(lambda size: {"kind": "bulk", "size_bytes": size}, st.integers(1, 10**12)),
    st.builds(
        lambda on, off, lengths: {"kind": "onoff", "on_s": on, "off_s": off, "lengths": lengths},
        st.floats(0.01, 5),
        st.floats(0.01, 5),
        st.sampled_from(["fixed", "exponential"]),
    ),
    st.builds(
        lambda rate, sizes: {"kind": "requests", "per_s": rate, "sizes": sizes},
        st.floats(0.1, 1e3),
        ANY_SIZES,
    ),
    st.builds(
        lambda users, sizes: {"kind": "requests", "users": users, "sizes": sizes},
        st.integers(1, 9),
        ANY_SIZES,
    ),
)


def some(data: dict[str, Any], seed: int = 1, rate_bps: float = 1e6, payload: int = 1000) -> list[Decision]:
    """Return the first 200 decisions."""
    return list(itertools.islice(WORKLOAD.validate_python(data).decisions(rate_bps, payload, seed), 200))


@given(ANY_WORKLOAD, SEEDS)
def test_decisions_are_the_same_for_a_seed_and_come_in_order(data: dict[str, Any], seed: int) -> None:
    first = some(data, seed)
    assert first == some(data, seed)
    assert first
    assert all(decision.size_bytes >= 1 and decision.time_s >= 0 for decision in first)
    assert all(early.time_s <= late.time_s for early, late in itertools.pairwise(first))


@given(ANY_WORKLOAD)
def test_a_workload_survives_the_way_to_another_process(data: dict[str, Any]) -> None:
    workload = WORKLOAD.validate_python(data)
    assert WORKLOAD.validate_json(WORKLOAD.dump_json(workload)) == workload


@given(rate_bps=st.floats(1e3, 1e9), payload=st.integers(1, 9000), until_s=st.floats(1e-4, 10))
def test_a_constant_rate_neither_drifts_nor_runs_ahead(rate_bps: float, payload: int, until_s: float) -> None:
    tick_s = payload * 8 / rate_bps
    ticks = Cbr().decisions(rate_bps, payload, seed=1)
    for number, tick in enumerate(itertools.islice(ticks, min(2000, int(until_s / tick_s) + 1))):
        assert tick.size_bytes == payload
        assert tick.time_s == pytest.approx(number * tick_s, rel=1e-12)


def test_ticks_fall_within_on_periods_alone() -> None:
    workload = OnOff(on_s=0.4, off_s=0.6, lengths="fixed")
    times = [tick.time_s for tick in itertools.islice(workload.decisions(8e4, 1000, 1), 40)]
    assert times[:6] == pytest.approx([0.0, 0.1, 0.2, 0.3, 1.0, 1.1])
    assert all(time % 1 < 0.4 or time % 1 > 1 - 1e-9 for time in times)
    assert workload.on_time_s(0.0, 10.0, 1) == pytest.approx(4.0)
    assert workload.on_time_s(0.3, 1.2, 1) == pytest.approx(0.1 + 0.2)
    assert workload.on_time_s(-1.0, 0.2, 1) == pytest.approx(0.2)


@given(SEEDS)
def test_the_time_on_adds_up_and_carries_the_rate(seed: int) -> None:
    workload = OnOff(on_s=0.5, off_s=0.5)
    whole = workload.on_time_s(0.0, 20.0, seed)
    assert whole == pytest.approx(workload.on_time_s(0.0, 7.3, seed) + workload.on_time_s(7.3, 20.0, seed))
    ticks = itertools.takewhile(lambda tick: tick.time_s < 20.0, workload.decisions(8e5, 1000, seed))
    # Each period may begin a tick that it does not finish.
    assert sum(tick.size_bytes for tick in ticks) * 8 == pytest.approx(whole * 8e5, abs=8000 * 60)


def test_exponential_periods_have_the_mean_that_was_asked_for() -> None:
    workload = OnOff(on_s=0.3, off_s=0.9)
    share = np.mean([workload.on_time_s(0.0, 500.0, seed) / 500.0 for seed in range(20)])
    assert share == pytest.approx(0.25, abs=0.01)


def test_requests_of_an_open_loop_are_a_poisson_process() -> None:
    workload = Requests(per_s=50.0, sizes=SIZES.validate_python(1000))
    times = np.array([each.time_s for each in itertools.islice(workload.decisions(0.0, 0, 3), 20_000)])
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_a_closed_loop_begins_with_a_request_of_each_user() -> None:
    workload = Requests(users=5, think_s=0.2, sizes=SIZES.validate_python({"kind": "web-search"}))
    first = list(workload.decisions(0.0, 0, 3))
    assert [decision.time_s for decision in first] == [0.0] * 5
    assert [decision.size_bytes for decision in first] == list(itertools.islice(workload.answer_sizes(3), 5))
    assert np.mean(list(itertools.islice(workload.think_times(3), 5000))) == pytest.approx(0.2, rel=0.05)


def test_what_one_purpose_draws_leaves_the_others() -> None:
    fixed = Requests(per_s=9.0, sizes=SIZES.validate_python(1000))
    drawn = Requests(per_s=9.0, sizes=SIZES.validate_python({"kind": "exponential", "mean_bytes": 1000}))
    times = [[each.time_s for each in itertools.islice(w.decisions(0.0, 0, 5), 50)] for w in (fixed, drawn)]
    assert times[0] == times[1]


def test_a_bulk_transfer_is_one_decision() -> None:
    assert some({"kind": "bulk", "size_bytes": 12345}) == [Decision(0.0, 12345)]
    assert isinstance(WORKLOAD.validate_python({"kind": "bulk", "size_bytes": 1}), Bulk)


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "exponential", "mean_bytes": 5000},
        {"kind": "web-search"},
        {"kind": "data-mining", "scale": 0.01},
        {"kind": "empirical", "cdf": [[100, 0.5], [200, 0.75], [10000, 1.0]]},
    ],
)
def test_drawn_sizes_have_their_mean_and_stay_within_their_distribution(data: dict[str, Any]) -> None:
    sizes = SIZES.validate_python(data)
    generator = np.random.default_rng(7)
    drawn = np.array(list(itertools.islice(draws(sizes, generator), 200_000)), dtype=np.float64)
    # Four standard deviations of the mean, and half a byte of rounding.
    assert drawn.mean() == pytest.approx(mean_bytes(sizes), abs=4 * drawn.std() / np.sqrt(drawn.size) + 0.5)
    if data["kind"] != "exponential":
        points, scale = cdf_of(sizes)  # type: ignore[arg-type]
        assert drawn.max() <= points[-1][0] * scale + 1
        for value, share in points:
            assert np.mean(drawn <= value * scale + 0.5) == pytest.approx(share, abs=0.01)


def test_published_distributions_have_the_means_that_are_known_of_them() -> None:
    # In packets, as simulators that use them report.
    assert mean_bytes(SIZES.validate_python({"kind": "web-search"})) / 1460 == pytest.approx(1138, rel=0.01)
    assert mean_bytes(SIZES.validate_python({"kind": "data-mining"})) / 1460 == pytest.approx(5117, rel=0.01)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"kind": "bulk"}, "Field required"),
        ({"kind": "bulk", "size_bytes": 0}, "greater than or equal to 1"),
        ({"kind": "bulk", "size": 5}, "size"),
        ({"kind": "web"}, "Known are bulk, cbr, onoff, requests"),
        ({"kind": "onoff", "on_s": 1}, "off_s"),
        ({"kind": "onoff", "on_s": 0, "off_s": 1}, "greater than 0"),
        ({"kind": "requests", "sizes": 10}, "either per_s"),
        ({"kind": "requests", "sizes": 10, "per_s": 1, "users": 1}, "either per_s"),
        ({"kind": "requests", "sizes": 10, "per_s": 1, "think_s": 1}, "think_s belongs to users"),
        ({"kind": "requests", "per_s": 1, "sizes": {"kind": "empirical", "cdf": [[5, 0.5]]}}, "has to be 1"),
        (
            {"kind": "requests", "per_s": 1, "sizes": {"kind": "empirical", "cdf": [[5, 0.5], [4, 1]]}},
            "does not rise",
        ),
    ],
)
def test_a_wrong_workload_is_refused_with_the_reason(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WORKLOAD.validate_python(data)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("cbr", {"kind": "cbr"}),
        ("bulk:size=20MB", {"kind": "bulk", "size_bytes": 20_000_000}),
        ("bulk:size_bytes=64KiB", {"kind": "bulk", "size_bytes": 65536}),
        ("onoff:on=500ms,off=1s", {"kind": "onoff", "on_s": 0.5, "off_s": 1}),
        (
            "requests:per_s=20,sizes.kind=web-search,sizes.scale=0.01",
            {"kind": "requests", "per_s": 20, "sizes": {"kind": "web-search", "scale": 0.01}},
        ),
    ],
)
def test_shorthands_become_tables_that_the_schema_takes(text: str, table: dict[str, Any]) -> None:
    assert parse_workload(text) == table
    WORKLOAD.validate_python(table)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bulky:size=1", "there is no workload 'bulky'; known are bulk, cbr, onoff, requests"),
        ("bulk:seize=1", "bulk has no key 'seize'; known are size_bytes"),
        ("bulk:size", "write 'size' as KEY=VALUE"),
        ("cbr:size=1", "cbr has no key 'size'; it has none"),
        ("requests:sizes=1,sizes.kind=fixed", "sizes is a value already"),
    ],
)
def test_a_wrong_shorthand_is_refused(text: str, reason: str) -> None:
    with pytest.raises(OverrideError) as caught:
        parse_workload(text)
    assert reason in str(caught.value)
