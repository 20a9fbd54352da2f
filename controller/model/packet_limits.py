"""How many packets of each port the controller looks at, so that a host's flood is its own loss."""

from __future__ import annotations

from dataclasses import dataclass

PACKETS_PER_S = 100
BURST_PACKETS = 200
"""What is looked at of each port; switches that have meters drop the others themselves."""


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class PortLimits:
    """A token bucket for each port."""

    def __init__(self, rate_per_s: float = PACKETS_PER_S, burst: float = BURST_PACKETS) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._buckets: dict[int, dict[int, _Bucket]] = {}  # by datapath id, then port

    def allows(self, datapath_id: int, port: int, now: float) -> bool:
        """Return whether another packet of a port may be looked at, and count it if so."""
        buckets = self._buckets.setdefault(datapath_id, {})
        bucket = buckets.get(port)
        if bucket is None:
            bucket = buckets[port] = _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._rate_per_s)
        bucket.filled_at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def forget(self, datapath_id: int) -> None:
        """Forget the ports of a switch that has gone."""
        self._buckets.pop(datapath_id, None)
