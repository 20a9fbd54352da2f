"""Flow completion times over the seeds, for tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.model.results import CompletionTimes
from experiments.report.groups import completion_times
from experiments.report.summary import FlowSummary


@dataclass(frozen=True)
class Completions:
    """Completion times of one flow with one protocol. Times are seconds.

    `times` holds those of each seed in which a transfer was completed.
    """

    flow: FlowSummary
    started: int
    completed: int
    times: tuple[CompletionTimes, ...]

    @property
    def mean_s(self) -> Estimate | None:
        """The mean over the seeds of the seeds' means."""
        return estimate_of_seeds([times.mean for times in self.times])

    @property
    def is_single(self) -> bool:
        """Whether each seed has one transfer alone, so that there is no distribution."""
        return all(result.completion_s is not None or result.fct_s is None for result in self.flow.results)

    def quantile_s(self, name: str) -> float | None:
        """Return the mean over the seeds of `p50`, `p95`, `p99` or `max`."""
        interval = estimate_of_seeds([getattr(times, name) for times in self.times])
        return interval.mean if interval else None


def completions(flows: Mapping[str, list[FlowSummary]]) -> dict[str, list[Completions]]:
    """Return for each flow that has transfers its completion times with each protocol."""
    by_flow = {flow: list(_of(group)) for flow, group in flows.items()}
    return {flow: group for flow, group in by_flow.items() if group}


def _of(group: list[FlowSummary]) -> Iterator[Completions]:
    for flow in group:
        counts = [result.transfers for result in flow.results if result.transfers is not None]
        if counts:
            times = (completion_times(result) for result in flow.results)
            yield Completions(
                flow,
                sum(count.started for count in counts),
                sum(count.completed for count in counts),
                tuple(each for each in times if each is not None),
            )
