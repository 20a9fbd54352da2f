"""The magnitudes of rates that an engine over HiGHS holds side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gomr.engines.time_budget import OutOfTime
from gomr.errors import SolverError
from gomr.problem import Problem

_LARGEST_RATIO = 1e14
"""Largest useful rate over smallest. HiGHS works to 1e-10 of its unit, and a unit of its own for each
magnitude reaches a little further; beyond that, small demands vanish and bounds are wrong."""


_UNRELIABLE_RATIO = 1e6
"""From here on HiGHS may call a problem infeasible that is not."""


@contextmanager
def within_span(problem: Problem, engine: str) -> Iterator[None]:
    """Refuse rates that are further apart than HiGHS can tell; say where they may be why the block failed.

    Raises:
        SolverError: They are, or the block failed.
    """
    useful_bps = [problem.useful_capacity_bps(edge) for edge in problem.edges]
    useful_bps += [problem.useful_rate_bps(demand) for demand in problem.demands]
    above_bps = [rate_bps for rate_bps in useful_bps if rate_bps > 0]
    least_bps, most_bps = min(above_bps, default=1.0), max(above_bps, default=1.0)
    if most_bps > _LARGEST_RATIO * least_bps:
        raise SolverError(
            engine,
            f"rates of {least_bps:g} and {most_bps:g} bit/s are too far apart for its arithmetic; "
            "use the engine native",
        )
    try:
        yield
    except SolverError as error:
        if most_bps <= _UNRELIABLE_RATIO * least_bps or isinstance(error, OutOfTime):
            raise
        raise SolverError(
            engine,
            f"{error.reason}, which may be wrong: rates of {least_bps:g} and {most_bps:g} bit/s are far "
            "apart for its arithmetic; use the engine native",
            error.state,
        ) from error
