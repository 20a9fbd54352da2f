"""The metrics of flows by name: each is one number for a flow of a run, or None where it was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.model.results import FlowResult, RunResult
from experiments.registry import Registry

if TYPE_CHECKING:
    from experiments.workloads import Ended, WorkloadBase

STATISTICS = ("mean", "p50", "p95", "p99", "max")


class MetricSpec:
    """A metric of flows; `experiments.analysis.metrics.register` brings it into all tables.

    One that this package does not have is also kept with the results (`FlowResult.metrics`), so that a
    document stands alone; reports show it in a column of its own.
    """

    name: str
    """With its unit, as a column is called: `delay_mean_s`."""
    heading: str = ""
    """In reports, with the unit that `scale` leads to; empty: it is in exported tables alone."""
    scale: float = 1.0
    """What a value is multiplied with before it is shown."""
    digits: int = 2
    """Decimals that are shown."""
    compared: bool = False
    """Whether `mstcp-lab compare` tests the difference of two documents."""
    is_built_in: ClassVar[bool] = False

    def of(self, flow: FlowResult, run: RunResult) -> float | None:
        """Return the metric of a flow, whose run tells of links and of the other flows."""
        del run
        return flow.metrics.get(self.name)

    def of_logs(self, flow: Ended) -> float | None:
        """Return the metric of a flow from its writes and reads; a metric has this or `of`."""
        del flow
        return None

    def text(self, value: float) -> str:
        """Return a value as it is shown."""
        return f"{value * self.scale:.{self.digits}f}"


class Kept(MetricSpec):
    """A metric of another program, or a measure of a workload, of which a document has the values alone."""

    digits = 4

    def __init__(self, name: str) -> None:
        self.name = name


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


class Field(MetricSpec):
    """A field of a flow's result, or of one of its parts."""

    is_built_in: ClassVar[bool] = True

    def __init__(self, name: str, part: str | None = None, field: str | None = None) -> None:
        self.name = name
        self._part, self._field = part, field or name

    def of(self, flow: FlowResult, run: RunResult) -> float | None:
        """Return the field; None where it, or the part that has it, was not measured."""
        del run
        source = flow if self._part is None else getattr(flow, self._part)
        value: float | None = getattr(source, self._field, None)
        return value


class Allocated(MetricSpec):
    """Goodput that was allocated, over all paths; None where a path has no allocated rate."""

    name = "allocated_bps"
    is_built_in: ClassVar[bool] = True

    def of(self, flow: FlowResult, run: RunResult) -> float | None:
        """Return the sum."""
        del run
        rates = [path.rate_bps for path in flow.allocated]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if known and len(known) == len(rates) else None


def _register_all() -> None:
    register(Field("requested_bps"))
    register(Allocated())
    goodput = register(Field("goodput_bps"))
    goodput.heading, goodput.scale, goodput.compared = "goodput Mbit/s", 1e-6, True
    for name in (
        *("active_goodput_bps", "out_of_order_ratio", "reorder_buffer_max_bytes", "bytes_written"),
        *("bytes_read", "bytes_wrong", "ticks_skipped", "completion_s"),
    ):
        register(Field(name))
    for name in STATISTICS:
        delay = register(Field(f"delay_{name}_s", "delay_s", name))
        if name == "mean":
            delay.heading, delay.scale, delay.compared = "delay ms", 1e3, True
    for name in ("started", "completed"):
        register(Field(f"transfers_{name}", "transfers", name))
    for name in STATISTICS:
        register(Field(f"fct_{name}_s", "fct_s", name))


_register_all()
