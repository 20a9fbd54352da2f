"""One file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from experiments.workloads.base import Decision, Ended, Simulated, Size, WorkloadBase, register


@register
class Bulk(WorkloadBase):
    """One file of `size_bytes`, as fast as the connection takes it."""

    kind: Literal["bulk"] = "bulk"
    size_bytes: Size

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield the file."""
        del rate_bps, payload_bytes, seed
        yield Decision(0.0, self.size_bytes)

    def simulated(self, flow: Simulated) -> dict[str, Any]:
        """Return the file's size."""
        rate_bps = flow.write_rate_bps
        return {"kind": "bulk", "total_bytes": self.size_bytes, "write_rate_bps": rate_bps}

    def measured(self, flow: Ended) -> dict[str, Any]:
        """Return when the file was read whole, and the goodput until then."""
        import numpy as np

        from experiments.analysis import logs
        from experiments.model.results import TransferCounts

        start_ns, window = flow.start_ns, flow.window
        times_s = logs.completion_times(flow.reads, np.array([start_ns]), np.array([self.size_bytes]))
        completion_s = float(times_s[0]) if times_s.size else None
        end_ns = window.end_ns if completion_s is None else start_ns + round(completion_s * 1e9)
        active_ns = min(end_ns, window.end_ns) - max(start_ns, window.start_ns)
        return {
            "completion_s": completion_s,
            "transfers": TransferCounts(started=int(start_ns < window.end_ns), completed=len(times_s)),
            "active_goodput_bps": flow.goodput_over_bps(active_ns * 1e-9),
        }
