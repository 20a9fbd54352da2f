"""Flow completion times: a cumulative curve for each protocol, or a bar where there is one file alone."""

from __future__ import annotations

import numpy as np

from experiments.report import units
from experiments.report.canvas import (
    WIDTH_IN,
    Bar,
    Plot,
    draw_bars,
    file_stem,
    finish,
    new_figure,
    plot_context,
)
from experiments.report.completions import Completions, completions
from experiments.report.palette import PlotStyle, protocol_styles
from experiments.report.plot_delay import SMALLEST_MS, cumulative_plot
from experiments.report.summary import CaseSummary

BAR_IN = 0.3
MARGIN_IN = 0.85
"""Title and axis."""


def plot_completions(case: CaseSummary) -> list[Plot]:
    """Draw the completion times of a case, one plot for each flow that completed any transfer."""
    styles = protocol_styles(case.protocols)
    plots = []
    for flow, group in completions(case.flows).items():
        drawn = [each for each in group if each.times]
        if drawn and all(each.is_single for each in drawn):
            plots.append(_bars(case.name, flow, group, styles))
        elif drawn:
            plots.append(_curves(case.name, flow, drawn, styles))
    return plots


def _curves(case: str, flow: str, drawn: list[Completions], styles: dict[str, PlotStyle]) -> Plot:
    curves = [
        (each.flow, np.maximum(np.array([t.quantiles for t in each.times]) * 1e3, SMALLEST_MS))
        for each in drawn
    ]
    return cumulative_plot(
        curves,
        styles,
        file_stem("completion", case, flow),
        f"Flow completion times of flow {flow}, case {case}",
        ("share of transfers", "flow completion time in ms", "Share of the transfers that took no longer."),
    )


def _bars(case: str, flow: str, drawn: list[Completions], styles: dict[str, PlotStyle]) -> Plot:
    with plot_context():
        figure = new_figure(WIDTH_IN, BAR_IN * len(drawn) + MARGIN_IN)
        axes = figure.subplots()
        bars = [_bar(each, styles[each.flow.protocol]) for each in drawn]
        draw_bars(axes, bars, max((bar.length or 0.0) + (bar.half_width or 0.0) for bar in bars))
        axes.set_title(drawn[0].flow.heading)
        axes.set_xlabel("completion time in s")
        seeds = max(len(each.times) for each in drawn)
        caption = "From the start of the file to the in-order read of its last byte"
        caption += "." if seeds == 1 else f"; mean over {seeds} seeds with its 95 % confidence interval."
        title = f"Completion time of flow {flow}, case {case}"
        return finish(figure, file_stem("completion", case, flow), title, caption)


def _bar(each: Completions, style: PlotStyle) -> Bar:
    mean, protocol = each.mean_s, each.flow.protocol
    if mean is None:
        return Bar(protocol, style, None, None, "not completed within the measurement")
    text = units.decimal(mean.mean)
    if each.completed < each.started:
        text += f" ({each.completed} of {each.started})"
    return Bar(protocol, style, mean.mean, mean.half_width, text + each.flow.mark)
