"""Goodput and delay against a model that looks at every byte."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis import logs
from experiments.analysis.logs import Log, Window

SECOND = 1_000_000_000


def log(*entries: tuple[int, int]) -> Log:
    offsets, times = zip(*entries, strict=True) if entries else ((), ())
    return Log(np.array(offsets, dtype=np.int64), np.array(times, dtype=np.int64))


@st.composite
def transfers(draw: st.DrawFn) -> tuple[Log, Log]:
    """A transfer: random writes, and reads of what was written before them."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    gaps = draw(st.lists(st.integers(0, SECOND), min_size=len(sizes), max_size=len(sizes)))
    writes = list(zip(itertools.accumulate(sizes), itertools.accumulate(gaps), strict=True))
    reads: list[tuple[int, int]] = []
    done, now = 0, 0
    while done < writes[-1][0] and (not reads or draw(st.booleans())):
        done = draw(st.integers(done + 1, writes[-1][0]))
        written = next(time for offset, time in writes if offset >= done)
        now = max(now, written) + draw(st.integers(0, SECOND))
        reads.append((done, now))
    return log(*writes), log(*reads)


def per_byte(events: Log) -> list[int]:
    """The time of each byte."""
    times: list[int] = []
    for offset, time in zip(events.offset, events.time_ns, strict=True):
        times += [int(time)] * int(offset - len(times))
    return times


@given(transfers(), st.integers(0, 6), st.integers(1, 12))
def test_statistics_are_those_of_the_single_bytes(transfer: tuple[Log, Log], start: int, length: int) -> None:
    writes, reads = transfer
    window = Window(start * SECOND, float(length), interval_s=0.7)
    written, read = per_byte(writes), per_byte(reads)
    inside = [i for i, time in enumerate(read) if window.start_ns < time <= window.end_ns]
    delays = sorted((read[i] - written[i]) / SECOND for i in inside)
    assert logs.goodput_bps(reads, window) == pytest.approx(len(inside) * 8 / length)
    joined = logs.delays(writes, reads, window)
    assert joined.weight.sum() == len(inside)
    statistics = logs.delay_statistics(joined)
    if not delays:
        assert statistics is None
        assert logs.delay_cdf(joined) == []
        return
    assert statistics is not None
    assert statistics.mean == pytest.approx(sum(delays) / len(delays))
    assert statistics.max == pytest.approx(delays[-1])
    # The smallest value that at least half of the bytes do not exceed.
    assert statistics.p50 == pytest.approx(delays[-(-len(delays) // 2) - 1])
    cdf = logs.delay_cdf(joined)
    assert len(cdf) == 101
    assert cdf == sorted(cdf)
    assert cdf[0] == pytest.approx(delays[0])
    assert cdf[-1] == pytest.approx(delays[-1])


@given(transfers(), st.integers(0, 6), st.integers(1, 12))
def test_series_conserve_bytes_and_delay(transfer: tuple[Log, Log], start: int, length: int) -> None:
    writes, reads = transfer
    window = Window(start * SECOND, float(length), interval_s=0.7)
    widths = np.diff(window.edges_ns()) / SECOND
    series = logs.goodput_series(reads, window)
    assert len(series) == len(window.times_s()) == len(widths)
    assert np.dot(series, widths) / length == pytest.approx(logs.goodput_bps(reads, window))
    joined = logs.delays(writes, reads, window)
    total = sum(
        delay * rate * width / 8
        for delay, rate, width in zip(logs.delay_series(joined, window), series, widths, strict=True)
        if delay is not None
    )
    assert total == pytest.approx(float(np.dot(joined.delay_s, joined.weight)), abs=1e-6)


def test_reads_and_writes_of_other_sizes_are_joined_by_offset() -> None:
    writes = log((10, 0), (20, SECOND))
    reads = log((5, SECOND), (20, 3 * SECOND))
    joined = logs.delays(writes, reads, Window(0, 10.0))
    assert joined.delay_s.tolist() == [1.0, 3.0, 2.0]
    assert joined.weight.tolist() == [5, 5, 10]


def test_only_bytes_read_in_the_window_count() -> None:
    writes = log((100, 0), (200, SECOND), (300, 2 * SECOND))
    reads = log((100, SECOND), (200, 2 * SECOND), (300, 3 * SECOND))
    window = Window(SECOND, 1.0)
    assert logs.goodput_bps(reads, window) == 800.0
    assert logs.delays(writes, reads, window).weight.tolist() == [100]


@pytest.mark.parametrize(
    ("writes", "reads", "message"),
    [
        (log((10, 0)), log((11, 5)), "11 bytes read of 10 written"),
        (log((10, 7)), log((10, 5)), "before it was written"),
    ],
)
def test_logs_of_different_flows_are_refused(writes: Log, reads: Log, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logs.delays(writes, reads, Window(0, 10.0))


@pytest.mark.parametrize("entries", [[(5, 0), (5, 1)], [(0, 0)], [(5, 0), (4, 1)]])
def test_a_log_that_does_not_increase_is_refused(entries: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="increase"):
        log(*entries)


def test_nothing_sent_is_nothing_received() -> None:
    window = Window(0, 1.0, interval_s=0.5)
    joined = logs.delays(log(), log(), window)
    assert logs.goodput_bps(log(), window) == 0.0
    assert logs.delay_series(joined, window) == [None, None]
    assert logs.goodput_series(log(), window) == [0.0, 0.0]


def test_rate_series_interpolates_and_stands_still_outside() -> None:
    times: Any = np.array([SECOND, 3 * SECOND], dtype=np.int64)
    counted: Any = np.array([0, 2000], dtype=np.int64)
    window = Window(0, 4.0, interval_s=1.0)
    assert logs.rate_series(times, counted, window) == [0.0, 8000.0, 8000.0, 0.0]
    assert logs.rate_series(times[:0], counted[:0], window) == [0.0] * 4


def test_latest_values_are_those_of_the_last_sample_and_none_before_the_first() -> None:
    times: Any = np.array([SECOND, 2 * SECOND, 5 * SECOND // 2], dtype=np.int64)
    values: Any = np.array([10, 0, 30], dtype=np.int64)
    assert logs.latest_values(times, values, Window(SECOND // 2, 3.0, 1.0)) == [10.0, 30.0, 30.0]
    assert logs.latest_values(times, values, Window(0, 2.0, 0.5)) == [None, 10.0, 10.0, None]
