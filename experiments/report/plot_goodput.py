"""Goodput of each flow with each protocol: bars with intervals, the requested rate, the paper's figure."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.report import units
from experiments.report.canvas import WIDTH_IN, Plot, file_stem, finish, legend_label, new_figure, style
from experiments.report.palette import INK, MUTED, PAPER, Look, protocol_looks
from experiments.report.summary import CaseSummary, FlowSummary

BAR_IN = 0.3
AROUND_IN = 1.15
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
    looks = protocol_looks(case.protocols)
    return [_plot(case.name, flow, group, looks) for flow, group in case.flows.items()]


def _plot(case: str, flow: str, group: list[FlowSummary], looks: dict[str, Look]) -> Plot:
    with style():
        figure = new_figure(WIDTH_IN, BAR_IN * len(group) + AROUND_IN)
        axes = figure.subplots()
        _bars(axes, group, looks)
        axes.set_xlabel("goodput in Mbit/s")
        figure.legend(handles=_legend(group), loc="outside lower center", ncols=3)
        title = f"Goodput of flow {flow}, case {case}"
        return finish(figure, file_stem("goodput", case, flow), title, _caption(group))


def _bars(axes: Any, group: list[FlowSummary], looks: dict[str, Look]) -> None:
    reach = max(_reach(flow) for flow in group) or 1.0
    for row, flow in enumerate(group):
        _bar(axes, row, flow, looks[flow.protocol])
        text = units.mbps(flow.goodput_bps.mean) + ("" if flow.valid else " (invalid)")
        axes.text(reach * 1.04 / 1e6, row, text, va="center", fontsize=8.5)
    first = group[0]
    axes.set_title(f"Flow {first.flow}: {first.src} → {first.dst}")
    axes.set_yticks(range(len(group)), [legend_label(flow.protocol) for flow in group])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(group) - 0.45, -0.55)
    axes.set_xlim(0, reach * 1.18 / 1e6)


def _bar(axes: Any, row: int, flow: FlowSummary, look: Look) -> None:
    goodput = flow.goodput_bps
    axes.barh(
        row,
        goodput.mean / 1e6,
        height=0.68,
        color=look.colour,
        hatch=look.hatch,
        edgecolor=PAPER,
        linewidth=0,
    )
    axes.barh(row, goodput.mean / 1e6, height=0.68, fill=False, edgecolor=INK, linewidth=0.7)
    if goodput.half_width is not None:
        axes.errorbar(
            goodput.mean / 1e6, row, xerr=goodput.half_width / 1e6, color=INK, linewidth=1.2, capsize=3
        )
    if flow.goodput_ratio is not None:
        requested = flow.requested_bps / 1e6
        axes.plot([requested, requested], [row - 0.46, row + 0.46], **REQUESTED)
    if flow.paper:
        axes.plot(flow.paper.goodput_bps / 1e6, row, zorder=5, clip_on=False, **DIAMOND)


def _reach(flow: FlowSummary) -> float:
    paper = flow.paper.goodput_bps if flow.paper else 0.0
    requested_bps = 0.0 if flow.goodput_ratio is None else flow.requested_bps
    return max(requested_bps, flow.goodput_bps.mean + (flow.goodput_bps.half_width or 0.0), paper)


def _legend(group: list[FlowSummary]) -> list[Any]:
    intervals = any(flow.goodput_bps.half_width is not None for flow in group)
    handles: list[Any] = [
        Patch(facecolor=MUTED, edgecolor=INK, label="received, 95 % interval" if intervals else "received"),
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
