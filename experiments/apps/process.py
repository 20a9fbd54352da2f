"""A source or sink as a process: JSON lines to the engine on standard output, orders on standard input."""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any


def emit(event: str, **fields: Any) -> None:
    """Tell the engine something."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


async def order() -> dict[str, Any]:
    """Wait for the engine's next order.

    Raises:
        EOFError: the engine is gone.
    """
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        raise EOFError("the engine closed the pipe")
    message: dict[str, Any] = json.loads(line)
    return message


def run(main: Callable[[], Awaitable[None]]) -> int:
    """Run an application to its end and return its exit status; what goes wrong is told to the engine.

    The loop waits with select(2): its timeouts are in microseconds, where epoll_wait(2) has milliseconds.
    """
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    try:
        loop.run_until_complete(main())
    except Exception as error:  # whatever it is, the engine has to know
        emit("failed", reason=f"{error}" or type(error).__name__)
        return 1
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return 0


def now_ns() -> int:
    """Return CLOCK_MONOTONIC, which is one for all hosts of a machine."""
    return time.monotonic_ns()
