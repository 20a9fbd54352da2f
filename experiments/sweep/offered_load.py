"""What the flows of a point ask for, and what the optimum admits of it.

Loads and allocations count whole Ethernet frames and the acknowledgements on the way back; requests and
results are goodput. All protocols are asked for the same goodput.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future
from dataclasses import dataclass

from gomr import Demand
from gomr.solving import allocate

from controller.wire import Framing
from experiments.model.results import PathAllocation
from experiments.routing.case import make_case
from experiments.sweep.plan import Conditions
from topologies.check import check_symmetric
from topologies.formats.raw import ReadOptions
from topologies.model import Network
from topologies.routable import load_routable

MSS_BYTES = 1448
HEADER_BYTES = 66
"""Ethernet 14, IPv4 20, TCP with timestamps 32; an acknowledgement has no more."""
PACKETS_PER_ACK = 1
"""Applications read at once what they are sent: then Linux delays no acknowledgement."""
FRAMING = Framing(packet_bytes=MSS_BYTES + HEADER_BYTES, segment_overhead_bytes=HEADER_BYTES)
NEGLIGIBLE_SHARE = 1e-6
"""A path with less than this share of a flow's request is the solver's rounding, not a path."""
MIN_RATE_BPS = 1.0
"""The slowest application that the simulator has."""


@dataclass(frozen=True)
class OfferedFlow:
    """A flow: the goodput it asks for, and the paths that the optimum gives it, with theirs."""

    name: str
    src: str
    dst: str
    requested_bps: float
    paths: tuple[PathAllocation, ...]


class OfferedLoads:
    """The flows of each load and seed, from any number of threads: the last few are kept."""

    def __init__(self, conditions: Conditions, kept: int) -> None:
        """Load the network (TopologyError: it cannot be used, or not be simulated)."""
        self.conditions = conditions
        options = ReadOptions(default_rate_bps=conditions.capacity_bps)
        network = load_routable(conditions.network, options).network
        check_symmetric(network)
        self.network = scaled(network, conditions)
        self._kept = kept
        self._futures: dict[tuple[float, int], Future[tuple[OfferedFlow, ...]]] = {}
        self._lock = threading.Lock()

    def flows(self, load: float, seed: int) -> tuple[OfferedFlow, ...]:
        """Return the flows between two nodes, computed by the first thread that asks for them.

        Raises:
            ScenarioError, InvalidProblem: The demands cannot be made or scaled.
            SolverError: There is no allocation.
        """
        key = (load, seed)
        with self._lock:
            future = self._futures.get(key)
            ours = future is None
            if future is None:
                future = self._futures[key] = Future()
                for old in list(self._futures)[: -self._kept]:
                    del self._futures[old]
        if ours:
            try:
                future.set_result(self._compute(load, seed))
            except Exception as error:
                future.set_exception(error)
        return future.result()

    def _compute(self, load: float, seed: int) -> tuple[OfferedFlow, ...]:
        given = self.conditions
        ratio = FRAMING.ack_ratio(HEADER_BYTES, PACKETS_PER_ACK)
        case = make_case(
            self.network, given.demands, flows=given.flows, load=load, seed=seed, ack_ratio=ratio
        )
        paths = allocate(case.problem(), given.objective).paths
        return tuple(
            _offered(demand, [(path.nodes, path.rate_bps) for path in paths[demand.id]])
            for demand in case.demands
            if not demand.is_local
        )


def scaled(network: Network, conditions: Conditions) -> Network:
    """Return the network with the rates of a sweep, and queues where it gives none."""
    links = tuple(
        link.model_copy(
            update={
                "rate_bps": link.rate_bps * conditions.scale,
                "queue_packets": link.queue_packets or conditions.queue_packets,
            }
        )
        for link in network.links
    )
    return network.model_copy(update={"links": links})


def _offered(demand: Demand, path_rates: list[tuple[tuple[str, ...], float]]) -> OfferedFlow:
    """Return a demand (wire rates) as a flow (goodput)."""
    # A request must be met over several paths too, so it leaves room for their identifiers.
    requested_bps = FRAMING.goodput_bps(demand.rate_bps, streams=2)
    kept = [(nodes, bps) for nodes, bps in path_rates if bps > NEGLIGIBLE_SHARE * demand.rate_bps]
    goodput = [(nodes, FRAMING.goodput_bps(bps, len(kept))) for nodes, bps in kept]
    # What a single path saves by having no identifiers is not asked for.
    most = requested_bps / max(requested_bps, math.fsum(bps for _, bps in goodput))
    paths = tuple(PathAllocation(path=list(nodes), rate_bps=bps * most) for nodes, bps in goodput)
    return OfferedFlow(demand.id, demand.source, demand.destination, requested_bps, paths)
