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
        rest_s = self.rest_s
        return TimeLimit(None if rest_s is None else share * rest_s, self._clock)

    def left_s(self, stage: str) -> float | None:
        """Return the seconds left for a stage, None without a limit (SolverError: there are none)."""
        if self.is_up:
            reason = f"the time limit of {self._limit_s:g} s is used up before {stage}"
            raise SolverError("solve", f"{reason}; give more by --time-limit")
        return self.rest_s

    @property
    def rest_s(self) -> float | None:
        """The seconds that are left, at least 0; None without a limit."""
        if self._limit_s is None:
            return None
        return max(0.0, self._limit_s - (self._clock() - self._started_s))

    @property
    def is_up(self) -> bool:
        """Whether no time is left."""
        return self.rest_s == 0.0
