"""A trace from outside the package: a link that is good and bad in turn, as Gilbert and Elliott have it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from experiments.traces import Step, TraceBase, register


@register
class Fading(TraceBase):
    """Periods of exponential length; packets are lost with `bad_loss` in the bad ones and never else."""

    kind: Literal["fading"] = "fading"
    good_s: float = Field(gt=0, le=3600)
    bad_s: float = Field(gt=0, le=3600)
    bad_loss: float = Field(gt=0, lt=1)

    def steps(self, seed: int) -> Iterator[Step]:
        """Yield the beginnings of all periods, without end."""
        draws = random.Random(seed)
        time_s = 0.0
        while True:
            yield Step(round(time_s, 6), {"loss": 0.0})
            time_s += draws.expovariate(1 / self.good_s)
            yield Step(round(time_s, 6), {"loss": self.bad_loss})
            time_s += draws.expovariate(1 / self.bad_s)
