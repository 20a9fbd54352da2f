"""A source or sink as a process: JSON lines to the engine on standard output, orders on standard input."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import selectors
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from experiments.apps.config import Timing
from experiments.errors import reason_of


def emit(event: str, **fields: Any) -> None:
    """Tell the engine something."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def emit_if_there_is_room(event: str, **fields: Any) -> None:
    """Tell the engine something, unless that would have to wait since it is busy: then it is left out.

    Nothing here asks for the time, which moves a virtual clock on.
    """
    line = json.dumps({"event": event, **fields}).encode() + b"\n"
    if len(line) > select.PIPE_BUF:
        return  # a pipe that has not enough room would take a part of it (pipe(7))
    output = sys.stdout.fileno()
    os.set_blocking(output, False)
    try:
        os.write(output, line)
    except BlockingIOError:
        pass
    finally:
        os.set_blocking(output, True)


async def order() -> dict[str, Any]:
    """Wait for the engine's next order (EOFError: the engine is gone)."""
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        raise EOFError("the engine closed the pipe")
    message: dict[str, Any] = json.loads(line)
    return message


class CoalescingSelector(selectors.SelectSelector):
    """Waits with select(2), and not again within `least_gap_s` of the last event.

    As a network card moderates its interrupts: where packets come faster than that, several are served
    together, which spares a machine that also carries the network thousands of wake-ups a second. Where they
    come slower, nothing is delayed.
    """

    def __init__(self, least_gap_s: float) -> None:
        super().__init__()
        self._least_gap_s = least_gap_s
        self._last_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; `timeout` as in the base class."""
        if timeout is None or timeout > 0:
            rest_s = self._last_s + self._least_gap_s - time.monotonic()
            if rest_s > 0:
                time.sleep(rest_s if timeout is None else min(rest_s, timeout))
        events = super().select(timeout)
        self._last_s = time.monotonic()
        return events


class ChargingSelector(selectors.SelectSelector):
    """Waits with select(2), and lets a time pass whenever there is something to do.

    So a program takes time on a clock that stands still while programs run.
    """

    def __init__(self, wakeup_s: float) -> None:
        super().__init__()
        self._wakeup_s = wakeup_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; `timeout` as in the base class."""
        events = super().select(timeout)
        if timeout != 0:
            time.sleep(self._wakeup_s)
        return events


def selector_for(timing: Timing, gap_ns: int) -> selectors.BaseSelector:
    """Return what a process with this timing waits with; `gap_ns` is how far apart it looks at least."""
    if timing.wakeup_ns:
        return ChargingSelector(timing.wakeup_ns * 1e-9)
    return CoalescingSelector(gap_ns * 1e-9) if gap_ns else selectors.SelectSelector()


def run(main: Callable[[], Awaitable[None]], selector: selectors.BaseSelector | None = None) -> int:
    """Run an application to its end and return its exit status; what goes wrong is told to the engine.

    The loop waits with select(2): its timeouts are in microseconds, where epoll_wait(2) has milliseconds.
    """
    gc.disable()  # it would pause a process that lives for seconds and makes no cycles that matter
    loop = asyncio.SelectorEventLoop(selector or selectors.SelectSelector())
    try:
        loop.run_until_complete(main())
    except Exception as error:  # whatever it is, the engine has to know
        emit("failed", reason=reason_of(error))
        return 1
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return 0


def now_ns() -> int:
    """Return CLOCK_MONOTONIC, which is one for all hosts of a machine."""
    return time.monotonic_ns()
