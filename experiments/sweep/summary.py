"""A sweep's points as means over the seeds, and as documents."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.analysis.statistics import Estimate, estimate, estimate_of
from experiments.sweep.plan import Sweep
from experiments.sweep.store import PointResult

FORMAT = 1
GOODPUTS = ("requested_bps", "admitted_bps", "received_bps")


@dataclass(frozen=True)
class SweepRow:
    """A protocol at a load: goodput of all flows in bit/s, delay in seconds, over the seeds."""

    load: float
    protocol: str
    requested_bps: Estimate
    admitted_bps: Estimate
    received_bps: Estimate
    received_of_admitted: Estimate | None
    received_of_requested: Estimate | None
    delay_mean_s: Estimate | None


def rows(sweep: Sweep, results: Sequence[PointResult]) -> list[SweepRow]:
    """Return a row for each load and protocol of which a point is finished."""
    return [
        _row(load, protocol, group)
        for load in sorted(sweep.loads)
        for protocol in sweep.protocols
        if (group := [r for r in results if (r.point.load, r.point.protocol) == (load, protocol)])
    ]


def _row(load: float, protocol: str, group: list[PointResult]) -> SweepRow:
    return SweepRow(
        load,
        protocol,
        received_of_admitted=estimate([r.received_bps / r.admitted_bps for r in group if r.admitted_bps]),
        received_of_requested=estimate([r.received_bps / r.requested_bps for r in group if r.requested_bps]),
        delay_mean_s=estimate([r.delay_mean_s for r in group if r.delay_mean_s is not None]),
        **{name: estimate_of([getattr(result, name) for result in group]) for name in GOODPUTS},
    )


def document(sweep: Sweep, results: Sequence[PointResult]) -> dict[str, Any]:
    """Return the sweep as one document; docs/simulator.md describes it."""
    return {
        "format": FORMAT,
        "sweep": sweep.model_dump(mode="json"),
        "summary": [asdict(row) for row in rows(sweep, results)],
        "points": [result.model_dump(mode="json") for result in results],
    }


def points_csv(results: Sequence[PointResult]) -> str:
    """Return a line for each point, with the names of the document's keys."""
    text = io.StringIO()
    writer = csv.DictWriter(text, results[0].row() if results else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(result.row() for result in results)
    return text.getvalue()
