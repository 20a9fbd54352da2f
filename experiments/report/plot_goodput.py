"""Goodput of each flow with each protocol: bars with intervals, the requested rate, the paper's figure."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

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
from experiments.report.palette import INK, MUTED, PAPER, PlotStyle, protocol_styles
from experiments.report.summary import CaseSummary, FlowSummary

BAR_IN = 0.3
MARGIN_IN = 1.15
"""Title, axis and legend."""
REQUESTED: dict[str, Any] = {"color": INK, "linewidth": 1.3, "linestyle": (0, (3, 1.5))}
DIAMOND: dict[str, Any] = {
    "marker": "D",
    "markersize": 5.5,
    "color": PAPER,
    "markeredgecolor": INK,
    "linestyle": "none",
}


def plot_goodputs(case: CaseSummary) -> list[Plot]:
    """Draw the goodput of a case, a plot for each flow and a bar for each protocol."""
    styles = protocol_styles(case.protocols)
    return [_plot(case.name, flow, group, styles) for flow, group in case.flows.items()]


def _plot(case: str, flow: str, group: list[FlowSummary], styles: dict[str, PlotStyle]) -> Plot:
    with plot_context():
        figure = new_figure(WIDTH_IN, BAR_IN * len(group) + MARGIN_IN)
        axes = figure.subplots()
        draw_bars(axes, [_bar(each, styles) for each in group], (max(map(_reach, group)) or 1.0) / 1e6)
        for row, each in enumerate(group):
            if each.goodput_ratio is not None:
                requested = each.requested_bps / 1e6
                axes.plot([requested, requested], [row - 0.46, row + 0.46], **REQUESTED)
            if each.paper:
                axes.plot(each.paper.goodput_bps / 1e6, row, zorder=5, clip_on=False, **DIAMOND)
        axes.set_title(group[0].heading)
        axes.set_xlabel("goodput in Mbit/s")
        figure.legend(handles=_legend(group), loc="outside lower center", ncols=3)
        title = f"Goodput of flow {flow}, case {case}"
        return finish(figure, file_stem("goodput", case, flow), title, _caption(group))


def _bar(flow: FlowSummary, styles: dict[str, PlotStyle]) -> Bar:
    goodput, style = flow.goodput_bps, styles[flow.protocol]
    half = None if goodput.half_width is None else goodput.half_width / 1e6
    return Bar(flow.protocol, style, goodput.mean / 1e6, half, units.mbps(goodput.mean) + flow.mark)


def _reach(flow: FlowSummary) -> float:
    paper = flow.paper.goodput_bps if flow.paper else 0.0
    requested_bps = 0.0 if flow.goodput_ratio is None else flow.requested_bps
    return max(requested_bps, flow.goodput_bps.mean + (flow.goodput_bps.half_width or 0.0), paper)


def _legend(group: list[FlowSummary]) -> list[Any]:
    intervals = any(flow.goodput_bps.half_width is not None for flow in group)
    handles: list[Any] = [
        Patch(facecolor=MUTED, edgecolor=INK, label="received, 95 % interval" if intervals else "received")
    ]
    if any(flow.goodput_ratio is not None for flow in group):
        handles.insert(0, Line2D([], [], label="requested", **REQUESTED))
    if any(flow.paper for flow in group):
        handles.append(Line2D([], [], label="paper, Table I", **DIAMOND))
    return handles


def _caption(group: list[FlowSummary]) -> str:
    count = max(flow.goodput_bps.count for flow in group)
    if count == 1:
        return "One run for each protocol; the number beside a bar is the goodput in Mbit/s."
    return f"Mean over {count} seeds with its 95 % confidence interval; beside a bar the mean in Mbit/s."
