"""The metrics that engines measure themselves: fields of a flow's result, each registered here once."""

from __future__ import annotations

from typing import ClassVar

from experiments.analysis.metrics.base import MetricSpec
from experiments.analysis.metrics.registry import register
from experiments.model.results import FlowResult, RunResult

STATISTICS = ("mean", "p50", "p95", "p99", "max")


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
