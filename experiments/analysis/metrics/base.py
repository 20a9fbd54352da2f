"""What a metric is: one number for each flow of a run, or None where it was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from experiments.model.results import FlowResult, RunResult

if TYPE_CHECKING:
    from experiments.workloads import Ended


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
