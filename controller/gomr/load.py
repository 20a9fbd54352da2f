"""The load of demands on a network, and demands scaled to a load.

Load is what is asked for over what the network can carry:

    load = requested / admitted          where not all can be admitted (above 1)
    load = 1 / s                         where all can: demands s times as large still just fit (at most 1)

so at a load of 1 all demands just fit (the maximum concurrent flow), at 1.1 a share of 1 / 1.1 = 91 % is
admitted, and at 0.5 there is room for twice as much. Admitted is the most that any allocation can; limits on
numbers of paths and disjointness do not count. Flows that stay at their source are left out of the account.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gomr_native import InvalidInput, NotSolved

from controller.errors import InvalidProblem, SolverError
from controller.gomr.demands import scaled
from controller.gomr.engines.native import engine as native
from controller.gomr.engines.native.network import NativeNetwork
from controller.gomr.problem import Problem
from controller.gomr.solving import without_local

TOLERANCE = 1e-9
"""Of the load that is reached, relative."""
_MOST_STEPS = 100
_FIRST_GUESS = 10.0
"""Total of the first guess, in largest capacities."""


def at_load(problem: Problem, load: float) -> Problem:
    """Return the problem with all rates multiplied by the same factor, so that it has this load.

    Args:
        problem: Its rates count as relative ones.
        load: As the module defines it, above 0.

    Raises:
        InvalidProblem: The load is not a number above 0, no flow asks for anything, or no factor leads to it,
            since flows without a path are too large a part.
        SolverError: The engine failed.
    """
    factor = load_factor(problem, load)
    return replace(problem, demands=scaled(problem.demands, factor))


def load_factor(problem: Problem, load: float) -> float:
    """Return the factor of `at_load`.

    With A(s) the most that is admitted of s times the demands, and W their sum, it finds the s > 0 where
    load A(s) = s W by Newton's method. A is concave and made of straight pieces, a + b s on each, with a the
    sum of capacities times prices: so the method ends after a few steps.
    """
    if not (math.isfinite(load) and load > 0):
        raise InvalidProblem("load", f"must be a number above 0, not {load}")
    routed = without_local(problem)
    total_bps = math.fsum(demand.rate_bps for demand in routed.demands)
    if total_bps == 0:
        raise InvalidProblem(
            "demands", "ask for nothing between two nodes, so they cannot be scaled to a load"
        )
    largest_bps = max(edge.capacity_bps for edge in routed.edges)
    if largest_bps == 0:
        raise _unreachable(load)
    guess = _FIRST_GUESS * largest_bps / total_bps
    return _root(_Admission(routed), max(load, 1.0), total_bps, guess) * min(load, 1.0)


def _root(curve: _Admission, load: float, total_bps: float, factor: float) -> float:
    """Return the largest factor with load A(factor) = factor total_bps, for a load of at least 1."""
    on_tangent = False
    for _ in range(_MOST_STEPS):
        fixed_bps, slope_bps = curve.tangent(factor)
        asked_bps = factor * total_bps
        is_priced = fixed_bps > TOLERANCE * asked_bps
        short_bps = asked_bps - load * (fixed_bps + slope_bps * factor)
        # At a load of 1 every smaller factor is a root too; tangents meet the line on the far side alone.
        if abs(short_bps) <= TOLERANCE * asked_bps and (load > 1 or is_priced or on_tangent):
            return factor
        fall_bps = total_bps - load * slope_bps
        on_tangent = fall_bps > TOLERANCE * total_bps
        if on_tangent and not is_priced:
            raise _unreachable(load)
        factor = load * fixed_bps / fall_bps if on_tangent else 2 * factor
    raise SolverError(native.NAME, f"found no demands of a load of {load:g} in {_MOST_STEPS} steps")


def _unreachable(load: float) -> InvalidProblem:
    return InvalidProblem(
        "load", f"of {load:g} cannot be reached: too many of the demands have no path at all"
    )


class _Admission:
    """The most that is admitted of some demands, as a function of the factor that scales them."""

    def __init__(self, problem: Problem) -> None:
        network = NativeNetwork(problem)
        self._demands = problem.demands
        self._capacities_bps = [edge.capacity_bps for edge in problem.edges]
        try:
            self._engine = native.start(network, problem, "max_throughput_min_delay")
        except InvalidInput as error:
            raise native.refusal(error) from error

    def tangent(self, factor: float) -> tuple[float, float]:
        """Return a and b of the straight piece a + b s at s = factor, in bit/s."""
        try:
            for number, demand in enumerate(self._demands):
                self._engine.change_rate(number, demand.rate_bps * factor)
            admitted_bps = self._engine.solve().admitted_bps
        except InvalidInput as error:
            raise native.refusal(error) from error
        except NotSolved as error:
            raise native.failure(error, None) from error
        prices = zip(self._capacities_bps, self._engine.prices(), strict=True)
        fixed_bps = math.fsum(capacity_bps * price for capacity_bps, price in prices)
        return fixed_bps, (admitted_bps - fixed_bps) / factor
