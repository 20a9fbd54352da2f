"""Flows that hashing sent over the same link: which links a flow took stands in the evidence (ECMP)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.analysis.statistics import mean_of
from experiments.model.results import FlowResult, RunResult
from experiments.report.summary import CaseSummary


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
    alone_bps: float | None
    shared_bps: float | None

    @property
    def share(self) -> float:
        """Share of the flows, over all runs, that met another one."""
        return self.shared / self.flows


def collisions(summary: CaseSummary) -> list[Collisions]:
    """Return the collisions of each protocol whose paths were seen, where there were any."""
    found = (_of_protocol(summary.name, name, summary.usable(name)) for name in summary.protocols)
    return [each for each in found if each.shared]


def _of_protocol(case: str, protocol: str, runs: Sequence[RunResult]) -> Collisions:
    met = [each for run in runs for each in _meetings(run)]
    return Collisions(
        case=case,
        protocol=protocol,
        runs=len(runs),
        flows=len(met),
        shared=sum(shares for _, shares in met),
        alone_bps=mean_of(flow.goodput_bps for flow, shares in met if not shares),
        shared_bps=mean_of(flow.goodput_bps for flow, shares in met if shares),
    )


def _meetings(run: RunResult) -> Iterator[tuple[FlowResult, bool]]:
    """Yield each flow whose paths were recorded, and whether it shared a link between switches."""
    taken = {
        name: {hop for path in evidence.paths for hop in itertools.pairwise(path.path[1:-1])}
        for name, evidence in run.evidence.flows.items()
        if not evidence.split_by and all(path.packets is not None for path in evidence.paths)
    }
    for flow in run.flows:
        if flow.flow in taken:
            others = (hops for name, hops in taken.items() if name != flow.flow)
            yield flow, any(taken[flow.flow] & hops for hops in others)
