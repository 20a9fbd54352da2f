"""Samples of the links' counters during a run, made into results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from experiments.metrics import NANOSECONDS, Window, rate_series
from experiments.results import LinkResult, LinkSeries
from topologies.model import Network
from topologies.wires import DirectionCounters


@dataclass
class LinkSampler:
    """Keeps what `read` returns, each time `sample` is called.

    The emulator's lateness is of the packets since the last reading, so it is kept with each interval.
    """

    read: Callable[[], Sequence[DirectionCounters]]
    _times_ns: list[int] = field(default_factory=list)
    _samples: list[Sequence[DirectionCounters]] = field(default_factory=list)

    def sample(self, now_ns: int) -> None:
        """Read the counters once."""
        self._samples.append(self.read())
        self._times_ns.append(now_ns)

    def machine_drops(self) -> dict[str, int]:
        """Return the packets that each link lost since the first sample because the machine was too slow."""
        if not self._samples:
            return {}
        lost = {
            f"on link {first.tail}->{first.head}": last.dropped_by_machine - first.dropped_by_machine
            for first, last in zip(self._samples[0], self._samples[-1], strict=True)
        }
        return {place: count for place, count in lost.items() if count}

    def results(self, network: Network, window: Window) -> list[LinkResult]:
        """Return both directions of every link over the window."""
        capacities = {(arc.tail, arc.head): arc.rate_bps for arc in network.arcs()}
        times = np.array(self._times_ns, dtype=np.int64)
        return [
            self._result(index, counters, capacities[counters.tail, counters.head], times, window)
            for index, counters in enumerate(self._samples[0] if self._samples else ())
        ]

    def _result(
        self, index: int, first: DirectionCounters, capacity_bps: float, times: np.ndarray, window: Window
    ) -> LinkResult:
        counted = [sample[index] for sample in self._samples]
        rates = rate_series(times, np.array([each.bytes for each in counted], dtype=np.int64), window)
        widths_s = np.diff(window.edges_ns()) * NANOSECONDS
        mean_us, p99_us, max_us = _lateness(counted)
        return LinkResult(
            link=f"{first.tail}->{first.head}",
            capacity_bps=capacity_bps,
            utilisation=float(np.dot(rates, widths_s) / window.duration_s / capacity_bps),
            packets_dropped=_dropped(counted, times, window),
            lateness_mean_us=mean_us,
            lateness_p99_us=p99_us,
            lateness_max_us=max_us,
            series=LinkSeries(
                time_s=[float(time) for time in window.times_s()],
                utilisation=[rate / capacity_bps for rate in rates],
            ),
        )


def _dropped(counted: Sequence[DirectionCounters], times: np.ndarray, window: Window) -> int:
    """Return the packets that the link dropped within the window, interpolated between samples."""
    dropped = np.array([each.dropped + (each.lost or 0) for each in counted], dtype=np.float64)
    before, after = np.interp([window.start_ns, window.end_ns], times, dropped)
    return round(after - before)


def _lateness(counted: Sequence[DirectionCounters]) -> tuple[float | None, float | None, float | None]:
    """Return mean, 99th percentile and maximum over all intervals, in microseconds; None where not measured.

    Mean and percentile are weighted by packets; the percentile is the mean of the intervals' own, since their
    distributions are not kept.
    """
    known = [
        (after.lateness, after.packets - before.packets)
        for before, after in itertools.pairwise(counted)
        if after.lateness is not None and after.lateness.max_us is not None and after.packets > before.packets
    ]
    if not known:
        return None, None, None
    packets = sum(count for _, count in known)
    mean_us = sum(lateness.mean_us * count for lateness, count in known) / packets
    p99_us = sum(lateness.p99_us * count for lateness, count in known) / packets
    return mean_us, p99_us, max(lateness.max_us for lateness, _ in known)
