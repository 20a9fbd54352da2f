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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from gomr._native import Engine, InvalidInput, NotSolved, Summary, TimeIsUp
from gomr.columns import DemandColumns, Floats
from gomr.demands import scaled
from gomr.engines import regular
from gomr.engines.native import engine as native
from gomr.engines.native.network import NativeNetwork, finite_bps
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.errors import InvalidProblem, SolverError
from gomr.objectives import PLAIN
from gomr.problem import Demand, Problem
from gomr.solving import without_local

TOLERANCE = 1e-9
"""Of the load that is reached, relative."""
_MAX_STEPS = 100
_FIRST_GUESS_OF_SHORTEST = 2.0
"""The first guess, in what the shortest paths alone can carry; below the root it is doubled."""
_FIRST_GUESS_OF_FITTING = 1.2
"""The first guess where it is known what just fits, in that factor times the load: the root is above that."""
_FEW_DEMANDS = 4
"""For each node; of so few a programme over paths, raised together, is faster than steps."""
_MAX_LOAD_AT_ONCE = 1.5
"""Up to this load a single programme is faster than steps, whatever the demands."""


@dataclass(frozen=True)
class LoadFactor:
    """A factor that brings demands to a load.

    Attributes:
        factor: The factor. Where the time was up, the largest one known to lead to no more than the load.
        most: The factor is not above this.
        timed_out: Whether the time limit came first.
    """

    factor: float
    most: float
    timed_out: bool = False

    @property
    def gap(self) -> float:
        """By what share of `most` the factor may be too small."""
        return max(0.0, 1 - self.factor / self.most) if self.timed_out else 0.0


def at_load(problem: Problem, load: float, *, time_limit_s: float | None = None) -> Problem:
    """Return the problem with all rates multiplied by the same factor, so that it has this load.

    Args:
        problem: Its rates count as relative ones.
        load: As the module defines it, above 0.
        time_limit_s: Seconds that it may take; None for no limit. Where they are not enough, the load is at
            most the one asked for (`find_load_factor` says how far below it can be).

    Raises:
        InvalidProblem: The load is not a number above 0, no flow asks for anything, or no factor leads to it,
            since flows without a path are too large a part.
        SolverError: The engine failed.
    """
    factor = load_factor(problem, load, time_limit_s=time_limit_s)
    return replace(problem, demands=scaled(problem.demands, factor))


def rates_of(demands: Sequence[Demand]) -> Floats:
    """Return the rate that each demand asks for, bit/s."""
    if isinstance(demands, DemandColumns):
        return demands.rate_bps
    return np.array([demand.rate_bps for demand in demands], dtype=np.float64)


def load_factor(problem: Problem, load: float, *, time_limit_s: float | None = None) -> float:
    """Return the factor of `at_load`."""
    return find_load_factor(problem, load, time_limit_s=time_limit_s).factor


def find_load_factor(problem: Problem, load: float, *, time_limit_s: float | None = None) -> LoadFactor:
    """Return the factor of `at_load`, and where the time was up, what is proved of it.

    Far above 1, large matrices take more steps than the search may, which counts as a time that is up.

    The factor is the optimum of a linear programme of its own (`gomr._native.Network.max_concurrent`), with
    the demands of a source routed together. High loads of few demands, demands with limits on their paths,
    and many demands on links that are alike, are solved for step by step instead: with A(s) the most that is
    admitted of s times the demands, and W their sum, it finds the s > 0 where load A(s) = s W by Newton's
    method. A is concave and made of straight pieces, a + b s on each, with a the sum of capacities times
    prices: so the method ends after a few steps.
    """
    if not (math.isfinite(load) and load > 0):
        raise InvalidProblem("load", f"must be a number above 0, not {load}")
    routed = without_local(problem)
    total_bps = math.fsum(rates_of(routed.demands))
    if total_bps == 0:
        raise InvalidProblem(
            "demands", "ask for nothing between two nodes, so they cannot be scaled to a load"
        )
    if not any(edge.capacity_bps > 0 for edge in routed.edges):
        raise _unreachable(load)
    open_bps = [edge.capacity_bps for edge in routed.edges if 0 < edge.capacity_bps < math.inf]
    if not open_bps:
        raise InvalidProblem("edges", "none has a limit, so that everything fits; give capacities")
    curve = _Admission(routed, time_limit_s)
    # All demands together fit on the smallest edge: so far nothing is ever lost.
    search = _Search(curve, max(load, 1.0), total_bps, least=min(open_bps) / total_bps)
    part = min(load, 1.0)
    try:
        root = _root(curve, search, max(open_bps) / total_bps)
    except OutOfTime:
        return LoadFactor(search.least * part, search.most * part, timed_out=True)
    return LoadFactor(root * part, root * part)


def _root(curve: _Admission, search: _Search, largest: float) -> float:
    """Return the factor that is searched for; with `largest` demands ask for as much as the largest edge."""
    by_symmetry = curve.factor_by_symmetry() if search.load == 1 else None
    if by_symmetry is not None:
        return by_symmetry
    if curve.starts_fresh:
        with curve.half_of_the_time():
            return _by_steps(curve, search, largest)
    is_at_once = search.load <= _MAX_LOAD_AT_ONCE or curve.is_matrix
    at_once = curve.largest_factor(search.load if is_at_once else 1.0)
    if at_once is not None and is_at_once:
        if at_once.most == 0:
            raise _unreachable(search.load)
        search.least, search.most = max(search.least, at_once.factor), min(search.most, at_once.most)
        if at_once.timed_out:
            raise curve.out_of_time()
        return at_once.factor
    if at_once is not None and at_once.factor > 0:
        search.least = max(search.least, search.load * at_once.factor * (1 - TOLERANCE))
        return search.root(_FIRST_GUESS_OF_FITTING * search.load * at_once.factor)
    return _by_steps(curve, search, largest)


def _by_steps(curve: _Admission, search: _Search, largest: float) -> float:
    shortest = curve.factor_of_shortest_paths(largest)
    search.least = max(search.least, shortest * (1 - TOLERANCE))
    return search.root(_FIRST_GUESS_OF_SHORTEST * search.load * shortest)


@dataclass
class _Search:
    """The search for the largest factor with load A(factor) = factor total_bps, for a load of at least 1.

    Attributes:
        least: A factor that is known not to be too large.
        most: The factor is not above this.
    """

    curve: _Admission
    load: float
    total_bps: float
    least: float
    most: float = math.inf

    def root(self, factor: float) -> float:
        """Return it, from a first guess."""
        on_tangent = False
        for _ in range(_MAX_STEPS):
            fixed_bps, slope_bps = self.curve.tangent(factor)
            asked_bps = factor * self.total_bps
            is_priced = fixed_bps > TOLERANCE * asked_bps
            short_bps = asked_bps - self.load * (fixed_bps + slope_bps * factor)
            # At a load of 1 every smaller factor is a root too; tangents meet the line on the far side alone.
            if abs(short_bps) <= TOLERANCE * asked_bps and (self.load > 1 or is_priced or on_tangent):
                return factor
            fall_bps = self.total_bps - self.load * slope_bps
            on_tangent = fall_bps > TOLERANCE * self.total_bps
            if on_tangent and not is_priced:
                raise _unreachable(self.load)
            if short_bps <= 0:
                self.least = max(self.least, factor)
            factor = self.load * fixed_bps / fall_bps if on_tangent else 2 * factor
            if on_tangent:
                self.most = min(self.most, factor)
        reason = f"found no demands of a load of {self.load:g} in {_MAX_STEPS} steps"
        raise SolverError(native.NAME, reason)


def _unreachable(load: float) -> InvalidProblem:
    return InvalidProblem(
        "load", f"of {load:g} cannot be reached: too many of the demands have no path at all"
    )


class _Admission:
    """The most that is admitted of some demands, as a function of the factor that scales them.

    Attributes:
        is_matrix: Whether the demands of a source are routed together.
        starts_fresh: Whether steps are from scratch, and tried before all at once: with many demands on links
            that are alike nearly every pivot between bases is degenerate, while balanced rates need few.
    """

    def __init__(self, problem: Problem, time_limit_s: float | None) -> None:
        self._problem = problem
        self._limit_s = time_limit_s
        self._until_s = math.inf if time_limit_s is None else time.perf_counter() + time_limit_s
        self._rates_bps = rates_of(problem.demands)
        self._capacities_bps = [finite_bps(edge.capacity_bps) for edge in problem.edges]
        network = NativeNetwork(problem)
        self.is_matrix = native.is_matrix(problem, network)
        self._network = network.network
        self._last: Engine | None = None
        many = len(problem.demands) > _FEW_DEMANDS * network.nodes.count
        self.starts_fresh = many and regular.are_links_alike(problem)
        try:
            self._flows = network.flows(problem.demands)
        except InvalidInput as error:
            raise native.refusal(error) from error

    def _engine(self) -> Engine:
        if self._last is None or self.starts_fresh:
            self._last = Engine(self._network, self._flows, PLAIN.name, threads=native.threads())
        return self._last

    def largest_factor(self, load: float) -> LoadFactor | None:
        """Return the factor for a load of at least 1; None where it has to be found step by step."""
        if load != 1 or not regular.suits(self._problem):
            return self._concurrent(load)

        def by_pivots(most_looks: int | None) -> tuple[LoadFactor | None, bool]:
            found = self._concurrent(load, most_looks)
            return found, found is None or not found.timed_out

        def by_interior_point(found: LoadFactor | None) -> LoadFactor | None:
            budget = TimeBudget(native.NAME, self._left_s())
            factor, most = regular.largest_factor(self._problem, found.most if found else math.inf, budget)
            return LoadFactor(factor, most, timed_out=most > factor * (1 + TOLERANCE))

        return regular.raced(self._problem, by_pivots, by_interior_point)

    def _concurrent(self, load: float, most_looks: int | None = None) -> LoadFactor | None:
        with self._failures():
            found = self._network.max_concurrent(
                self._flows,
                load,
                threads=native.threads(),
                time_limit_s=self._left_s(),
                most_looks=most_looks,
            )
        if found is None:
            return None
        factor, most, is_largest = found
        return LoadFactor(factor, most, timed_out=not is_largest)

    def factor_by_symmetry(self) -> float | None:
        """Return the factor for a load of 1 where edges and demands fall into few classes; None elsewhere."""
        with self._failures():
            found = self._network.max_concurrent_by_symmetry(self._flows, time_limit_s=self._left_s())
        return None if found is None or found[0] == 0 else found[0]

    def factor_of_shortest_paths(self, factor: float) -> float:
        """Return the factor at which the first edge is full if all takes the way of least delay.

        Args:
            factor: Where to begin: with it the demands ask for as much as the largest edge carries.
        """
        for _ in range(_MAX_STEPS):
            _, allocation = self._solved(factor)
            if allocation.max_utilisation == 0.0:
                break
            if allocation.max_utilisation < 1.0:
                return factor / allocation.max_utilisation
            factor /= 16
        return factor

    def tangent(self, factor: float) -> tuple[float, float]:
        """Return a and b of the straight piece a + b s at s = factor, in bit/s."""
        engine, summary = self._solved(factor)
        prices = zip(self._capacities_bps, engine.prices(), strict=True)
        fixed_bps = math.fsum(capacity_bps * price for capacity_bps, price in prices)
        return fixed_bps, (summary.admitted_bps - fixed_bps) / factor

    def _solved(self, factor: float) -> tuple[Engine, Summary]:
        with self._failures():
            engine = self._engine()
            engine.change_rates((self._rates_bps * factor).tobytes())
            return engine, engine.solve(time_limit_s=self._left_s())

    def _left_s(self) -> float | None:
        return None if self._limit_s is None else max(0.0, self._until_s - time.perf_counter())

    @contextmanager
    def half_of_the_time(self) -> Iterator[None]:
        """Let what is done here take half of the time that is left, and end without an answer after that."""
        until_s, now_s = self._until_s, time.perf_counter()
        self._until_s = now_s + 0.5 * (until_s - now_s)
        try:
            yield
        except OutOfTime:
            pass
        finally:
            self._until_s = until_s

    def out_of_time(self) -> OutOfTime:
        """Return the error for a search that the time limit ends."""
        return OutOfTime(native.NAME, "the time is up before the demands have their load")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except InvalidInput as error:
            raise native.refusal(error) from error
        except TimeIsUp as error:
            raise self.out_of_time() from error
        except NotSolved as error:
            raise native.failure(error, self._limit_s) from error
