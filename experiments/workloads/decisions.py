"""When an application writes how much: pure, the same for the same seed, and the same in every engine.

A workload decides without knowing the network: its decisions are an iterator of times and sizes. Only users
who wait for an answer before they ask again (a closed loop) are led by what arrives: `request_sizes` and
`think_times` are what they draw. Each purpose has a generator of its own, so that drawing more for one
changes nothing for another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from experiments.workloads import sizes
from experiments.workloads.schema import Bulk, OnOff, Requests, Workload

_LENGTHS, _ARRIVALS, _SIZES, _THINKING = range(4)


class Decision(NamedTuple):
    """To write (or, of requests, to ask for) `size_bytes`, `time_s` after the flow's start."""

    time_s: float
    size_bytes: int


def decisions(workload: Workload, rate_bps: float, payload_bytes: int, seed: int) -> Iterator[Decision]:
    """Yield a flow's decisions in the order of time.

    Args:
        workload: of the flow.
        rate_bps: goodput at which constant-bit-rate sources write; of no meaning to the others.
        payload_bytes: what such a source writes at each tick.
        seed: of the flow.

    Yields:
        Ticks of a constant-bit-rate source; the one file of a bulk transfer; requests of an open loop, with
        the sizes of their answers. Of a closed loop the first requests, one for each user.
    """
    if isinstance(workload, Bulk):
        yield Decision(0.0, workload.size_bytes)
    elif isinstance(workload, Requests):
        yield from _requests(workload, seed)
    else:
        # Computed from the first tick of the period, so that they do not drift.
        tick_s = payload_bytes * 8 / rate_bps
        for begin_s, end_s in _on_periods(workload, seed):
            for number in itertools.count():
                time_s = begin_s + number * tick_s
                if time_s >= end_s:
                    break
                yield Decision(time_s, payload_bytes)


def request_sizes(workload: Requests, seed: int) -> Iterator[int]:
    """Yield the sizes in bytes of the answers to a flow's requests, in the order in which they are made."""
    return sizes.draws(workload.sizes, _generator(seed, _SIZES))


def think_times(workload: Requests, seed: int) -> Iterator[float]:
    """Yield how long, in seconds, the users of a closed loop think before they ask again."""
    generator = _generator(seed, _THINKING)
    while True:
        yield float(generator.exponential(workload.think_s))


def on_time_s(workload: Workload, begin_s: float, end_s: float, seed: int) -> float:
    """Return for how long between two times a source is on, in seconds from the flow's start.

    Other sources than `onoff` are always on, from the flow's start.
    """
    total = 0.0
    for start_s, stop_s in _on_periods(workload, seed):
        if start_s >= end_s:
            break
        total += max(0.0, min(stop_s, end_s) - max(start_s, begin_s))
    return total


def _requests(workload: Requests, seed: int) -> Iterator[Decision]:
    answers = request_sizes(workload, seed)
    if workload.per_s is None:
        for _ in range(workload.users or 0):
            yield Decision(0.0, next(answers))
        return
    generator = _generator(seed, _ARRIVALS)
    time_s = 0.0
    while True:
        time_s += float(generator.exponential(1 / workload.per_s))
        yield Decision(time_s, next(answers))


def _on_periods(workload: Workload, seed: int) -> Iterator[tuple[float, float]]:
    if not isinstance(workload, OnOff):
        yield 0.0, float("inf")
        return
    generator = _generator(seed, _LENGTHS)

    def length_s(mean_s: float) -> float:
        return mean_s if workload.lengths == "fixed" else float(generator.exponential(mean_s))

    begin_s = 0.0
    while True:
        end_s = begin_s + length_s(workload.on_s)
        yield begin_s, end_s
        begin_s = end_s + length_s(workload.off_s)


def _generator(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])
