"""What an engine is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gomr.allocation import Rates
from gomr.objectives import Objective
from gomr.problem import Problem

if TYPE_CHECKING:
    from gomr.engines.assembly import NativeResult


@dataclass(frozen=True)
class Cut:
    """What stops some demands under `max_min`: edge prices under which they cannot all get more."""

    prices: Mapping[str, float]
    stopped: tuple[str, ...]


@dataclass(frozen=True)
class EngineResult:
    """What an engine finds.

    Attributes:
        rates: Paths and rates of every demand.
        prices: For each edge, what one more bit/s of it would add to the first objective. Missing ones count
            as 0.
        cuts: Under `max_min`: what stops each demand that does not get all it asks for.
        complete: Whether the engine came to its end; else these are the best rates by the end of its time.
        bound_bps: What the first objective of no allocation can exceed, where that is proved already; None
            where prices and cuts are to prove it.
        most_bps: A bound on the first objective that knows limits on paths; None where there is none.
        native: The same in arrays, where the compiled engine found it.
    """

    rates: Rates
    prices: Mapping[str, float] = field(default_factory=dict)
    cuts: tuple[Cut, ...] = ()
    complete: bool = True
    bound_bps: float | None = None
    most_bps: float | None = None
    native: NativeResult | None = None


def nothing(problem: Problem) -> EngineResult:
    """Return the answer for a network that can carry nothing."""
    every = tuple(demand.id for demand in problem.demands)
    return EngineResult(dict.fromkeys(every, ()), cuts=(Cut({}, every),))


Solver = Callable[[Problem, Objective, float | None], EngineResult]
"""Takes a problem, an objective, and the seconds of solver time it may take (None: no limit).

The problem has no demand that stays at its source; `max_paths` and `disjoint` are not the engine's business.
"""
