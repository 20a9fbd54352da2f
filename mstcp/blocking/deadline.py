"""What is left of a timeout."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from mstcp.checks import MAX_S


def check_timeout(timeout: object) -> None:
    """Check a timeout; ValueError if it is none, as from `socket.settimeout`."""
    if timeout is None:
        return
    if not isinstance(timeout, (int, float)) or not 0 <= timeout <= MAX_S:
        raise ValueError(f"a timeout is a number of seconds from 0 to {MAX_S:g} or None, not {timeout!r}")


class Deadline:
    """What is left of a timeout; None: for ever."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout
        self._at_once = timeout == 0

    def wait(self, changed: threading.Condition) -> None:
        """Wait for a change, as long as there is time."""
        if self._end is None:
            changed.wait()
            return
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.missed()
        changed.wait(left)

    def missed(self) -> OSError:
        """Return what is raised when the time is over."""
        if self._at_once:
            return BlockingIOError("the operation would have to wait, and the timeout is 0")
        return TimeoutError("timed out")

    def left_ns(self) -> int | None:
        """Return the nanoseconds that are left, 1 at least; 0 if nothing may wait, None for ever."""
        if self._end is None:
            return None
        return 0 if self._at_once else max(1, round((self._end - time.monotonic()) * 1e9))

    @contextlib.contextmanager
    def holding(self, lock: threading.Lock) -> Iterator[None]:
        """Hold a lock, which another thread may have for as long as there is time."""
        left = -1.0 if self._end is None else max(0.0, self._end - time.monotonic())
        if not lock.acquire(timeout=left):
            raise self.missed()
        try:
            yield
        finally:
            lock.release()
