"""Demands made by rule, from a seed: traffic matrices, and flows that come and go.

Rates are relative, with a mean of about 1 bit/s; `gomr.load` scales them to what a network can
carry.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from gomr.columns import DemandColumns
from gomr.errors import InvalidProblem
from gomr.problem import Demand

RateOf = Callable[[str, str], float]
"""The relative rate of a flow between two nodes; may draw it."""

BIMODAL_SMALL = (0.8, 400.0, 100.0)
BIMODAL_LARGE = (0.2, 800.0, 100.0)
"""Share of the flows, mean and standard deviation of the two normal distributions that `bimodal` mixes."""


def gravity(nodes: Sequence[str], rng: random.Random) -> RateOf:
    """Return rates proportional to the product of the ends' masses, which are drawn exponentially.

    M. Roughan, "Simplifying the Synthesis of Internet Traffic Matrices", ACM CCR 35(5), 2005.
    """
    masses = {node: rng.expovariate(1.0) for node in nodes}
    return lambda source, destination: masses[source] * masses[destination]


def uniform(nodes: Sequence[str], rng: random.Random) -> RateOf:
    """Return rates drawn evenly between 0 and twice the mean, whatever the ends."""
    del nodes
    return lambda *_: 2.0 * (1.0 - rng.random())


def bimodal(nodes: Sequence[str], rng: random.Random) -> RateOf:
    """Return rates of many small and few large flows: a mixture of two normal distributions.

    A. Medina et al., "Traffic Matrix Estimation: Existing Techniques and New Directions", SIGCOMM 2002.
    """
    del nodes
    mean = sum(share * mode for share, mode, _ in (BIMODAL_SMALL, BIMODAL_LARGE))

    def draw(*ends: str) -> float:
        del ends
        _, mode, spread = BIMODAL_LARGE if rng.random() < BIMODAL_LARGE[0] else BIMODAL_SMALL
        rate = 0.0
        while rate <= 0:
            rate = rng.gauss(mode, spread)
        return rate / mean

    return draw


MODELS: Mapping[str, Callable[[Sequence[str], random.Random], RateOf]] = {
    "gravity": gravity,
    "uniform": uniform,
    "bimodal": bimodal,
}
"""How the rates of flows are drawn, by name."""


class Traffic:
    """Flows between nodes by a model; the same arguments give the same flows on every machine.

    Args:
        model: A name in `MODELS`.
        nodes: Where flows begin and end, at least two.
        seed: Of the random numbers.

    Raises:
        InvalidProblem: There is no such model, or there are fewer than two nodes.
    """

    def __init__(self, model: str, nodes: Sequence[str], seed: int) -> None:
        if model not in MODELS:
            raise InvalidProblem("demands", f"{model!r} is not one of {', '.join(MODELS)}")
        if len(nodes) < 2:
            raise InvalidProblem("demands", f"flows need two nodes to run between, not {len(nodes)}")
        self._nodes = tuple(nodes)
        self._rng = random.Random(seed)
        self._rate_of = MODELS[model](self._nodes, self._rng)

    def flows(self, count: int) -> tuple[Demand, ...]:
        """Return flows f1, f2, ... between pairs of nodes drawn evenly.

        No ordered pair comes twice before all have come, so n (n - 1) flows are a full traffic matrix.

        Raises:
            InvalidProblem: The count is not at least 1.
        """
        if count < 1:
            raise InvalidProblem("flows", f"must be at least 1, not {count}")
        pairs = len(self._nodes) * (len(self._nodes) - 1)
        numbers: list[int] = []
        while len(numbers) < count:
            numbers += self._rng.sample(range(pairs), min(pairs, count - len(numbers)))
        return tuple(self._demand(f"f{index}", number) for index, number in enumerate(numbers, start=1))

    def flow(self, name: str) -> Demand:
        """Return one more flow, between any pair."""
        return self._demand(name, self._rng.randrange(len(self._nodes) * (len(self._nodes) - 1)))

    def _demand(self, name: str, pair: int) -> Demand:
        source, destination = divmod(pair, len(self._nodes) - 1)
        destination += destination >= source  # a flow has two ends
        ends = self._nodes[source], self._nodes[destination]
        return Demand(name, *ends, self._rate_of(*ends))


@overload
def scaled(demands: DemandColumns, factor: float) -> DemandColumns: ...
@overload
def scaled(demands: Iterable[Demand], factor: float) -> DemandColumns | tuple[Demand, ...]: ...
def scaled(demands: Iterable[Demand], factor: float) -> DemandColumns | tuple[Demand, ...]:
    """Return the demands with their rates multiplied."""
    if isinstance(demands, DemandColumns):
        return demands if factor == 1 else demands.scaled(factor)
    if factor == 1:
        return tuple(demands)
    return tuple(replace(demand, rate_bps=demand.rate_bps * factor) for demand in demands)


@dataclass(frozen=True)
class FlowEvent:
    """A flow comes or goes.

    Attributes:
        time_s: When, from the start.
        arrives: Whether it comes.
        demand: The flow.
    """

    time_s: float
    arrives: bool
    demand: Demand


def poisson_events(
    running: Sequence[Demand],
    arriving: Callable[[str], Demand],
    rng: random.Random,
    mean_holding_s: float = 60.0,
) -> Iterator[FlowEvent]:
    """Yield, without end, flows that arrive as a Poisson process and stay for exponential times.

    The arrival rate is the one at which as many flows run on average as do at the start (Little's law).

    Args:
        running: The flows at the start, at least one.
        arriving: Makes a flow with an id; ids are a1, a2, ...
        rng: Draws the times.
        mean_holding_s: How long a flow stays on average.

    Raises:
        InvalidProblem: No flow runs, or the time is not above 0.
    """
    if not running:
        raise InvalidProblem("demands", "are none; events need flows to begin with")
    if not mean_holding_s > 0:
        raise InvalidProblem("mean_holding_s", f"must be above 0, not {mean_holding_s}")
    return _events(running, arriving, rng, mean_holding_s)


def _events(
    running: Sequence[Demand], arriving: Callable[[str], Demand], rng: random.Random, mean_holding_s: float
) -> Iterator[FlowEvent]:
    leaving_rate, arrival_rate = 1.0 / mean_holding_s, len(running) / mean_holding_s
    # The number settles ties, since demands have no order. An exponential time has no memory: it does not
    # matter how long the flows have been running.
    departures = [(rng.expovariate(leaving_rate), number, demand) for number, demand in enumerate(running)]
    heapq.heapify(departures)
    now_s = 0.0
    for number in itertools.count(1):
        now_s += rng.expovariate(arrival_rate)
        while departures and departures[0][0] <= now_s:
            time_s, _, demand = heapq.heappop(departures)
            yield FlowEvent(time_s, False, demand)
        demand = arriving(f"a{number}")
        yield FlowEvent(now_s, True, demand)
        until_s = now_s + rng.expovariate(leaving_rate)
        heapq.heappush(departures, (until_s, len(running) + number, demand))
