"""`[[programs]]` of a scenario: commands that hosts run during a run, as traffic or beside it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from experiments.model.data import Data
from experiments.model.settings import Seconds

MAX_TIMES = 10_000
Span = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]


def _words(value: object) -> object:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


class Program(Data):
    """A command on a host; `{T2}` in it is the address of host T2.

    A `server` is there before flows connect, and until the run ends. Others start `at_s` after the start of
    the measurement, and again every `every_s`; they are ended after `for_s`, and with the measurement. `over`
    is what their connections become: TCP as they are, MPTCP by `mptcpize`, or MSTCP by `mstcp run`, which
    asks the controller for `rate_bps`, or opens two streams without that.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    host: str
    command: Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]
    server: bool = False
    at_s: Seconds = 0.0
    every_s: Span | None = None
    for_s: Span | None = None
    over: Literal["tcp", "mptcp", "mstcp"] = "tcp"
    rate_bps: Annotated[float, Field(gt=0, le=1e13)] | None = None
    cases: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> Program:
        if self.server and (self.at_s or self.every_s or self.for_s):
            raise ValueError("a server runs all the time: leave at_s, every_s and for_s out")
        if self.rate_bps is not None and self.over != "mstcp":
            raise ValueError('rate_bps goes with over = "mstcp"')
        return self

    def starts_s(self, duration_s: float) -> list[float]:
        """Return when it starts, in seconds from the start of the measurement."""
        if self.every_s is None:
            return [self.at_s] if self.at_s < duration_s else []
        count = 0 if self.at_s >= duration_s else int((duration_s - self.at_s) / self.every_s) + 1
        times = (self.at_s + number * self.every_s for number in range(min(count, MAX_TIMES)))
        return [time_s for time_s in times if time_s < duration_s]

    def words(self, addresses: Mapping[str, str]) -> list[str]:
        """Return the command with the hosts' addresses in it."""
        words = list(self.command)
        for host, address in addresses.items():
            words = [word.replace(f"{{{host}}}", address) for word in words]
        return words
