"""What a sweep runs: one network, one kind of demands, and a point for each seed, load and protocol."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from experiments.model.data import Data

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Metric = Literal["delay", "hops"]


class Conditions(Data):
    """What all points of a sweep have in common; two sweeps with the same ones can be one.

    Attributes:
        network: As `topologies.routable.load_routable` takes it.
        demands: A model of `gomr.demands`, or the path of a file.
        flows: How many flows to generate; None: the default, or what a file says.
        capacity_bps: Rate of the links of a file that gives none; None: the loader's.
        scale: Factor of all links' rates, which makes long runs short: the packets are fewer.
        queue_packets: Bound of the queues for which the network gives none.
        objective: Of the allocation.
        metric: What is shortest on default routes.
        warm_up_s: The measurement begins so long after the start.
        duration_s: Length of the measurement.
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
