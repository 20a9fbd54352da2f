"""Ending tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def end_tasks(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until none runs: then what they use may be closed.

    A caller that is cancelled meanwhile waits too. How they end is told elsewhere, or of no interest.
    """
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await _wait_for(asyncio.gather(*tasks, return_exceptions=True))


async def _wait_for(ended: asyncio.Future[Any]) -> None:
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        await _wait_for(ended)
        raise
