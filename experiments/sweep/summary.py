"""A sweep's points as means over the seeds, and as documents."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.analysis.statistics import Estimate, estimate
from experiments.sweep.plan import Sweep
from experiments.sweep.store import PointResult

FORMAT = 1


@dataclass(frozen=True)
class LoadSummary:
    """A protocol at a load: goodput of all flows in bit/s, delay in seconds, over the seeds."""

    load: float
    protocol: str
    requested_bps: Estimate
    admitted_bps: Estimate
    received_bps: Estimate
    received_of_admitted: Estimate | None
    received_of_requested: Estimate | None
    delay_mean_s: Estimate | None


def rows(sweep: Sweep, results: Sequence[PointResult]) -> list[LoadSummary]:
    """Return a row for each load and protocol of which a point is finished."""
    return [
        _row(load, protocol, group)
        for load in sorted(sweep.loads)
        for protocol in sweep.protocols
        if (group := [r for r in results if (r.point.load, r.point.protocol) == (load, protocol)])
    ]


def _row(load: float, protocol: str, group: list[PointResult]) -> LoadSummary:
    return LoadSummary(
        load,
        protocol,
        _mean([result.requested_bps for result in group]),
        _mean([result.admitted_bps for result in group]),
        _mean([result.received_bps for result in group]),
        estimate([r.received_bps / r.admitted_bps for r in group if r.admitted_bps]),
        estimate([r.received_bps / r.requested_bps for r in group if r.requested_bps]),
        estimate([r.delay_mean_s for r in group if r.delay_mean_s is not None]),
    )


def _mean(values: list[float]) -> Estimate:
    interval = estimate(values)
    assert interval is not None, "a row has a point"
    return interval


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
    names = [*_flat(results[0])] if results else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_flat, results))
    return text.getvalue()


def _flat(result: PointResult) -> dict[str, Any]:
    return {**result.point.model_dump(), **result.model_dump(exclude={"point"})}
