"""Metrics that this package does not have: those registered, and those kept with the results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.analysis.metrics import METRICS, further_names, value_of
from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.report.summary import CaseSummary, FlowSummary

UNKNOWN_DIGITS = 4
"""Decimals of a metric that was kept with the results and is not registered here."""


@dataclass(frozen=True)
class FurtherMetric:
    """How a metric is shown: its heading, and the scale and decimals of its values."""

    name: str
    heading: str
    scale: float
    digits: int

    def text(self, value: float) -> str:
        """Return a value as it is shown."""
        return f"{value * self.scale:.{self.digits}f}"

    def over_seeds(self, flow: FlowSummary) -> Estimate | None:
        """Return its mean over a flow's runs; None where none measured it."""
        metric = METRICS.get(self.name)
        values: Iterable[float | None] = (
            result.metrics.get(self.name) if metric is None else value_of(metric, result, run)
            for result, run in zip(flow.results, flow.runs, strict=True)
        )
        return estimate_of_seeds([value for value in values if value is not None])


def further_metrics(case: CaseSummary) -> list[FurtherMetric]:
    """Return the metrics that have a column of their own."""
    shown = []
    for name in further_names(list(case.runs)):
        metric = METRICS.get(name)
        if metric is None:
            shown.append(FurtherMetric(name, name, 1.0, UNKNOWN_DIGITS))
        elif metric.heading:
            shown.append(FurtherMetric(name, metric.heading, metric.scale, metric.digits))
    return shown
