"""Waiting for what happens soon: the helpers of all tests that wait for a condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

TIMEOUT_S = 240.0
"""Enough where all takes ten times as long; less than a test has. One that passes waits for little of it."""


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S) -> float:
    """Wait until a condition holds, and return how many seconds it took; fail with what was waited for."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() < begin + timeout_s, f"in vain for {timeout_s:g} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - begin


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait until a condition holds; fail with what was waited for."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain for {TIMEOUT_S:g} s: {what}"
        await asyncio.sleep(0.005)
