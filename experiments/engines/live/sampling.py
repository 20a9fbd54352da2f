"""Samples of the links' counters during a run, made into results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.analysis.logs import NANOSECONDS, Window, rate_series
from experiments.model.results import LinkResult, LinkSeries
from topologies.model import Network
from topologies.wires import DirectionCounters


@dataclass
class _Lateness:
    """How late one direction of a link has released its packets, over all intervals, in microseconds.

    Mean and percentile are weighted by packets; the percentile is the mean of the intervals' own, since their
    distributions are not kept.
    """

    packets: int = 0
    mean_sum_us: float = 0.0
    p99_sum_us: float = 0.0
    max_us: float | None = None

    def add(self, before: DirectionCounters, after: DirectionCounters) -> None:
        """Take one more interval; those without packets, or where it is not measured, say nothing."""
        count, late = after.packets - before.packets, after.lateness
        if late is None or late.max_us is None or count <= 0:
            return
        self.packets += count
        self.mean_sum_us += late.mean_us * count
        self.p99_sum_us += late.p99_us * count
        self.max_us = late.max_us if self.max_us is None else max(self.max_us, late.max_us)

    def fields(self) -> dict[str, Any]:
        """Return the fields of a `LinkResult`."""
        known = self.packets > 0
        return {
            "lateness_mean_us": self.mean_sum_us / self.packets if known else None,
            "lateness_p99_us": self.p99_sum_us / self.packets if known else None,
            "lateness_max_us": self.max_us,
        }


@dataclass
class LinkSampler:
    """Keeps what `read` returns, each time `sample` is called.

    The emulator's lateness is of the packets since the last reading, so it is kept with each interval.
    """

    read: Callable[[], Sequence[DirectionCounters]]
    _times_ns: list[int] = field(default_factory=list)
    _samples: list[Sequence[DirectionCounters]] = field(default_factory=list)
    _late: list[_Lateness] = field(default_factory=list)

    def sample(self, now_ns: int) -> None:
        """Read the counters once."""
        self._samples.append(self.read())
        self._times_ns.append(now_ns)
        if len(self._samples) == 1:
            self._late = [_Lateness() for _ in self._samples[0]]
            return
        for late, before, after in zip(self._late, *self._samples[-2:], strict=True):
            late.add(before, after)

    def machine_drops(self) -> dict[str, int]:
        """Return the packets that each link lost since the first sample because the machine was too slow."""
        if not self._samples:
            return {}
        lost = {
            f"on link {first.tail}->{first.head}": last.dropped_by_machine - first.dropped_by_machine
            for first, last in zip(self._samples[0], self._samples[-1], strict=True)
        }
        return {place: count for place, count in lost.items() if count}

    def lateness_so_far(self, network: Network) -> list[LinkResult]:
        """Return both directions of every link with nothing but how late it was."""
        capacities = {(arc.tail, arc.head): arc.rate_bps for arc in network.arcs()}
        return [
            LinkResult(
                link=f"{each.tail}->{each.head}",
                capacity_bps=capacities[each.tail, each.head],
                utilisation=None,
                packets_dropped=None,
                **late.fields(),
            )
            for each, late in zip(self._samples[0] if self._samples else (), self._late, strict=True)
        ]

    def latest_utilisation(self, network: Network) -> list[float]:
        """Return the utilisation of each arc, in the network's order, between the last two samples."""
        if len(self._samples) < 2:
            return []
        seconds = (self._times_ns[-1] - self._times_ns[-2]) * NANOSECONDS
        before, after = (
            {(each.tail, each.head): each.bytes for each in sample} for sample in self._samples[-2:]
        )
        return [
            (after[arc.tail, arc.head] - before[arc.tail, arc.head]) * 8 / seconds / arc.rate_bps
            for arc in network.arcs()
        ]

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
        return LinkResult(
            link=f"{first.tail}->{first.head}",
            capacity_bps=capacity_bps,
            utilisation=float(np.dot(rates, widths_s) / window.duration_s / capacity_bps),
            packets_dropped=_dropped(counted, times, window),
            **self._late[index].fields(),
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
