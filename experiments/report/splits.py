"""How each flow was split over its paths: the shares asked for beside those that came about.

Where the evidence has shares of a flow's paths, these are taken. Elsewhere the allocated rates are what was
asked for, and the bytes sent on each stream what came about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.analysis.statistics import mean_of
from experiments.model.evidence import PathEvidence
from experiments.model.results import FlowResult, RunResult
from experiments.report.summary import FlowSummary


@dataclass(frozen=True)
class PathShare:
    """One path of a flow over all its runs; shares are from 0 to 1, None where nothing tells them."""

    path: tuple[str, ...]
    asked: float | None
    realised: float | None
    packets: int | None
    """Packets counted on the path; None where the shares are of bytes."""
    packets_of_flow: int | None

    @property
    def deviations(self) -> float | None:
        """How many standard deviations of the binomial the realised share is off; None without packets."""
        if self.asked is None or self.realised is None or not self.packets_of_flow:
            return None
        deviation = math.sqrt(self.asked * (1 - self.asked) / self.packets_of_flow)
        return (self.realised - self.asked) / deviation if deviation else None


@dataclass(frozen=True)
class FlowSplit:
    """One flow with one protocol; `asked_varies` if its runs did not all ask for the same shares."""

    flow: FlowSummary
    shares: tuple[PathShare, ...]
    asked_varies: bool


def flow_splits(groups: dict[str, list[FlowSummary]]) -> list[FlowSplit]:
    """Return the split of each flow with each protocol, those that have paths, in the document's order."""
    splits = (_flow_split(flow) for group in groups.values() for flow in group)
    return [split for split in splits if split.shares]


def _flow_split(flow: FlowSummary) -> FlowSplit:
    per_run = [
        _evidence(run, result.flow) or list(_from_streams(result))
        for run, result in zip(flow.runs, flow.results, strict=True)
    ]
    by_path: dict[tuple[str, ...], list[tuple[PathEvidence, int | None]]] = {}
    for entries in per_run:
        total = _total(entries)
        for entry in entries:
            by_path.setdefault(tuple(entry.path), []).append((entry, total))
    asked = [{tuple(entry.path): entry.asked for entry in entries} for entries in per_run]
    shares = tuple(_path_share(path, evidence) for path, evidence in by_path.items())
    return FlowSplit(flow, shares, any(entries != asked[0] for entries in asked[1:]))


def _total(entries: Sequence[PathEvidence]) -> int | None:
    packets = [entry.packets for entry in entries if entry.packets is not None]
    return sum(packets) if entries and len(packets) == len(entries) else None


def _path_share(path: tuple[str, ...], evidence: Sequence[tuple[PathEvidence, int | None]]) -> PathShare:
    """Pool the runs: packets are added, so that long runs weigh more; other shares are averaged."""
    totals = [total for _, total in evidence if total is not None]
    asked = mean_of(entry.asked for entry, _ in evidence if entry.asked is not None)
    if len(totals) < len(evidence) or not sum(totals):
        realised = mean_of(entry.realised for entry, _ in evidence if entry.realised is not None)
        return PathShare(path, asked, realised, None, None)
    packets, total = sum(entry.packets or 0 for entry, _ in evidence), sum(totals)
    return PathShare(path, asked, packets / total, packets, total)


def _evidence(run: RunResult, flow: str) -> list[PathEvidence] | None:
    """Return what was seen of the flow's paths; None where no shares were."""
    evidence = run.evidence.flows.get(flow)
    if evidence is None or all(path.realised is None and path.packets is None for path in evidence.paths):
        return None
    return evidence.paths


def _from_streams(result: FlowResult) -> Iterator[PathEvidence]:
    rates = [entry.rate_bps for entry in result.allocated]
    whole = math.fsum(rate for rate in rates if rate is not None) if None not in rates else 0.0
    sent: dict[tuple[str, ...], float] = {}
    for stream in result.series.streams:
        if stream.path is not None:
            key = tuple(stream.path)
            sent[key] = sent.get(key, 0.0) + math.fsum(stream.rate_bps)
    total = math.fsum(sent.values())
    for entry, rate in zip(result.allocated, rates, strict=True):
        path = tuple(entry.path)
        yield PathEvidence(
            path=entry.path,
            asked=rate / whole if rate is not None and whole else None,
            realised=sent[path] / total if total and path in sent else None,
        )
