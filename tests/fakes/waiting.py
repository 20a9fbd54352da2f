"""Waiting for what happens soon: the one helper of all tests that await a condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 40.0
"""Enough for a slow machine that does other things too; a test that passes waits for little of it."""


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait until a condition holds; fail with what was waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain for {PATIENCE_S:g} s: {what}"
        await asyncio.sleep(0.005)
