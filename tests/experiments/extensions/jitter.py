"""A metric from outside the package: how much the delay changes from one read to the next."""

from __future__ import annotations

import numpy as np

from experiments.analysis import logs
from experiments.analysis.metrics import MetricSpec, register
from experiments.workloads import Ended


class Jitter(MetricSpec):
    """Mean difference of the delays of consecutive reads of the measurement."""

    name = "jitter_s"
    heading = "jitter ms"
    scale = 1e3
    compared = True

    def of_logs(self, flow: Ended) -> float | None:
        """Return the mean; None where less than two reads are there."""
        delay_s = logs.delays(flow.writes, flow.reads, flow.window).delay_s
        return float(np.abs(np.diff(delay_s)).mean()) if delay_s.size > 1 else None


register(Jitter())
