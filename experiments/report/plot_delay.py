"""Distribution of the delay of each flow: one cumulative curve for each protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.report.canvas import (
    WIDTH_IN,
    Plot,
    file_stem,
    finish,
    legend_label,
    logarithmic_ticks,
    new_figure,
    plot_context,
)
from experiments.report.palette import PlotStyle, protocol_styles
from experiments.report.summary import CaseSummary, FlowSummary

TEXTS = (
    "share of bytes",
    "delay in ms, from write to in-order read",
    "Share of the bytes that took no longer than the delay below.",
)
HEIGHT_IN = 3.2
LEGEND_COLUMNS = 2
"""As many as `mptcp-dualhomed (invalid)` leaves room for."""
LEGEND_ROW_IN = 0.2
SMALLEST_MS = 1e-3
"""A logarithmic axis has no zero; delays below a microsecond are drawn here."""


def plot_delays(case: CaseSummary) -> list[Plot]:
    """Draw the delay distributions of a case, one plot for each flow in which anything arrived."""
    styles = protocol_styles(case.protocols)
    plots = []
    for flow, group in case.flows.items():
        drawn = [(summary, curves) for summary in group if (curves := quantile_curves(summary)).size]
        if drawn:
            name = file_stem("delay", case.name, flow)
            plots.append(
                cumulative_plot(drawn, styles, name, f"Delay of flow {flow}, case {case.name}", TEXTS)
            )
    return plots


def quantile_curves(flow: FlowSummary) -> npt.NDArray[np.float64]:
    """Return the delay's quantiles in milliseconds, a row for each seed in which anything arrived."""
    rows = [result.series.delay_cdf_s for result in flow.results if result.series.delay_cdf_s]
    return np.maximum(np.array(rows, dtype=np.float64) * 1e3, SMALLEST_MS)


def cumulative_plot(
    drawn: list[tuple[FlowSummary, npt.NDArray[np.float64]]],
    styles: dict[str, PlotStyle],
    name: str,
    title: str,
    texts: tuple[str, str, str],
) -> Plot:
    """Draw cumulative curves of one flow, by protocol: quantiles 0, 0.01, ..., 1 in ms, a row for each seed.

    `texts` are the labels of both axes, upright first, and the caption.
    """
    share, value, caption = texts
    with plot_context():
        figure = new_figure(WIDTH_IN, HEIGHT_IN + LEGEND_ROW_IN * -(-len(drawn) // LEGEND_COLUMNS))
        axes = figure.subplots()
        for summary, curves in drawn:
            _curve(axes, summary, curves, styles[summary.protocol])
        axes.set_title(drawn[0][0].heading)
        axes.set_ylim(0, 1.01)
        axes.set_ylabel(share)
        axes.set_xlabel(value)
        _logarithmic(axes, np.concatenate([curves.ravel() for _, curves in drawn]))
        figure.legend(loc="outside lower center", ncols=min(LEGEND_COLUMNS, len(drawn)))
        seeds = max(len(curves) for _, curves in drawn)
        if seeds > 1:
            caption += f" Thin: each of the {seeds} seeds; bold: mean of their quantiles."
        return finish(figure, name, title, caption)


def _curve(axes: Any, flow: FlowSummary, curves: npt.NDArray[np.float64], style: PlotStyle) -> None:
    if len(curves) > 1:
        for curve in curves:
            axes.plot(curve, np.linspace(0, 1, curve.size), color=style.colour, linewidth=0.6, alpha=0.45)
    mean = curves.mean(axis=0)
    axes.plot(
        mean, np.linspace(0, 1, mean.size), color=style.colour, linestyle=style.dashes, linewidth=2,
        marker=style.marker, markersize=4.5, markevery=(5, 15), markeredgewidth=0,
        label=legend_label(flow.protocol + flow.mark),
    )  # fmt: skip


def _logarithmic(axes: Any, values: npt.NDArray[np.float64]) -> None:
    low, high = float(values.min()) * 0.85, float(values.max()) * 1.18
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    logarithmic_ticks(axes.xaxis, low, high)
