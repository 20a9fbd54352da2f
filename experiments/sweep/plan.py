"""What a sweep runs: one network, one kind of demands, and a point for each seed, load and protocol."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from experiments.model.data import Data

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Metric = Literal["delay", "hops"]


class Conditions(Data):
    """What all points of a sweep have in common; two sweeps with the same ones can be one.

    The network is as `topologies.routable.load_routable` takes it, demands are a model of `gomr.demands` or a
    file. `capacity_bps` is that of links without one in a file; `scale` multiplies all links' rates, which
    makes long runs short; `queue_packets` bounds queues for which the network gives nothing. `metric` is what
    is shortest on default routes.
    """

    network: str
    demands: str = "gravity"
    flows: Annotated[int, Field(ge=1)] | None = None
    capacity_bps: Positive | None = None
    scale: Positive = 1.0
    queue_packets: Annotated[int, Field(ge=1)] = 100
    objective: str = "max_throughput_min_delay"
    metric: Metric = "delay"
    warm_up_s: Annotated[float, Field(ge=0, le=1e6)] = 2.0
    duration_s: Annotated[float, Field(gt=0, le=1e6)] = 10.0


class Point(Data):
    """One run."""

    seed: int
    load: Positive
    protocol: str

    @property
    def label(self) -> str:
        """The point in words."""
        return f"load {self.load:g}, {self.protocol}, seed {self.seed}"


class Sweep(Data):
    """Conditions, and the values that are gone through."""

    conditions: Conditions
    loads: tuple[Positive, ...]
    protocols: tuple[str, ...]
    seeds: Annotated[int, Field(ge=1)] = 1

    def points(self) -> list[Point]:
        """Return the points in order: a whole curve of each protocol with the first seed, then the next."""
        return [
            Point(seed=seed, load=load, protocol=protocol)
            for seed in range(1, self.seeds + 1)
            for load in self.loads
            for protocol in self.protocols
        ]
