"""The solver time that the programmes of one problem share, and how far they have come."""

from __future__ import annotations

import time
from collections.abc import Callable

from controller.errors import SolverError


class TimeBudget:
    """Seconds that are left to an engine, and its state for errors.

    Attributes:
        engine: Name of the engine, for errors.
        stage: What is being solved for, in words.
        clock: Seconds.
    """

    def __init__(
        self, engine: str, limit_s: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Start with `limit_s` seconds; None for no limit."""
        self.engine = engine
        self.stage = "throughput"
        self.clock = clock
        self._limit_s = limit_s
        self._spent_s = 0.0
        self._known: dict[str, float] = {"solves": 0}

    def left_s(self) -> float | None:
        """Return the seconds that are left (None: no limit); SolverError if there are none."""
        if self._limit_s is None:
            return None
        if self._spent_s >= self._limit_s:
            raise self.failure(f"the time limit of {self._limit_s:g} s is used up before the optimum")
        return self._limit_s - self._spent_s

    def spend(self, seconds: float) -> None:
        """Take away what a solver has used."""
        self._spent_s += seconds

    def solved(self, **known: float) -> None:
        """Note that a programme is solved, and what is known since, by name."""
        self._known["solves"] += 1
        self._known |= known

    def learn(self, **known: float) -> None:
        """Note what is known by now, by name."""
        self._known |= known

    def failure(self, reason: str) -> SolverError:
        """Return the error that says how far the engine had come."""
        return SolverError(self.engine, reason, {"stage": self.stage, **self._known})
