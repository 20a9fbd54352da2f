"""What a trace of a link is: steps in time, each with what the link becomes, a pure function of the seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny

from experiments.model.data import Data
from experiments.registry import Kinds

SETTINGS = ("rate_bps", "delay_us", "loss", "jitter_us", "queue_packets", "queue_bytes")
"""Properties of a link that can change."""


class LinkSettings(Data):
    """New values of a link's properties, for both directions; None leaves one as it is."""

    rate_bps: Annotated[float, Field(gt=0, le=1e13, allow_inf_nan=False)] | None = None
    delay_us: Annotated[float, Field(ge=0, le=10e6, allow_inf_nan=False)] | None = None
    loss: Annotated[float, Field(ge=0, lt=1)] | None = None
    jitter_us: Annotated[float, Field(ge=0, le=10e6, allow_inf_nan=False)] | None = None
    queue_packets: Annotated[int, Field(ge=1)] | None = None
    queue_bytes: Annotated[int, Field(ge=1)] | None = None

    @property
    def settings(self) -> dict[str, float | int | None]:
        """Those that change."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}


class Step(NamedTuple):
    """What a link becomes, `time_s` after the start of the measurement."""

    time_s: float
    settings: dict[str, Any]


class TraceBase(Data):
    """A trace as a scenario has it: a table with its `kind` and the fields of a subclass.

    Subclasses are given to `experiments.traces.register` (docs/extensions.md).
    """

    kind: str

    def read(self, folder: Path) -> TraceBase:
        """Return it with what its file holds, so that results stand alone (ScenarioError: it holds none)."""
        del folder
        return self

    def steps(self, seed: int) -> Iterator[Step]:
        """Yield the steps in the order of time, with or without end."""
        raise NotImplementedError


TRACES: Kinds[TraceBase] = Kinds("trace")
register = TRACES.register_kind

Trace: TypeAlias = Annotated[SerializeAsAny[TraceBase], BeforeValidator(TRACES.parse)]
"""A table whose `kind` is that of a trace that was registered."""


def repeated(steps: Sequence[Step], period_s: float) -> Iterator[Step]:
    """Yield steps over and over."""
    for turn in itertools.count() if steps else ():
        for step in steps:
            yield Step(round(turn * period_s + step.time_s, 6), step.settings)
