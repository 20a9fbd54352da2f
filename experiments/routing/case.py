"""What `mstcp-lab solve` solves: a network, its demands, and where further flows come from."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gomr import Demand, DemandColumns, Problem, from_network
from gomr.demands import MODELS, Traffic, scaled
from gomr.load import LoadFactor, find_load_factor

from experiments.errors import ScenarioError
from experiments.routing.all_pairs import ALL_PAIRS, AllPairs
from experiments.routing.formats.reading import Context, ReadDemands
from experiments.routing.formats.registry import read_demands
from experiments.routing.time_limit import TimeLimit
from topologies import Network
from topologies.routable import NodeNames, Routable

DEFAULT_FLOWS = 100
DEFAULT_LOAD = 1.0
GENERATED = (*MODELS, ALL_PAIRS)
"""Names of demands that are made, not read."""


@dataclass(frozen=True)
class RoutingCase:
    """A problem that is ready to be built; `arriving` makes a further flow like its demands, with an id.

    Demands are described in words; notes are sentences on what was assumed or left out of the files.
    """

    network: Network
    demands: Sequence[Demand]
    arriving: Callable[[str], Demand]
    described: str
    notes: tuple[str, ...] = ()

    def problem(self) -> Problem:
        """Return the problem."""
        return from_network(self.network, self.demands)


def ends_of(network: Network) -> tuple[str, ...]:
    """Return where flows begin and end: at the hosts if there are some, else at the switches."""
    return network.hosts or network.switches


def make_case(
    given: Network | Routable,
    demands: str,
    *,
    flows: int | None,
    load: float | None,
    seed: int,
    max_paths: int | None = None,
    ack_ratio: float = 0.0,
    rate_unit_bps: float | None = None,
    matrix: int = 1,
    time_limit: TimeLimit | None = None,
) -> RoutingCase:
    """Return the case of some demands on a network.

    Demands are a name in `GENERATED`, of which `flows` are made by the seed, or the path of a file
    (`experiments.routing.formats`), whose rates without a unit count in `rate_unit_bps`, and of whose
    matrices `matrix` is read, counted from 1. `load` is as `gomr.load` defines it; None leaves a file's rates
    as they are. `max_paths` and `ack_ratio` are of every flow that has none of its own.

    Raises:
        ScenarioError: The file or an argument cannot be used.
        InvalidProblem: The demands cannot be made or scaled.
        SolverError: The time is up, or the engine failed.
    """
    time_limit = time_limit or TimeLimit(None)
    if isinstance(given, Network):
        given = Routable(given, NodeNames(tuple(node.name for node in given.nodes)))
    routable, network = given, given.network
    notes: tuple[str, ...] = ()
    made: Sequence[Demand]
    if demands in GENERATED:
        made, source = _generated(demands, ends_of(network), flows, seed)
        load = DEFAULT_LOAD if load is None else load
    else:
        if flows is not None:
            raise ScenarioError("--flows", "", f"does not go with a file: {demands} says how many there are")
        context = Context(
            routable.nodes,
            ends_of(network),
            rate_unit_bps,
            routable.rate_unit_bps,
            is_scaled=load is not None,
            matrix=matrix,
        )
        read = read_demands(Path(demands), context, ", ".join(GENERATED))
        made, notes = _without_local(read)
        rng, listed = random.Random(seed), made

        def source(name: str) -> Demand:
            """Return a copy of one of the file's flows."""
            return replace(rng.choice(listed), id=name)

    def limited(demand: Demand) -> Demand:
        return replace(
            demand,
            max_paths=max_paths if demand.max_paths is None else demand.max_paths,
            ack_ratio=demand.ack_ratio or ack_ratio,
        )

    if max_paths is not None or ack_ratio:
        made = tuple(map(limited, made))
    factor = 1.0
    if load is not None:
        problem = from_network(network, made)
        left_s = time_limit.left_s("the demands are scaled to the load")
        # As much again for the solve.
        load_factor = find_load_factor(problem, load, time_limit_s=None if left_s is None else left_s / 2)
        factor = load_factor.factor
        notes = notes + _shortfall(load_factor, load)

    def arriving(name: str) -> Demand:
        return scaled([limited(source(name))], factor)[0]

    described = f"{len(made)} flows ({Path(demands).name}" + ("" if load is None else f", load {load:g}")
    described += f", seed {seed})" if demands in GENERATED else ")"
    return RoutingCase(network, scaled(made, factor), arriving, described, routable.notes + notes)


def _without_local(read: ReadDemands) -> tuple[Sequence[Demand], tuple[str, ...]]:
    """Return the demands that need the network, and the notes on all."""
    if isinstance(read.demands, DemandColumns):
        return read.demands, read.notes  # a matrix's diagonal is left out where it is read
    made = tuple(demand for demand in read.demands if not demand.is_local)
    local = len(read.demands) - len(made)
    said = (f"{local} demands end where they begin, and are left out",) if local else ()
    return made, read.notes + said


def _shortfall(load_factor: LoadFactor, load: float) -> tuple[str, ...]:
    if not load_factor.timed_out:
        return ()
    said = f"the time was up before the demands had a load of {load:g}: theirs is at most that"
    if math.isfinite(load_factor.most):
        said += f", and rates {load_factor.most / load_factor.factor:.3g} times as large would be too much"
    return (said,)


def _generated(
    demands: str, ends: tuple[str, ...], flows: int | None, seed: int
) -> tuple[Sequence[Demand], Callable[[str], Demand]]:
    if demands == ALL_PAIRS:
        if flows is not None:
            pairs = len(ends) * (len(ends) - 1)
            raise ScenarioError(
                "--flows", "", f"does not go with {ALL_PAIRS}: there are {pairs} pairs of nodes"
            )
        matrix = AllPairs(ends, seed)
        return matrix.flows(), matrix.flow
    traffic = Traffic(demands, ends, seed)
    return traffic.flows(DEFAULT_FLOWS if flows is None else flows), traffic.flow
