"""The timing of a constant-bit-rate source, apart from its sockets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ticks:
    """When a source writes: `payload_bytes` every `payload_bytes * 8 / rate_bps` seconds.

    From `start_ns` until before `stop_ns`. Times are computed from the first tick, so that they do not drift;
    a source that was held up makes up for it.
    """

    rate_bps: float
    payload_bytes: int
    start_ns: int
    stop_ns: int
    done: int = 0

    def _time_ns(self, number: int) -> int:
        return self.start_ns + round(number * self.payload_bytes * 8e9 / self.rate_bps)

    def due(self, now_ns: int) -> int:
        """Return how many more ticks are due at `now_ns`, and count them as done."""
        reach_ns = min(now_ns, self.stop_ns - 1)
        if reach_ns < self.start_ns:
            return 0
        passed = int((reach_ns - self.start_ns) * self.rate_bps / (self.payload_bytes * 8e9)) + 1
        # The product above is rounded; the tick's own time decides.
        while passed > 0 and self._time_ns(passed - 1) > reach_ns:
            passed -= 1
        while self._time_ns(passed) <= reach_ns:
            passed += 1
        ticks = max(0, passed - self.done)
        self.done += ticks
        return ticks

    def next_ns(self, now_ns: int, least_gap_ns: int) -> int | None:
        """Return when to look again: at the next tick, but no sooner than the gap; None after the last."""
        following = self._time_ns(self.done)
        if following >= self.stop_ns:
            return None
        return max(following, now_ns + least_gap_ns)
