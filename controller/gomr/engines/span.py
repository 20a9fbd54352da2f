"""The magnitudes of rates that an engine over HiGHS holds side by side."""

from __future__ import annotations

from controller.errors import SolverError
from controller.gomr.problem import Problem

_WIDEST = 1e14
"""Largest useful rate over smallest. HiGHS works to 1e-10 of its unit, and a unit of its own for each
magnitude reaches a little further; beyond that, small demands vanish and bounds are wrong."""


def check_span(problem: Problem, engine: str) -> None:
    """Refuse a problem whose rates are further apart than HiGHS can tell.

    Raises:
        SolverError: They are.
    """
    useful_bps = [problem.useful_capacity_bps(edge) for edge in problem.edges]
    useful_bps += [problem.useful_rate_bps(demand) for demand in problem.demands]
    above_bps = [rate_bps for rate_bps in useful_bps if rate_bps > 0]
    if above_bps and max(above_bps) > _WIDEST * min(above_bps):
        raise SolverError(
            engine,
            f"rates of {min(above_bps):g} and {max(above_bps):g} bit/s are too far apart for its arithmetic; "
            "use the engine native",
        )
