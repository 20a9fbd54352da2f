"""What TCP took for losses: the kernel's counters of each flow's sender, over its seeds.

From the evidence: `ss -ti` of the flow's connections, and the counters of the source host, which are the
flow's own where it is the only one there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.analysis.statistics import mean_of
from experiments.model.results import RunResult
from experiments.report.summary import FlowSummary

INITIAL_REORDERING = 3
"""Duplicate acknowledgements that stand for a loss before anything was learnt; `ss` shows only others."""
UNDONE = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")
RECOVERIES = ("TCPRenoRecovery", "TCPSackRecovery")
REORDERED = ("TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder")


@dataclass(frozen=True)
class Recovery:
    """One flow with one protocol; means over its runs, None where it was not counted.

    `retransmitted` is the share of the bytes sent that were sent again; `recoveries` are fast recoveries
    begun, each of which cuts the window, `undone` those found needless; `timeouts` are retransmissions by
    timer, `reordered` the times that the sender saw reordering. `reordering` has the duplicate
    acknowledgements that connections came to await before they call it a loss, the smallest and the largest.
    """

    flow: FlowSummary
    retransmitted: float | None
    recoveries: float | None
    undone: float | None
    timeouts: float | None
    reordered: float | None
    reordering: tuple[int, int]


def recoveries(groups: Mapping[str, list[FlowSummary]]) -> list[Recovery]:
    """Return the counters of each flow with each protocol, those that have any."""
    rows = (_recovery(flow) for group in groups.values() for flow in group)
    return [each for each in rows if each is not None]


def _recovery(flow: FlowSummary) -> Recovery | None:
    sockets = [state for run in flow.runs for state in _sockets(run, flow.flow)]
    if not sockets:
        return None
    sent, again = (sum(state.get(name, 0) for state in sockets) for name in ("bytes_sent", "bytes_retrans"))
    counters = [counted for run in flow.runs if (counted := _counters(run, flow)) is not None]
    learnt = [int(state.get("reordering", INITIAL_REORDERING)) for state in sockets]
    return Recovery(
        flow=flow,
        retransmitted=again / sent if sent else None,
        recoveries=mean_count(counters, RECOVERIES),
        undone=mean_count(counters, UNDONE),
        timeouts=mean_count(counters, ("TCPTimeouts",)),
        reordered=mean_count(counters, REORDERED),
        reordering=(min(learnt), max(learnt)),
    )


def _sockets(run: RunResult, flow: str) -> list[dict[str, float]]:
    """Return the kernel's counters of a flow's connections; empty where there was no kernel."""
    evidence = run.evidence.flows.get(flow)
    return [state.counters for state in evidence.connections if state.source_ip] if evidence else []


def _counters(run: RunResult, flow: FlowSummary) -> dict[str, int] | None:
    """Return the counters of the flow's source; None where other flows begin or end there too."""
    ends = [end for other in run.flows for end in (other.src, other.dst)]
    return run.evidence.hosts.get(flow.src) if ends.count(flow.src) == 1 else None


def mean_count(counters: Iterable[Mapping[str, int]], names: Iterable[str]) -> float | None:
    """Return the mean over runs of the sum of some of a host's counters of TCP; None without runs."""
    wanted = [f"TcpExt{name}" for name in names]
    return mean_of(sum(counted.get(name, 0) for name in wanted) for counted in counters)
