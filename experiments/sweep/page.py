"""A sweep as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.report.canvas import Plot
from experiments.report.pages import render_template
from experiments.sweep.plan import Sweep
from experiments.sweep.store import PointResult
from experiments.sweep.summary import rows
from experiments.sweep.table import COLUMNS, cells, notes


def render_sweep(sweep: Sweep, results: Sequence[PointResult], plot: Plot, title: str) -> str:
    """Return the page: the picture, the table and the conditions."""
    return render_template(
        "sweep.html.j2",
        sweep=sweep,
        title=title,
        plot=plot,
        seeds=len({result.point.seed for result in results}),
        columns=[name.replace("\n", " ") for name in COLUMNS],
        rows=[(row, cells(row)) for row in rows(sweep, results)],
        notes=notes(results),
        conditions=sweep.conditions.model_dump(),
    )
