"""What `mstcp-lab solve` solves: a network, its demands, and where further flows come from."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import topologies
from controller.gomr import Demand, Problem, from_network
from controller.gomr.demands import MODELS, Traffic, scaled
from controller.gomr.load import load_factor
from experiments.errors import ScenarioError
from experiments.routing.demand_file import read_demands
from topologies import Network

DEFAULT_FLOWS = 100
DEFAULT_LOAD = 1.0


@dataclass(frozen=True)
class Case:
    """A problem that is ready to be built.

    Attributes:
        network: The network.
        demands: Its flows.
        arriving: Makes a further flow like them, with an id.
        described: The demands in words.
    """

    network: Network
    demands: tuple[Demand, ...]
    arriving: Callable[[str], Demand]
    described: str

    def problem(self) -> Problem:
        """Return the problem."""
        return from_network(self.network, self.demands)


def load_network(spec: str, capacity_bps: float | None) -> Network:
    """Return a network; the nodes of a GraphML file get no hosts, flows run between them.

    Args:
        spec: As `topologies.load` takes it.
        capacity_bps: Rate of the links of a GraphML file that gives them none; None for the loader's default.

    Raises:
        TopologyError: It cannot be used.
        ScenarioError: There is a capacity, but nothing that lacks one.
    """
    if Path(spec).suffix.lower() == ".graphml":
        # networkx is slow to import, and nothing else here needs it.
        from topologies.graphml_loader import DEFAULT_RATE_BPS, load_graphml

        rate_bps = DEFAULT_RATE_BPS if capacity_bps is None else capacity_bps
        return load_graphml(Path(spec), hosts="none", default_rate_bps=rate_bps)
    network = topologies.load(spec)
    if capacity_bps is not None:
        reason = "is for links of a GraphML file that have no rate; here every link has one"
        raise ScenarioError("--capacity", "", reason)
    return network


def ends_of(network: Network) -> tuple[str, ...]:
    """Return where flows begin and end: at the hosts if there are some, else at the switches."""
    return network.hosts or network.switches


def make_case(
    network: Network,
    demands: str,
    *,
    flows: int | None,
    load: float | None,
    seed: int,
    max_paths: int | None = None,
    ack_ratio: float = 0.0,
) -> Case:
    """Return the case of some demands on a network.

    Args:
        network: The network.
        demands: A name in `MODELS`, or the path of a CSV file (`experiments.routing.demand_file`).
        flows: How many to generate; a file says so itself.
        load: As `controller.gomr.load` defines it; None leaves a file's rates as they are.
        seed: Of what is generated.
        max_paths: Limit for every flow that has none of its own.
        ack_ratio: As `Demand` has it, of every flow that has none of its own.

    Raises:
        ScenarioError: The file or an argument cannot be used.
        InvalidProblem: The demands cannot be made or scaled.
    """
    source: Callable[[str], Demand]
    if demands in MODELS:
        traffic = Traffic(demands, ends_of(network), seed)
        made = traffic.flows(DEFAULT_FLOWS if flows is None else flows)
        load = DEFAULT_LOAD if load is None else load
        source = traffic.flow
    else:
        if flows is not None:
            raise ScenarioError("--flows", "", f"does not go with a file: {demands} says how many there are")
        made = read_demands(Path(demands), ends_of(network))
        source = _resampling(made, random.Random(seed))

    def limited(demand: Demand) -> Demand:
        return replace(
            demand,
            max_paths=max_paths if demand.max_paths is None else demand.max_paths,
            ack_ratio=demand.ack_ratio or ack_ratio,
        )

    made = tuple(map(limited, made))
    factor = 1.0 if load is None else load_factor(from_network(network, made), load)

    def arriving(name: str) -> Demand:
        return scaled([limited(source(name))], factor)[0]

    described = f"{len(made)} flows ({Path(demands).name}" + ("" if load is None else f", load {load:g}")
    described += f", seed {seed})" if demands in MODELS else ")"
    return Case(network, scaled(made, factor), arriving, described)


def _resampling(demands: tuple[Demand, ...], rng: random.Random) -> Callable[[str], Demand]:
    """Return what makes flows like those of a file: each a copy of one of them."""
    return lambda name: replace(rng.choice(demands), id=name)
