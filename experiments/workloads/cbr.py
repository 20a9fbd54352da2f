"""A constant bit rate, as the paper's sources have it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from experiments.workloads.base import Decision, Simulated, WorkloadBase, register


@register
class Cbr(WorkloadBase):
    """Constant bit rate: one packet's payload at each tick, as the paper's sources send it.

    A tick that finds the send buffer full is skipped.
    """

    kind: Literal["cbr"] = "cbr"
    writes: ClassVar[Literal["ticks", "backlog"]] = "ticks"

    def decisions(self, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
        """Yield a tick after the other, without end."""
        del seed
        yield from ticks(0.0, float("inf"), rate_bps, payload_bytes)

    def simulated(self, flow: Simulated) -> dict[str, Any]:
        """Return the rate; netsim counts the ticks."""
        common = {"rate_bps": flow.rate_bps, "when_full": flow.when_full}
        if flow.arrivals == "poisson":
            return {"kind": "poisson", **common}
        return {"kind": "cbr", **common, "jitter": flow.tick_jitter}


def ticks(begin_s: float, end_s: float, rate_bps: float, payload_bytes: int) -> Iterator[Decision]:
    """Yield the ticks of a period, computed from its first one, so that they do not drift."""
    tick_s = payload_bytes * 8 / rate_bps
    for number in itertools.count():
        time_s = begin_s + number * tick_s
        if time_s >= end_s:
            return
        yield Decision(time_s, payload_bytes)
