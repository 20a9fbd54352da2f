"""One time limit for everything that `mstcp-lab solve` does."""

from __future__ import annotations

import time
from collections.abc import Callable

from gomr.errors import SolverError


class TimeLimit:
    """Seconds that are left, from the moment it is made."""

    def __init__(self, limit_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with `limit_s` seconds; None for no limit."""
        self._limit_s = limit_s
        self._clock = clock
        self._started_s = clock()

    def part(self, share: float) -> TimeLimit:
        """Return a limit for this share of the seconds that are left."""
        if self._limit_s is None:
            return TimeLimit(None, self._clock)
        return TimeLimit(share * (self.rest_s or 0.0), self._clock)

    def left_s(self, stage: str) -> float | None:
        """Return the seconds that are left; None without a limit.

        Args:
            stage: What is to be done with them, for the error.

        Raises:
            SolverError: There are none.
        """
        if self._limit_s is None:
            return None
        left_s = self._limit_s - (self._clock() - self._started_s)
        if left_s <= 0:
            reason = (
                f"the time limit of {self._limit_s:g} s is used up before {stage}; give more by --time-limit"
            )
            raise SolverError("solve", reason)
        return left_s

    @property
    def rest_s(self) -> float | None:
        """The seconds that are left, at least 0; None without a limit."""
        if self._limit_s is None:
            return None
        return max(0.0, self._limit_s - (self._clock() - self._started_s))

    @property
    def is_up(self) -> bool:
        """Whether no time is left."""
        return self._limit_s is not None and self._clock() - self._started_s >= self._limit_s
