"""A constant bit rate that is on and off in turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from experiments.workloads.base import (
    LISTED_LIMIT,
    Decision,
    Ended,
    Period,
    Simulated,
    WorkloadBase,
    generator,
    register,
)
from experiments.workloads.cbr import ticks

_LENGTHS = 0


@register
class OnOff(WorkloadBase):
    """Constant bit rate during on periods and nothing during off periods, beginning with an on period.

    `on_s` and `off_s` are the means of exponentially distributed lengths, or the lengths themselves.
    """

    kind: Literal["onoff"] = "onoff"
    writes: ClassVar[Literal["ticks", "backlog"]] = "ticks"
    on_s: Period
    off_s: Period
    lengths: Literal["exponential", "fixed"] = "exponential"

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield the ticks of the on periods, without end."""
        for begin_s, end_s in self._on_periods(seed):
            yield from ticks(begin_s, end_s, rate_bps, payload_bytes)

    def on_time_s(self, begin_s: float, end_s: float, seed: int) -> float:
        """Return for how long between two times the source is on, in seconds from the flow's start."""
        total = 0.0
        for start_s, stop_s in self._on_periods(seed):
            if start_s >= end_s:
                break
            total += max(0.0, min(stop_s, end_s) - max(start_s, begin_s))
        return total

    def simulated(self, flow: Simulated) -> dict[str, Any]:
        """Return the periods of the run, and the rate."""
        begin = itertools.takewhile(lambda period: period[0] < flow.duration_s, self._on_periods(flow.seed))
        return {
            "kind": self.kind,
            "periods": list(itertools.islice(begin, LISTED_LIMIT)),
            "rate_bps": flow.rate_bps,
            "when_full": flow.when_full,
            "jitter": flow.tick_jitter,
        }

    def measured(self, flow: Ended) -> dict[str, Any]:
        """Return the goodput over the on periods."""
        begin_s, end_s = (
            (time_ns - flow.start_ns) * 1e-9 for time_ns in (flow.window.start_ns, flow.window.end_ns)
        )
        return {"active_goodput_bps": flow.goodput_over_bps(self.on_time_s(begin_s, end_s, flow.seed))}

    def _on_periods(self, seed: int) -> Iterator[tuple[float, float]]:
        draws = generator(seed, _LENGTHS)

        def length_s(mean_s: float) -> float:
            return mean_s if self.lengths == "fixed" else float(draws.exponential(mean_s))

        begin_s = 0.0
        while True:
            end_s = begin_s + length_s(self.on_s)
            yield begin_s, end_s
            begin_s = end_s + length_s(self.off_s)
