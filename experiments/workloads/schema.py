"""The workload of a flow as a scenario file has it. Nothing here knows an engine."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

LARGEST_BYTES = 1 << 50

Size = Annotated[int, Field(ge=1, le=LARGEST_BYTES)]
Period = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FixedSize(_Model):
    """Every transfer has `size_bytes`."""

    kind: Literal["fixed"] = "fixed"
    size_bytes: Size


class ExponentialSize(_Model):
    """Exponentially distributed with mean `mean_bytes`, rounded up to whole bytes."""

    kind: Literal["exponential"] = "exponential"
    mean_bytes: Size


class NamedSize(_Model):
    """A distribution that was measured in a data centre (`sizes.NAMED`), each size times `scale`."""

    kind: Literal["web-search", "data-mining"]
    scale: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)


class EmpiricalSize(_Model):
    """A distribution written down: `cdf` holds pairs of size in bytes and share of transfers up to it.

    Both rise, and the last share is 1. Between two points it is linear; the first share is that of
    transfers of just the first size.
    """

    kind: Literal["empirical"] = "empirical"
    cdf: tuple[tuple[Size, Annotated[float, Field(ge=0, le=1)]], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rises(self) -> EmpiricalSize:
        for (small, low), (large, high) in itertools.pairwise(self.cdf):
            if large <= small or high < low:
                raise ValueError(f"[{large}, {high:g}] does not rise above [{small}, {low:g}]")
        if self.cdf[-1][1] != 1:
            raise ValueError(f"the last share is {self.cdf[-1][1]:g}; it has to be 1")
        return self


def _size_alone(value: object) -> object:
    return {"kind": "fixed", "size_bytes": value} if isinstance(value, int) else value


Sizes: TypeAlias = Annotated[
    Annotated[FixedSize | ExponentialSize | NamedSize | EmpiricalSize, Field(discriminator="kind")],
    BeforeValidator(_size_alone),
]
"""A table with a `kind`; a whole number stands for a fixed size."""


class Cbr(_Model):
    """Constant bit rate: one packet's payload at each tick, as the paper's sources send it.

    A tick that finds the send buffer full is skipped.
    """

    kind: Literal["cbr"] = "cbr"


class Bulk(_Model):
    """One file of `size_bytes`, as fast as the connection takes it."""

    kind: Literal["bulk"] = "bulk"
    size_bytes: Size


class OnOff(_Model):
    """Constant bit rate during on periods and nothing during off periods, beginning with an on period.

    `on_s` and `off_s` are the means of exponentially distributed lengths, or the lengths themselves.
    """

    kind: Literal["onoff"] = "onoff"
    on_s: Period
    off_s: Period
    lengths: Literal["exponential", "fixed"] = "exponential"


class Requests(_Model):
    """The flow's destination asks, over the flow's connection, and its source answers, one after the other.

    Open loop (`per_s`): requests come as a Poisson process, whether or not earlier ones are answered. Closed
    loop (`users`): so many users ask, wait for the whole answer, think for `think_s` (mean of an exponential
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


Workload: TypeAlias = Annotated[Cbr | Bulk | OnOff | Requests, Field(discriminator="kind")]
WORKLOADS = (Cbr, Bulk, OnOff, Requests)
