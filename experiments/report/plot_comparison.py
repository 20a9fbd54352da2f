"""One quantity of each flow in two or more documents: a mark and an interval for each, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D

from experiments.analysis.statistics import Estimate
from experiments.report.canvas import WIDTH_IN, Plot, file_stem, finish, label_rows, new_figure, plot_context
from experiments.report.comparison import ComparedResults, Comparison
from experiments.report.palette import MUTED, path_style
from experiments.report.summary import unique

ROW_IN = 0.18
MARGIN_IN = 1.15
"""Title, axis and legend."""
GOODPUT = "Goodput"
DELAY = "Mean delay"
_METRICS = {GOODPUT: "goodput_bps", DELAY: "delay_mean_s"}
_AXES = {GOODPUT: ("goodput in Mbit/s", 1e-6), DELAY: ("mean delay in ms", 1e3)}


def plot_comparison(comparison: Comparison, case: str, kind: str) -> list[Plot]:
    """Draw one quantity of a case, a plot for each flow."""
    rows = [row for pair in comparison.pairs for row in pair.rows if row.case == case]
    plots = []
    for flow in unique(row.flow for row in rows):
        estimates = _estimates(comparison, case, flow, kind)
        if any(any(sides) for sides in estimates.values()):
            title = next(f"Flow {flow}: {row.src} → {row.dst}" for row in rows if row.flow == flow)
            plots.append(_plot(comparison.documents, estimates, kind, title, (case, flow)))
    return plots


def _estimates(comparison: Comparison, case: str, flow: str, kind: str) -> dict[str, list[Estimate | None]]:
    """Return for each protocol an estimate for each document, None where there is none."""
    estimates: dict[str, list[Estimate | None]] = {}
    for index, pair in enumerate(comparison.pairs, start=1):
        for row in pair.rows:
            if (row.case, row.flow) == (case, flow):
                sides = estimates.setdefault(row.protocol, [None] * len(comparison.documents))
                quantity = row.quantities[_METRICS[kind]]
                sides[0], sides[index] = quantity.first, quantity.other
    return estimates


def _plot(
    documents: Sequence[ComparedResults],
    estimates: dict[str, list[Estimate | None]],
    kind: str,
    title: str,
    place: tuple[str, str],
) -> Plot:
    label, scale = _AXES[kind]
    count = len(documents)
    with plot_context():
        figure = new_figure(WIDTH_IN, ROW_IN * len(estimates) * (count + 1) + MARGIN_IN)
        axes = figure.subplots()
        for row, sides in enumerate(estimates.values()):
            for index, side in enumerate(sides):
                if side is not None:
                    _mark(axes, side, row + ((index + 1) / (count + 1) - 0.5), index, scale)
        axes.set_title(title)
        label_rows(axes, list(estimates))
        axes.grid(visible=False, axis="y")
        axes.set_xlim(left=0)
        axes.set_xlabel(label)
        drawn = [index for index in range(count) if any(sides[index] for sides in estimates.values())]
        figure.legend(handles=_legend(documents, drawn), loc="outside lower center", ncols=min(6, count))
        case, flow = place
        caption = "Means over the seeds with their 95 % confidence intervals; without one, a single run."
        return finish(
            figure, file_stem("compare", kind, case, flow), f"{kind} of flow {flow}, case {case}", caption
        )


def _mark(axes: Any, side: Estimate, height: float, index: int, scale: float) -> None:
    style = path_style(index)
    axes.plot([0, side.mean * scale], [height, height], color=MUTED, linewidth=0.6)
    axes.errorbar(
        side.mean * scale,
        height,
        xerr=None if side.half_width is None else side.half_width * scale,
        color=style.colour,
        marker=style.marker,
        markersize=6,
        linewidth=1.3,
        capsize=3,
    )


def _legend(documents: Sequence[ComparedResults], drawn: Sequence[int]) -> list[Any]:
    styles = {documents[index].letter: path_style(index) for index in drawn}
    return [
        Line2D([], [], color=style.colour, marker=style.marker, linestyle="none", label=letter)
        for letter, style in styles.items()
    ]
