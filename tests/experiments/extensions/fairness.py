"""A metric from outside the package: a flow's goodput as a share of what all flows of its run got."""

from __future__ import annotations

from experiments.analysis.metrics import MetricSpec, register
from experiments.model.results import FlowResult, RunResult


class GoodputShare(MetricSpec):
    """1 for a flow that got everything."""

    name = "goodput_share"
    heading = "share %"
    scale = 100.0
    digits = 1
    compared = True

    def of(self, flow: FlowResult, run: RunResult) -> float | None:
        """Return the share; None where no flow got anything."""
        total_bps = sum(each.goodput_bps for each in run.flows)
        return flow.goodput_bps / total_bps if total_bps else None


register(GoodputShare())
