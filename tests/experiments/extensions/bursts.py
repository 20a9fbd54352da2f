"""A workload from outside the package: bursts of growing size at fixed times."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from experiments.workloads import Decision, WorkloadBase, register


@register
class Bursts(WorkloadBase):
    """A burst every `every_s`; the first has `first_bytes`, each next one as many bytes more."""

    kind: Literal["bursts"] = "bursts"
    first_bytes: int = Field(ge=1, le=1 << 20)
    every_s: float = Field(gt=0, le=60)

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield the bursts, without end."""
        del rate_bps, payload_bytes, seed
        return (Decision(n * self.every_s, (n + 1) * self.first_bytes) for n in itertools.count())
