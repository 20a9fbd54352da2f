"""A study's table as a figure: each column a panel, in it the paper's figures beside ours with intervals."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.lines import Line2D

from experiments.report.canvas import (
    Plot,
    file_stem,
    finish,
    label_rows,
    legend_label,
    new_figure,
    plot_context,
)
from experiments.report.palette import INK, PLOT_STYLES
from experiments.report.study_tables import StudyTable

PANELS_A_ROW = 3
PANEL_WIDTH_IN = 2.6
LABELS_WIDTH_IN = 0.8
ROW_IN = 0.22
PANEL_MARGIN_IN = 0.75
"""Title and axis of a panel."""
LEGEND_IN = 0.4
MARGIN = 1.06


def plot_table(study: str, table: StudyTable) -> Plot:
    """Draw a table."""
    across = min(PANELS_A_ROW, len(table.columns))
    down = math.ceil(len(table.columns) / across)
    width_in = LABELS_WIDTH_IN + across * PANEL_WIDTH_IN
    height_in = down * (ROW_IN * len(table.rows) + PANEL_MARGIN_IN) + LEGEND_IN
    with plot_context():
        figure = new_figure(width_in, height_in)
        panels = figure.subplots(down, across, squeeze=False, sharey=True).flat
        for column, axes in zip(table.columns, panels, strict=False):
            _draw(axes, table, column)
        for axes in list(panels)[len(table.columns) :]:
            axes.set_axis_off()
        figure.legend(handles=_legend(table), loc="outside lower center", ncols=2)
        caption = "Ours: means over the seeds with 95 % confidence intervals; without one, a single run."
        return finish(figure, file_stem("study", study, table.name), f"{study}: {table.title}", caption)


def _draw(axes: Any, table: StudyTable, column: str) -> None:
    for height, row in enumerate(table.rows):
        cell = table.cells.get((row, column))
        if cell is None:
            continue
        ours = PLOT_STYLES[0]
        axes.errorbar(
            cell.ours,
            height,
            xerr=cell.half_width,
            color=ours.colour,
            marker=ours.marker,
            markersize=5,
            linewidth=1.3,
            capsize=3,
        )
        if cell.paper is not None:
            axes.plot(cell.paper, height, **_PAPER_MARK)
    axes.set_title(legend_label(table.headings[column]))
    label_rows(axes, table.rows)
    axes.set_xlim(*_range(table, column))


def _range(table: StudyTable, column: str) -> tuple[float, float]:
    """Return the ends of a panel's axis: zero and the figures, with intervals to the right."""
    cells = [cell for (_, of), cell in table.cells.items() if of == column]
    figures = [figure for cell in cells for figure in (cell.ours, cell.paper or 0.0)]
    ends = [cell.ours + (cell.half_width or 0.0) for cell in cells]
    return MARGIN * min(0.0, *figures), MARGIN * max(0.0, *figures, *ends) or 1.0


_PAPER_MARK: dict[str, Any] = {
    "color": INK,
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "none",
    "linestyle": "none",
}


def _legend(table: StudyTable) -> list[Any]:
    ours = PLOT_STYLES[0]
    marks = [Line2D([], [], color=ours.colour, marker=ours.marker, linestyle="none", label="ours")]
    if table.has_paper:
        marks.append(Line2D([], [], label="paper", **_PAPER_MARK))
    return marks
