"""Goodput, delay and series from the logs of sources and sinks. Pure: arrays in, results out.

A log holds two arrays: the stream offset behind each application write (or read), in bytes and increasing,
and the time of it in nanoseconds of CLOCK_MONOTONIC, one clock for all hosts of a machine. Byte `i` was
written at the first entry whose offset is above `i`, and read likewise, so every byte has a delay and
quantiles are weighted by bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from experiments.model.results import CompletionTimes, DelayStatistics

Offsets: TypeAlias = npt.NDArray[np.int64]
Nanoseconds: TypeAlias = npt.NDArray[np.int64]
Seconds: TypeAlias = npt.NDArray[np.float64]

NANOSECONDS = 1e-9
QUANTILES = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class Log:
    """Writes or reads of one end of a flow: offset behind each (bytes, increasing) and its time (ns)."""

    offset: Offsets
    time_ns: Nanoseconds

    def __post_init__(self) -> None:
        if self.offset.shape != self.time_ns.shape or self.offset.ndim != 1:
            raise ValueError(f"{self.offset.shape} offsets for {self.time_ns.shape} times")
        if self.offset.size and (self.offset[0] <= 0 or np.any(np.diff(self.offset) <= 0)):
            raise ValueError("offsets do not increase")

    @property
    def total_bytes(self) -> int:
        """All bytes written or read."""
        return int(self.offset[-1]) if self.offset.size else 0

    def bytes_at(self, time_ns: Nanoseconds) -> Offsets:
        """Return the bytes written or read until each time (inclusive)."""
        index = np.searchsorted(self.time_ns, time_ns, side="right")
        return np.concatenate(([0], self.offset))[index].astype(np.int64)


@dataclass(frozen=True)
class Window:
    """The measurement: from `start_ns` for `duration_s`, in intervals of `interval_s` for the series."""

    start_ns: int
    duration_s: float
    interval_s: float = 0.25

    @property
    def end_ns(self) -> int:
        """The end of the measurement."""
        return self.start_ns + round(self.duration_s / NANOSECONDS)

    def edges_ns(self) -> Nanoseconds:
        """Return the edges of the intervals; the last one may be shorter."""
        edges = np.arange(self.start_ns, self.end_ns, round(self.interval_s / NANOSECONDS), dtype=np.int64)
        return np.append(edges, np.int64(self.end_ns))

    def times_s(self) -> Seconds:
        """Return the end of each interval, in seconds from the start."""
        return np.asarray((self.edges_ns()[1:] - self.start_ns) * NANOSECONDS, dtype=np.float64)


@dataclass(frozen=True)
class Delays:
    """Runs of consecutive bytes that share write and read: delay, weight in bytes, time of the read."""

    delay_s: Seconds
    weight: Offsets
    read_ns: Nanoseconds


def goodput_bps(reads: Log, window: Window) -> float:
    """Return the application bytes read in order within the window, as a rate in bit/s."""
    first, last = reads.bytes_at(np.array([window.start_ns, window.end_ns]))
    return float((last - first) * 8 / window.duration_s)


def delays(writes: Log, reads: Log, window: Window) -> Delays:
    """Join writes and reads by offset, for the bytes that were read within the window.

    Raises:
        ValueError: more was read than written, or a byte before its write: the logs are not of one flow.
    """
    if reads.total_bytes > writes.total_bytes:
        raise ValueError(f"{reads.total_bytes} bytes read of {writes.total_bytes} written")
    begin, end = reads.bytes_at(np.array([window.start_ns, window.end_ns]))
    edges = np.union1d(writes.offset, reads.offset)
    edges = edges[(edges > begin) & (edges <= end)]
    written_ns = writes.time_ns[np.searchsorted(writes.offset, edges, side="left")]
    read_ns = reads.time_ns[np.searchsorted(reads.offset, edges, side="left")]
    delay_ns = read_ns - written_ns
    if delay_ns.size and delay_ns.min() < 0:
        raise ValueError("a byte was read before it was written")
    weight = np.diff(edges, prepend=begin)
    return Delays(delay_ns * NANOSECONDS, weight, read_ns)


def weighted_quantiles(values: Seconds, weight: Offsets, quantiles: Seconds) -> Seconds:
    """Return for each quantile the smallest value that at least this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order])
    index = np.searchsorted(cumulated, quantiles * cumulated[-1], side="left")
    return np.asarray(values[order][np.minimum(index, values.size - 1)], dtype=np.float64)


def delay_statistics(measured: Delays) -> DelayStatistics | None:
    """Return the delay's statistics, weighted by bytes; None where nothing arrived."""
    if not measured.delay_s.size:
        return None
    p50, p95, p99 = weighted_quantiles(measured.delay_s, measured.weight, np.array([0.5, 0.95, 0.99]))
    mean = np.average(measured.delay_s, weights=measured.weight)
    return DelayStatistics(
        mean=float(mean), p50=float(p50), p95=float(p95), p99=float(p99), max=float(measured.delay_s.max())
    )


def delay_cdf(measured: Delays) -> list[float]:
    """Return the delay's quantiles 0, 0.01, ..., 1 in seconds; empty where nothing arrived."""
    if not measured.delay_s.size:
        return []
    return [float(value) for value in weighted_quantiles(measured.delay_s, measured.weight, QUANTILES)]


def completion_times(reads: Log, wanted_ns: Nanoseconds, end_offset: Offsets) -> Seconds:
    """Return how long each transfer took that was read whole.

    Returns:
        Seconds, in the order of the transfers; those that were not read whole are left out.
    """
    whole = end_offset <= reads.total_bytes
    read_ns = reads.time_ns[np.searchsorted(reads.offset, end_offset[whole], side="left")]
    return np.asarray((read_ns - wanted_ns[whole]) * NANOSECONDS, dtype=np.float64)


def completion_statistics(times_s: Seconds) -> CompletionTimes | None:
    """Return the statistics of completion times; None where there are none."""
    if not times_s.size:
        return None
    quantiles = weighted_quantiles(times_s, np.ones(times_s.size, dtype=np.int64), QUANTILES).tolist()
    return CompletionTimes(**summary_of(float(times_s.mean()), quantiles), quantiles=quantiles)


def summary_of(mean: float, quantiles: Sequence[float]) -> dict[str, float]:
    """Return the statistics of a distribution with these `QUANTILES`."""
    named = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {"mean": mean, **{name: quantiles[place] for name, place in named.items()}}


def goodput_series(reads: Log, window: Window) -> list[float]:
    """Return the goodput in bit/s of each interval of the window."""
    edges = window.edges_ns()
    widths_s = np.diff(edges) * NANOSECONDS
    return [float(rate) for rate in np.diff(reads.bytes_at(edges)) * 8 / widths_s]


def delay_series(measured: Delays, window: Window) -> list[float | None]:
    """Return the mean delay in seconds of the bytes read in each interval; None where there were none."""
    edges = window.edges_ns()
    index = np.searchsorted(edges, measured.read_ns, side="left") - 1
    index = np.clip(index, 0, edges.size - 2)
    weight = np.bincount(index, weights=measured.weight, minlength=edges.size - 1)
    total = np.bincount(index, weights=measured.weight * measured.delay_s, minlength=edges.size - 1)
    return [float(t / w) if w > 0 else None for t, w in zip(total, weight, strict=True)]


def rate_series(time_ns: Nanoseconds, counted_bytes: Offsets, window: Window) -> list[float]:
    """Return the mean rate in bit/s of each interval from samples of a byte counter, interpolated linearly.

    Before the first and after the last sample the counter is taken to stand still; one that falls was ahead.
    """
    edges = window.edges_ns()
    if time_ns.size == 0:
        return [0.0] * (edges.size - 1)
    at_edges = np.interp(edges, time_ns, np.maximum.accumulate(counted_bytes))
    return [float(rate) for rate in np.diff(at_edges) * 8 / (np.diff(edges) * NANOSECONDS)]


def latest_values(time_ns: Nanoseconds, values: Offsets, window: Window) -> list[float | None]:
    """Return at the end of each interval what was sampled last; None before the first sample, and of 0."""
    index = np.searchsorted(time_ns, window.edges_ns()[1:], side="right") - 1
    return [float(values[place]) or None if place >= 0 else None for place in index]
