"""Who got how much of a link that several flows shared, in words."""

from __future__ import annotations

from experiments.analysis.statistics import estimate
from experiments.model.results import RunResult
from experiments.report.summary import CaseSummary


def sharing_sentences(case: CaseSummary) -> list[str]:
    """Return a sentence for each bottleneck of runs whose flows have protocols or controls of their own."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in case.runs:
        if any(flow.protocol for flow in run.flows) or len({f.congestion_control for f in run.flows}) > 1:
            for bottleneck in run.bottlenecks:
                groups.setdefault((run.protocol, bottleneck.link), []).append(run)
    return [_sentence(protocol, link, runs) for (protocol, link), runs in groups.items()]


def _sentence(protocol: str, link: str, runs: list[RunResult]) -> str:
    told = [each for run in runs for each in run.bottlenecks if each.link == link]
    parts = []
    for flow in runs[0].flows:
        share = estimate([each.shares[flow.flow] for each in told if flow.flow in each.shares])
        if share is not None:
            what = f"{flow.protocol or protocol}, {flow.congestion_control or 'no control known'}"
            parts.append(f"flow {flow.flow} ({what}) {share.mean:.0%}")
    index = estimate([each.jain_index for each in told])
    assert index is not None, "a group has a run"
    return f"{protocol}: {link} was shared by {', '.join(parts)}; Jain's index {index.mean:.3f}."
