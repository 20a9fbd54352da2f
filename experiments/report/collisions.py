"""Flows that hashing sent over the same link, beside how many chance would.

Which links a flow takes stands in the evidence (ECMP). Chance is birthday arithmetic: each
switch on the way takes one of its equally short continuations, independently for each flow. On k equal
disjoint paths a flow shares its own with one of n - 1 others with probability 1 - (1 - 1/k)^(n - 1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from experiments.analysis.statistics import mean_of
from experiments.model.results import FlowResult, Results, RunResult
from experiments.report.summary import CaseSummary
from topologies import Network

Hops: TypeAlias = frozenset[tuple[str, str]]
"""Directed links between switches."""


@dataclass(frozen=True)
class Collisions:
    """How often a flow shared a link with another one, over all runs of a protocol and case.

    `alone_bps` and `shared_bps` are the mean goodputs of flows that did not share a link and of those that
    did, None where there were none.
    """

    case: str
    protocol: str
    runs: int
    flows: int
    shared: int
    expected: float
    alone_bps: float | None
    shared_bps: float | None

    @property
    def measured(self) -> float:
        """Share of the flows, over all runs, that met another one."""
        return self.shared / self.flows

    @property
    def deviation(self) -> float:
        """Standard deviation of `measured` if the runs are independent, and the flows of a run alike."""
        return math.sqrt(self.expected * (1 - self.expected) / self.runs)


def network_of(results: Results) -> Network | None:
    """Return the network of a document; None where it describes none."""
    try:
        return Network.model_validate(results.network)
    except ValidationError:
        return None


def collisions(summary: CaseSummary, network: Network) -> list[Collisions]:
    """Return the collisions of each protocol whose paths were seen, where flows had a choice."""
    by_protocol = (
        _of_protocol(summary.name, name, summary.usable(name), network) for name in summary.protocols
    )
    return [each for each in by_protocol if each is not None]


def _of_protocol(case: str, protocol: str, runs: Sequence[RunResult], network: Network) -> Collisions | None:
    met: list[tuple[FlowResult, bool]] = []
    for run in runs:
        taken = _taken(run)
        if taken is None:
            return None
        met += _meetings(run, taken, network)
    ends = [(flow.src, flow.dst) for flow in runs[0].flows] if runs else []
    expected = expected_share(network, ends)
    if not met or expected is None:
        return None
    return Collisions(
        case=case,
        protocol=protocol,
        runs=len(runs),
        flows=len(met),
        shared=sum(shares for _, shares in met),
        expected=expected,
        alone_bps=mean_of(flow.goodput_bps for flow, shares in met if not shares),
        shared_bps=mean_of(flow.goodput_bps for flow, shares in met if shares),
    )


def _taken(run: RunResult) -> dict[str, list[list[str]]] | None:
    """Return the paths of each flow; None where the protocol did not record them."""
    flows = {name: evidence.paths for name, evidence in run.evidence.flows.items() if not evidence.split_by}
    if not flows or not all(path.packets is not None for paths in flows.values() for path in paths):
        return None
    taken = {name: [path.path for path in paths] for name, paths in flows.items()}
    return taken if any(taken.values()) else None


def _meetings(
    run: RunResult, taken: Mapping[str, list[list[str]]], network: Network
) -> Iterator[tuple[FlowResult, bool]]:
    hops = {
        name: frozenset(itertools.chain.from_iterable(_inner(path, network) for path in paths))
        for name, paths in taken.items()
    }
    for flow in run.flows:
        others = (links for name, links in hops.items() if name != flow.flow)
        yield flow, any(hops.get(flow.flow, frozenset()) & links for links in others)


def expected_share(network: Network, ends: Sequence[tuple[str, str]]) -> float | None:
    """Return the probability that a flow shares a link between switches with another, mean over the flows.

    Returns:
        None where no flow has more than one shortest path.
    """
    ways = [_ways(network, src, dst) for src, dst in ends]
    if all(len(each) == 1 for each in ways):
        return None
    return math.fsum(_probability_of_meeting(ways, index) for index in range(len(ways))) / len(ways)


def _probability_of_meeting(ways: Sequence[Mapping[Hops, float]], index: int) -> float:
    alone = 0.0
    for hops, probability in ways[index].items():
        others = (way for number, way in enumerate(ways) if number != index)
        alone += probability * math.prod(
            math.fsum(share for other, share in way.items() if not hops & other) for way in others
        )
    return 1 - alone


def _ways(network: Network, src: str, dst: str) -> dict[Hops, float]:
    """Return the shortest paths by delay with the probability that hop by hop choices take them."""
    # networkx is slow to import, and every command imports the terminal's tables.
    import networkx as nx

    graph = nx.DiGraph()
    # In whole nanoseconds, as equal delays have to be equal after adding.
    graph.add_weighted_edges_from(
        ((arc.tail, arc.head, round(arc.delay_s * 1e9)) for arc in network.arcs()), weight="delay_ns"
    )
    paths = list(nx.all_shortest_paths(graph, src, dst, weight="delay_ns"))
    onwards: dict[str, set[str]] = {}
    for path in paths:
        for tail, head in itertools.pairwise(path):
            onwards.setdefault(tail, set()).add(head)
    return {_inner(path, network): math.prod(1 / len(onwards[node]) for node in path[:-1]) for path in paths}


def _inner(path: Sequence[str], network: Network) -> Hops:
    return frozenset(
        hop for hop in itertools.pairwise(path) if hop[0] in network.switches and hop[1] in network.switches
    )
