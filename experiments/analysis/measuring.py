"""What workloads and metrics measure of a flow's logs, in any engine."""

from __future__ import annotations

from typing import Any

from experiments.analysis.metrics import METRICS, MetricSpec
from experiments.model.results import FlowResult
from experiments.workloads import Ended, WorkloadBase


def logs_wanted(workload: WorkloadBase) -> bool:
    """Return whether something is measured of a flow's logs that the simulator does not measure itself."""
    return workload.is_measured_from_logs() or bool(_log_metrics())


def measured_fields(workload: WorkloadBase, ended: Ended) -> dict[str, Any]:
    """Return the fields of a flow's result that come from its logs: the workload's and those of metrics."""
    found = workload.measured(ended)
    fields = {name: value for name, value in found.items() if name in FlowResult.model_fields}
    numbers = {name: value for name, value in found.items() if name not in fields}
    return {
        **fields,
        "metrics": {**numbers, **{metric.name: metric.of_logs(ended) for metric in _log_metrics()}},
    }


def _log_metrics() -> list[MetricSpec]:
    return [each for each in METRICS.values() if type(each).of_logs is not MetricSpec.of_logs]
