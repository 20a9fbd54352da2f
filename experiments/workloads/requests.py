"""Requests and their answers, in open or closed loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from experiments.workloads import sizes as distributions
from experiments.workloads.base import (
    LISTED_LIMIT,
    Asking,
    Decision,
    Ended,
    Simulated,
    WorkloadBase,
    generator,
    register,
)
from experiments.workloads.sizes import Sizes

_ARRIVALS, _SIZES, _THINKING = 1, 2, 3
THOUGHTS_PER_S, THOUGHTS_LIMIT = 500.0, 20_000
"""What users of a simulation think and ask for: in its time, and at the most; then it begins again."""


@register
class Requests(WorkloadBase):
    """The flow's destination asks, over the flow's connection, and its source answers, one after the other.

    Open loop (`per_s`): requests come as a Poisson process, whether or not earlier ones are answered. Closed
    loop: `users` users ask, wait for the whole answer, think for `think_s` (mean of an exponential
    distribution) and ask again. `sizes` are those of the answers.
    """

    kind: Literal["requests"] = "requests"
    sizes: Sizes
    per_s: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    users: int | None = Field(default=None, ge=1, le=10_000)
    think_s: float = Field(default=0.0, ge=0, le=86400, allow_inf_nan=False)
    request_bytes: int = Field(default=100, ge=1, le=65536)

    @model_validator(mode="after")
    def _one_loop(self) -> Requests:
        if (self.per_s is None) == (self.users is None):
            raise ValueError("give either per_s (open loop) or users (closed loop)")
        if self.users is None and self.think_s:
            raise ValueError("think_s belongs to users; with per_s nobody waits")
        return self

    @property
    def asking(self) -> Asking | None:
        """Its own requests."""
        return self

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield requests with their answers' sizes: all of an open loop, else the first of each user."""
        del rate_bps, payload_bytes
        answers = self.answer_sizes(seed)
        if self.per_s is None:
            for _ in range(self.users or 0):
                yield Decision(0.0, next(answers))
            return
        time_s = 0.0
        for gap_s in self._gaps(seed):
            time_s += gap_s
            yield Decision(time_s, next(answers))

    def _gaps(self, seed: int) -> Iterator[float]:
        """Yield the times between requests of an open loop, in seconds."""
        draws = generator(seed, _ARRIVALS)
        while True:
            yield float(draws.exponential(1 / (self.per_s or 1.0)))

    def answer_sizes(self, seed: int) -> Iterator[int]:
        """Yield the sizes in bytes of the answers, in the order of the requests."""
        return distributions.draws(self.sizes, generator(seed, _SIZES))

    def think_times(self, seed: int) -> Iterator[float]:
        """Yield how long, in seconds, the users of a closed loop think before they ask again."""
        draws = generator(seed, _THINKING)
        while True:
            yield float(draws.exponential(self.think_s))

    def simulated(self, flow: Simulated) -> dict[str, Any]:
        """Return when users ask or how long they think, and the sizes of the answers."""
        if self.users is None:
            times_s = list(self._gaps_within(flow.duration_s, flow.seed))
            count = len(times_s)
        else:
            count = min(THOUGHTS_LIMIT, round(THOUGHTS_PER_S * flow.duration_s) + self.users)
            times_s = list(itertools.islice(self.think_times(flow.seed), count))
        return {
            "kind": self.kind,
            "times_s": times_s,
            "sizes_bytes": list(itertools.islice(self.answer_sizes(flow.seed), count)),
            "users": self.users,
            "request_bytes": self.request_bytes,
            "write_rate_bps": flow.write_rate_bps,
        }

    def _gaps_within(self, duration_s: float, seed: int) -> Iterator[float]:
        """Yield the times between requests up to the first one after a duration."""
        time_s = 0.0
        for gap_s in itertools.islice(self._gaps(seed), LISTED_LIMIT):
            yield gap_s
            time_s += gap_s
            if time_s >= duration_s:
                return

    def measured(self, flow: Ended) -> dict[str, Any]:
        """Return the completion times of the requests that were made after the warm-up."""
        from experiments.analysis import logs
        from experiments.model.results import TransferCounts

        # The sink asks for nothing after the end.
        counts = flow.asked_ns >= flow.window.start_ns
        times_s = logs.completion_times(flow.reads, flow.asked_ns[counts], flow.end_offset[counts])
        return {
            "transfers": TransferCounts(started=int(counts.sum()), completed=len(times_s)),
            "fct_s": logs.completion_statistics(times_s),
        }
