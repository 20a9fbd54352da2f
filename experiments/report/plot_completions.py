"""Flow completion times: a cumulative curve for each protocol, or a bar where there is one file alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.report import units
from experiments.report.canvas import WIDTH_IN, Plot, file_stem, finish, legend_label, new_figure, style
from experiments.report.completions import Completions, completions
from experiments.report.palette import INK, PAPER, Look, protocol_looks
from experiments.report.plot_delay import SMALLEST_MS, cumulative_plot
from experiments.report.summary import CaseSummary

BAR_IN = 0.3
AROUND_IN = 0.85
"""Title and axis."""


def plot_completions(case: CaseSummary) -> list[Plot]:
    """Draw the completion times of a case, one plot for each flow that completed any transfer."""
    looks = protocol_looks(case.protocols)
    plots = []
    for flow, group in completions(case.flows).items():
        drawn = [each for each in group if each.times]
        if drawn and all(each.is_single for each in drawn):
            plots.append(_bars(case.name, flow, group, looks))
        elif drawn:
            plots.append(_curves(case.name, flow, drawn, looks))
    return plots


def _curves(case: str, flow: str, drawn: list[Completions], looks: dict[str, Look]) -> Plot:
    curves = [
        (each.flow, np.maximum(np.array([t.quantiles for t in each.times]) * 1e3, SMALLEST_MS))
        for each in drawn
    ]
    return cumulative_plot(
        curves,
        looks,
        file_stem("completion", case, flow),
        f"Flow completion times of flow {flow}, case {case}",
        ("share of transfers", "flow completion time in ms", "Share of the transfers that took no longer."),
    )


def _bars(case: str, flow: str, drawn: list[Completions], looks: dict[str, Look]) -> Plot:
    with style():
        figure = new_figure(WIDTH_IN, BAR_IN * len(drawn) + AROUND_IN)
        axes = figure.subplots()
        reach = max(_reach(each) for each in drawn)
        for row, each in enumerate(drawn):
            _bar(axes, row, each, looks[each.flow.protocol], reach)
        first = drawn[0].flow
        axes.set_title(f"Flow {flow}: {first.src} → {first.dst}")
        axes.set_yticks(range(len(drawn)), [legend_label(each.flow.protocol) for each in drawn])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_ylim(len(drawn) - 0.45, -0.55)
        axes.set_xlim(0, reach * 1.18)
        axes.set_xlabel("completion time in s")
        seeds = max(len(each.times) for each in drawn)
        caption = "From the start of the file to the in-order read of its last byte"
        caption += "." if seeds == 1 else f"; mean over {seeds} seeds with its 95 % confidence interval."
        title = f"Completion time of flow {flow}, case {case}"
        return finish(figure, file_stem("completion", case, flow), title, caption)


def _bar(axes: Any, row: int, each: Completions, look: Look, reach: float) -> None:
    mean = each.mean_s
    if mean is None:
        axes.text(reach * 0.01, row, "not completed within the measurement", va="center", fontsize=8.5)
        return
    axes.barh(row, mean.mean, height=0.68, color=look.colour, hatch=look.hatch, edgecolor=PAPER, linewidth=0)
    axes.barh(row, mean.mean, height=0.68, fill=False, edgecolor=INK, linewidth=0.7)
    if mean.half_width is not None:
        axes.errorbar(mean.mean, row, xerr=mean.half_width, color=INK, linewidth=1.2, capsize=3)
    text = units.decimal(mean.mean)
    if each.completed < each.started:
        text += f" ({each.completed} of {each.started})"
    axes.text(reach * 1.04, row, text + ("" if each.flow.valid else " (invalid)"), va="center", fontsize=8.5)


def _reach(each: Completions) -> float:
    mean = each.mean_s
    return mean.mean + (mean.half_width or 0.0) if mean else 0.0
