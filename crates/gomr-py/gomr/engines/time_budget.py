"""The time that the programmes of one problem share, and how far they have come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from gomr.engines.result import EngineResult
from gomr.errors import SolverError
from gomr.problem import Problem


class OutOfTime(SolverError):
    """The time is up; what is known by then is in the budget (`TimeBudget.best`)."""


class TimeBudget:
    """Seconds that are left to an engine since it began, and its state for errors.

    Attributes:
        engine: Name of the engine, for errors.
        stage: What is being solved for, in words.
        clock: Seconds.
        best: The best answer so far within all limits, where there is one.
    """

    def __init__(
        self, engine: str, limit_s: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Start the clock, with `limit_s` seconds; None for no limit."""
        self.engine = engine
        self.stage = "throughput"
        self.clock = clock
        self.best: Callable[[], EngineResult] | None = None
        self._limit_s = limit_s
        self._started_s = clock()
        self._known: dict[str, float] = {"solves": 0}

    @property
    def has_limit(self) -> bool:
        """Whether the time is limited."""
        return self._limit_s is not None

    def rest_s(self) -> float | None:
        """Return the seconds that are left, at least 0 (None: no limit)."""
        if self._limit_s is None:
            return None
        return max(0.0, self._started_s + self._limit_s - self.clock())

    def left_s(self) -> float | None:
        """Return the seconds that are left (None: no limit); OutOfTime if there are none."""
        left_s = self.rest_s()
        if left_s == 0:
            raise self.out_of_time()
        return left_s

    def check(self) -> None:
        """Raise OutOfTime where no time is left."""
        self.left_s()

    def solved(self, **known: float) -> None:
        """Note that a programme is solved, and what is known since, by name."""
        self._known["solves"] += 1
        self._known |= known

    def learn(self, **known: float) -> None:
        """Note what is known by now, by name."""
        self._known |= known

    def keep(self, best: Callable[[], EngineResult]) -> None:
        """Note how to make the best answer so far; where there is no limit nobody asks for it."""
        if self._limit_s is not None:
            self.best = best

    def result_so_far(self, problem: Problem) -> EngineResult:
        """Return the best answer so far; nothing for nobody where there is none."""
        if self.best is None:
            return EngineResult({demand.id: () for demand in problem.demands}, complete=False)
        return replace(self.best(), complete=False)

    def out_of_time(self) -> OutOfTime:
        """Return the error for the end of the time."""
        reason = f"the time limit of {self._limit_s:g} s is used up before the optimum"
        return OutOfTime(self.engine, reason, {"stage": self.stage, **self._known})

    def failure(self, reason: str) -> SolverError:
        """Return the error that says how far the engine had come."""
        return SolverError(self.engine, reason, {"stage": self.stage, **self._known})
