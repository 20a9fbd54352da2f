"""A workload from outside the package: video in chunks, and how long its player had nothing to show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from experiments.analysis import logs
from experiments.workloads import Decision, Ended, WorkloadBase, register


@register
class Video(WorkloadBase):
    """A chunk of `chunk_bytes` every `chunk_s`, which is how long the player shows it."""

    kind: Literal["video"] = "video"
    chunk_bytes: int = Field(ge=1, le=1 << 30)
    chunk_s: float = Field(gt=0, le=60)

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield the chunks, without end."""
        del rate_bps, payload_bytes, seed
        return (Decision(number * self.chunk_s, self.chunk_bytes) for number in itertools.count())

    def measured(self, flow: Ended) -> dict[str, Any]:
        """Return how long playback stood still: it begins with the first chunk and waits for each other."""
        count = flow.reads.total_bytes // self.chunk_bytes
        ends = np.arange(1, count + 1) * self.chunk_bytes
        arrivals_s = logs.completion_times(flow.reads, np.full(count, flow.start_ns), ends)
        stalled_s, shown_s = 0.0, None
        for arrival_s in arrivals_s:
            if shown_s is not None:
                stalled_s += max(0.0, float(arrival_s) - shown_s)
            shown_s = max(float(arrival_s), shown_s or 0.0) + self.chunk_s
        return {"rebuffering_s": stalled_s if count else None}
