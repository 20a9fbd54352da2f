"""Completion times from the sinks' logs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis import logs
from experiments.analysis.logs import Log


def log(offsets: list[int], times_ns: list[int]) -> Log:
    return Log(np.array(offsets, dtype=np.int64), np.array(times_ns, dtype=np.int64))


def test_a_transfer_ends_with_the_read_of_its_last_byte() -> None:
    reads = log([10, 25, 40], [100, 200, 300])
    wanted, ends = np.array([50, 60, 70, 80]), np.array([10, 11, 40, 41])
    times = logs.completion_times(reads, wanted, ends)
    assert times == pytest.approx([50e-9, 140e-9, 230e-9])
    assert logs.completion_times(log([], []), wanted, ends).size == 0


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30), st.lists(st.integers(1, 1000), max_size=30))
def test_transfers_complete_in_their_order_and_none_before_it_was_wanted(
    sizes: list[int], reads: list[int]
) -> None:
    offsets = np.cumsum(reads, dtype=np.int64)
    wanted = np.zeros(len(sizes), dtype=np.int64)
    ends = np.cumsum(sizes, dtype=np.int64)
    times = logs.completion_times(Log(offsets, offsets * 8), wanted, ends)
    assert len(times) == np.count_nonzero(ends <= (offsets[-1] if len(offsets) else 0))
    assert np.all(np.diff(times) >= 0)
    # At 8 ns for each byte a transfer is there with its last byte, or with the read that brings more.
    assert np.all(times * 1e9 >= ends[: len(times)] * 8 - 1e-3)


def test_statistics_count_each_transfer_once() -> None:
    statistics = logs.completion_statistics(np.arange(1.0, 101.0))
    assert statistics is not None
    assert (statistics.mean, statistics.p50, statistics.p95, statistics.p99, statistics.max) == (
        50.5,
        50.0,
        95.0,
        99.0,
        100.0,
    )
    assert statistics.quantiles[0] == 1.0
    assert len(statistics.quantiles) == 101
    assert logs.completion_statistics(np.array([])) is None
