"""What the report says, without its form: runs grouped by case, flow and protocol, averaged over seeds.

A run that is marked invalid enters no average as long as the same protocol and case have a valid one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from experiments.analysis.metrics import Kept, MetricSpec, further_names, metrics_of, value_of
from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.model.results import (
    CONSTANT_RATE,
    FlowResult,
    LinkResult,
    PathAllocation,
    Results,
    RunResult,
)
from experiments.report.groups import fold_groups
from experiments.report.reference import Reference, ReferenceRow, reference_for


@dataclass(frozen=True)
class FlowSummary:
    """One flow with one protocol, over its seeds. Rates are bit/s, times seconds, sizes bytes.

    `runs` are those that enter the figures, `runs_total` counts the invalid ones too; `valid` is False where
    none but invalid ones were left to show.
    """

    case: str
    flow: str
    src: str
    dst: str
    protocol: str
    runs: tuple[RunResult, ...]
    results: tuple[FlowResult, ...]
    runs_total: int
    valid: bool
    paper: ReferenceRow | None

    @property
    def heading(self) -> str:
        """The flow with its ends."""
        return f"Flow {self.flow}: {self.src} → {self.dst}"

    @property
    def mark(self) -> str:
        """What stands behind names and figures of invalid runs."""
        return "" if self.valid else " (invalid)"

    @property
    def requested_bps(self) -> float:
        """Goodput that the application asked for."""
        return self.results[0].requested_bps

    @property
    def sender(self) -> str:
        """The flow's own protocol where it has one, else the run's."""
        return self.results[0].protocol or self.protocol

    @property
    def allocated(self) -> list[PathAllocation]:
        """Paths of the first seed and the goodput allocated to each."""
        return self.results[0].allocated

    @property
    def allocation_varies(self) -> bool:
        """Whether another seed was allocated something else."""
        return any(result.allocated != self.allocated for result in self.results[1:])

    @property
    def goodput_bps(self) -> Estimate:
        """Goodput over the seeds."""
        interval = estimate_of_seeds([result.goodput_bps for result in self.results])
        assert interval is not None  # a group has at least one run
        return interval

    @property
    def workload(self) -> str:
        """Kind of what was sent; of a group with several kinds `mixed`."""
        return self.results[0].workload_kind

    @property
    def runs_alike(self) -> bool:
        """Whether there are several runs and all came out the same."""
        figures = [(result.goodput_bps, result.bytes_read, result.delay_s) for result in self.results]
        return len(figures) > 1 and all(each == figures[0] for each in figures)

    @property
    def goodput_ratio(self) -> float | None:
        """Received over requested goodput; None where no application asked for a rate all the time."""
        if self.workload != CONSTANT_RATE or not self.requested_bps:
            return None
        return self.goodput_bps.mean / self.requested_bps

    @property
    def active_goodput_bps(self) -> Estimate | None:
        """Goodput over the seeds while the source was active; None where it always was, or never paused."""
        return self._over_seeds(lambda result: result.active_goodput_bps)

    @property
    def delay_mean_s(self) -> Estimate | None:
        """The mean delay over the seeds in which anything arrived."""
        return self._over_seeds(lambda result: result.delay_s.mean if result.delay_s else None)

    def delay_quantile_s(self, name: str) -> float | None:
        """Return the mean over the seeds of a delay statistic: `p50`, `p95`, `p99` or `max`."""
        interval = self._over_seeds(lambda result: getattr(result.delay_s, name) if result.delay_s else None)
        return interval.mean if interval else None

    @property
    def out_of_order_ratio(self) -> float | None:
        """Mean share of frames that came before an earlier one."""
        interval = self._over_seeds(lambda result: result.out_of_order_ratio)
        return interval.mean if interval else None

    @property
    def reorder_buffer_max_bytes(self) -> int | None:
        """The fullest that the reorder buffer was in any seed."""
        sizes = [r.reorder_buffer_max_bytes for r in self.results if r.reorder_buffer_max_bytes is not None]
        return max(sizes, default=None)

    def over_seeds(self, metric: MetricSpec) -> Estimate | None:
        """Return a metric's mean over the runs; None where none measured it."""
        return estimate_of_seeds(self.values(metric))

    def values(self, metric: MetricSpec) -> list[float]:
        """Return a metric of each run in which it was measured."""
        pairs = zip(self.results, self.runs, strict=True)
        values = (value_of(metric, flow, run) for flow, run in pairs)
        return [value for value in values if value is not None]

    def _over_seeds(self, pick: Callable[[FlowResult], float | None]) -> Estimate | None:
        return estimate_of_seeds([value for value in map(pick, self.results) if value is not None])


@dataclass(frozen=True)
class CaseSummary:
    """All flows and protocols of one case; `protocols` and `flows` keep the document's order."""

    name: str
    runs: tuple[RunResult, ...]
    flows: dict[str, list[FlowSummary]] = field(default_factory=dict)

    @property
    def has_active_goodput(self) -> bool:
        """Whether some flow has a goodput while its source was active."""
        return any(flow.active_goodput_bps is not None for group in self.flows.values() for flow in group)

    @property
    def protocols(self) -> list[str]:
        """Protocols in the order in which they were run."""
        return unique(run.protocol for run in self.runs)

    @property
    def further_metrics(self) -> list[MetricSpec]:
        """Metrics beside the built-in ones that have a column of their own."""
        known = metrics_of(self.runs)
        further = [known[name] for name in further_names(self.runs)]
        return [metric for metric in further if metric.heading or isinstance(metric, Kept)]

    def usable(self, protocol: str) -> tuple[RunResult, ...]:
        """Return the runs of a protocol that enter the figures."""
        return usable_runs([run for run in self.runs if run.protocol == protocol])


def summarise(results: Results) -> list[CaseSummary]:
    """Group the runs of a document by case, flow and protocol, in the document's order."""
    reference = reference_for(results.scenario)
    summaries = []
    for name in unique(run.case for run in results.runs):
        case = CaseSummary(name, tuple(run for run in results.runs if run.case == name))
        for protocol in case.protocols:
            for summary in _flows(case, protocol, reference):
                case.flows.setdefault(summary.flow, []).append(summary)
        summaries.append(case)
    return summaries


def _flows(case: CaseSummary, protocol: str, reference: Reference | None) -> Iterator[FlowSummary]:
    used = case.usable(protocol)
    pairs: dict[str, list[tuple[RunResult, FlowResult]]] = {}
    for run in used:
        for result in fold_groups(run.flows):
            pairs.setdefault(result.flow, []).append((run, result))
    for flow, members in pairs.items():
        yield FlowSummary(
            case=case.name,
            flow=flow,
            src=members[0][1].src,
            dst=members[0][1].dst,
            protocol=protocol,
            runs=tuple(run for run, _ in members),
            results=tuple(result for _, result in members),
            runs_total=sum(run.protocol == protocol for run in case.runs),
            valid=all(run.valid for run in used),
            paper=reference.find(case.name, flow, protocol) if reference else None,
        )


def usable_runs(runs: Sequence[RunResult]) -> tuple[RunResult, ...]:
    """Return the valid runs, or all of them where none is valid."""
    return tuple(run for run in runs if run.valid) or tuple(runs)


def summarise_links(runs: Sequence[RunResult]) -> list[LinkResult]:
    """Summarise each direction of each link: mean utilisation, all drops, the worst lateness of all runs."""
    measured: dict[str, list[LinkResult]] = {}
    for link in chain.from_iterable(run.links for run in runs):
        measured.setdefault(link.link, []).append(link)
    return [_link(name, links) for name, links in measured.items()]


def _link(name: str, links: list[LinkResult]) -> LinkResult:
    utilisation = estimate_of_seeds([link.utilisation for link in links if link.utilisation is not None])
    dropped = [link.packets_dropped for link in links if link.packets_dropped is not None]
    return LinkResult(
        link=name,
        capacity_bps=links[0].capacity_bps,
        utilisation=utilisation.mean if utilisation else None,
        packets_dropped=sum(dropped) if dropped else None,
        lateness_mean_us=worst(link.lateness_mean_us for link in links),
        lateness_p99_us=worst(link.lateness_p99_us for link in links),
        lateness_max_us=worst(link.lateness_max_us for link in links),
    )


def worst(values: Iterable[float | None]) -> float | None:
    """Return the largest; None where there is none."""
    return max((value for value in values if value is not None), default=None)


def unique(values: Iterable[str]) -> list[str]:
    """Return each value once, in the order of its first appearance."""
    return list(dict.fromkeys(values))
