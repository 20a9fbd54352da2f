"""Distributions of sizes: their schema, the published ones, and draws from any."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from experiments.model.data import Data
from experiments.workloads.base import Size


class FixedSize(Data):
    """Every transfer has `size_bytes`."""

    kind: Literal["fixed"] = "fixed"
    size_bytes: Size


class ExponentialSize(Data):
    """Exponentially distributed with mean `mean_bytes`, rounded up to whole bytes."""

    kind: Literal["exponential"] = "exponential"
    mean_bytes: Size


class NamedSize(Data):
    """A distribution that was measured in a data centre (`sizes.NAMED`), each size times `scale`."""

    kind: Literal["web-search", "data-mining"]
    scale: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)


class EmpiricalSize(Data):
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


Cdf: TypeAlias = Sequence[tuple[float, float]]

PACKET_BYTES = 1460
_WEB_SEARCH_PACKETS = (
    (1, 0.0), (6, 0.15), (13, 0.2), (19, 0.3), (33, 0.4), (53, 0.53), (133, 0.6), (667, 0.7), (1333, 0.8),
    (3333, 0.9), (6667, 0.97), (20000, 1.0),
)  # fmt: skip
_DATA_MINING_PACKETS = (
    (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66667, 0.99), (666667, 1.0),
)  # fmt: skip


def _in_bytes(points: Cdf) -> Cdf:
    return tuple((packets * PACKET_BYTES, share) for packets, share in points)


NAMED: dict[str, Cdf] = {
    "web-search": _in_bytes(_WEB_SEARCH_PACKETS),
    "data-mining": _in_bytes(_DATA_MINING_PACKETS),
}
"""Points of cumulative distributions, in bytes: web search (Alizadeh et al., DCTCP, SIGCOMM 2010) and data
mining (Greenberg et al., VL2, SIGCOMM 2009), both as pFabric has them (Alizadeh et al., SIGCOMM 2013,
figure 4), in packets of 1460 bytes. Their means are 1.7 and 7.5 MB."""


def draws(sizes: Sizes, generator: np.random.Generator) -> Iterator[int]:
    """Yield sizes in bytes, at least 1, without end."""
    if isinstance(sizes, FixedSize):
        while True:
            yield sizes.size_bytes
    if isinstance(sizes, ExponentialSize):
        while True:
            yield max(1, math.ceil(generator.exponential(sizes.mean_bytes)))
    points, scale = cdf_of(sizes)
    values, shares = [value for value, _ in points], [share for _, share in points]
    while True:
        yield max(1, round(scale * float(np.interp(generator.random(), shares, values))))


def cdf_of(sizes: NamedSize | EmpiricalSize) -> tuple[Cdf, float]:
    """Return the points of a cumulative distribution, and what its sizes are multiplied with."""
    if isinstance(sizes, NamedSize):
        return NAMED[sizes.kind], sizes.scale
    return sizes.cdf, 1.0


def mean_bytes(sizes: Sizes) -> float:
    """Return the mean of a distribution, before sizes are rounded."""
    if isinstance(sizes, FixedSize):
        return float(sizes.size_bytes)
    if isinstance(sizes, ExponentialSize):
        return float(sizes.mean_bytes)
    points, scale = cdf_of(sizes)
    total, (before, low) = points[0][0] * points[0][1], points[0]
    for value, share in points[1:]:
        total += (before + value) / 2 * (share - low)
        before, low = value, share
    return scale * total
