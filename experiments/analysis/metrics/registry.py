"""The metrics that were registered, in the order in which tables have them."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.metrics.base import Kept, MetricSpec
from experiments.model.results import FlowResult, RunResult
from experiments.registry import Registry

METRICS: Registry[MetricSpec] = Registry("metric")
register = METRICS.register


def value_of(metric: MetricSpec, flow: FlowResult, run: RunResult) -> float | None:
    """Return a metric of a flow: what was kept with the results, or what it is by the metric itself."""
    if metric.name in flow.metrics:
        return flow.metrics[metric.name]
    return metric.of(flow, run)


def metrics_of(runs: Sequence[RunResult]) -> dict[str, MetricSpec]:
    """Return all metrics that runs have, by name; those kept with them need no extension."""
    return {**{name: Kept(name) for name in further_names(runs)}, **dict(METRICS.items())}


def further_names(runs: Sequence[RunResult]) -> list[str]:
    """Return the metrics beside the built-in ones: those registered, and those kept with some runs."""
    registered = [metric.name for metric in METRICS.values() if not metric.is_built_in]
    kept = (name for run in runs for flow in run.flows for name in flow.metrics)
    return list(dict.fromkeys([*registered, *kept]))


def keep_further(run: RunResult) -> RunResult:
    """Return a run whose flows keep the metrics that are not built in."""
    further = [metric for metric in METRICS.values() if not metric.is_built_in]
    if not further:
        return run
    flows = [
        flow.model_copy(
            update={"metrics": {**flow.metrics, **{each.name: value_of(each, flow, run) for each in further}}}
        )
        for flow in run.flows
    ]
    return run.model_copy(update={"flows": flows})
