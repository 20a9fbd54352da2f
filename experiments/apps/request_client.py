"""The requesting side of a sink: sends requests over the flow's own connection and reads the answers."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.apps.config import SinkConfig
from experiments.apps.pattern import Pattern
from experiments.apps.process import now_ns


class RequestClient:
    """Sends a flow's requests.

    A request counts from when its user wanted it, even where it left later, so that a source that falls
    behind is not spared (no coordinated omission).
    """

    def __init__(
        self, config: SinkConfig, transport: Any, pattern: Pattern, fail: Callable[[Exception], None]
    ) -> None:
        asking = config.workload.asking
        assert asking is not None, "only the sinks of such workloads ask"
        self._asking = asking
        self._workload = config.workload
        self._seed = config.seed
        self._transport = transport
        self._pattern = pattern.of(2 * config.number + 1)
        self._fail = fail
        self._sizes = asking.answer_sizes(self._seed)
        self._thinking = asking.think_times(self._seed)
        self._loop = asyncio.get_running_loop()
        self._start_ns = self._stop_ns = 0
        self._answered = 0
        self._asked_ns, self._end_offsets = array("q"), array("q")

    @property
    def bytes_written(self) -> int:
        """All requests so far."""
        return len(self._asked_ns) * self._asking.request_bytes

    def begin(self, start_ns: int, stop_ns: int) -> None:
        """Send requests from `start_ns` until before `stop_ns`."""
        self._start_ns, self._stop_ns = start_ns, stop_ns
        self._arrivals = self._workload.decisions(0.0, 0, self._seed)
        self._next_arrival()

    def _next_arrival(self) -> None:
        arrival = next(self._arrivals, None)
        if arrival is not None:
            self._ask_at(self._start_ns + round(arrival.time_s * 1e9), self._next_arrival)

    def _ask_at(self, time_ns: int, following: Callable[[], None] | None = None) -> None:
        if time_ns < self._stop_ns:
            self._loop.call_at(time_ns * 1e-9, partial(self._ask, time_ns, following))

    def _ask(self, time_ns: int, following: Callable[[], None] | None) -> None:
        try:
            size = self._asking.request_bytes
            self._transport.write(self._pattern.at(self.bytes_written, size))
            self._asked_ns.append(time_ns)
            before = self._end_offsets[-1] if self._end_offsets else 0
            self._end_offsets.append(before + next(self._sizes))
            if following is not None:
                following()
        except Exception as error:  # an exception in a callback would only be logged
            self._fail(error)

    def received(self, offset: int) -> None:
        """Note that all before `offset` has been read: whose answer is whole may think and ask again."""
        while self._answered < len(self._end_offsets) and self._end_offsets[self._answered] <= offset:
            self._answered += 1
            if self._asking.users is not None:
                self._ask_at(now_ns() + round(next(self._thinking) * 1e9))

    def log(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return when each request was made, and where in the stream its answer ends."""
        return {
            "asked_ns": np.frombuffer(self._asked_ns, dtype=np.int64),
            "end_offset": np.frombuffer(self._end_offsets, dtype=np.int64),
        }
