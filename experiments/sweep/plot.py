"""Goodput and delay against load, all protocols in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.analysis.statistics import Estimate
from experiments.report.canvas import Plot, finish, legend_label, new_figure, plot_context
from experiments.report.palette import MUTED, PlotStyle, protocol_styles
from experiments.report.units import axis_unit
from experiments.sweep.summary import SweepRow

SIZE_IN = (7.2, 3.2)
MS_PER_S = 1e3


def plot_sweep(rows: Sequence[SweepRow], title: str, seeds: int) -> Plot:
    """Draw goodput on the left and mean delay on the right, a line for each protocol."""
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    styles = protocol_styles(protocols)
    with plot_context():
        figure = new_figure(*SIZE_IN)
        goodput, delay = figure.subplots(1, 2, sharex=True)
        _draw_goodput(goodput, rows, styles)
        _draw_delay(delay, rows, styles)
        for axes in (goodput, delay):
            axes.set_xlabel("load")
            axes.set_ylim(bottom=0)
        handles, labels = goodput.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(protocols) + 2)
        figure.suptitle(title, fontsize=9.5)
        caption = "Left: asked for (dotted), admitted (hollow, dashed) and received goodput of all flows"
        caption += "; right: mean delay of what was received"
        caption += "." if seeds == 1 else f"; means over {seeds} seeds with 95 % confidence intervals."
        return finish(figure, "sweep", f"Goodput and delay against load: {title}", caption)


def _draw_goodput(axes: Any, rows: Sequence[SweepRow], styles: dict[str, PlotStyle]) -> None:
    largest_bps = max((row.requested_bps.mean for row in rows), default=0.0)
    scale, label = axis_unit("goodput_bps", largest_bps)
    requested = {row.load: row.requested_bps.mean * scale for row in rows}
    axes.plot(
        [*requested],
        [*requested.values()],
        color=MUTED,
        linewidth=1.0,
        linestyle=(0, (1, 2)),
        label="asked for",
    )
    hollow = {"markerfacecolor": "none", "linewidth": 1.0, "linestyle": (0, (4, 2)), "markersize": 8}
    for protocol, style in styles.items():
        own = [row for row in rows if row.protocol == protocol]
        loads = [row.load for row in own]
        _line(axes, loads, [row.admitted_bps for row in own], style, scale, **hollow)
        received = [row.received_bps for row in own]
        _line(axes, loads, received, style, scale, label=legend_label(protocol), markersize=4.5)
    axes.plot([], [], color=MUTED, marker="o", label="admitted", **hollow)
    axes.set_ylabel(label)


def _draw_delay(axes: Any, rows: Sequence[SweepRow], styles: dict[str, PlotStyle]) -> None:
    for protocol, style in styles.items():
        known = {row.load: row.delay_mean_s for row in rows if row.protocol == protocol and row.delay_mean_s}
        _line(axes, [*known], [*known.values()], style, MS_PER_S, markersize=4.5)
    axes.set_ylabel("mean delay in ms")


def _line(
    axes: Any, loads: list[float], values: list[Estimate], style: PlotStyle, scale: float, **drawn: Any
) -> None:
    halves = [value.half_width for value in values]
    axes.errorbar(
        loads,
        [value.mean * scale for value in values],
        yerr=None if None in halves else [half * scale for half in halves if half is not None],
        color=style.colour,
        marker=style.marker,
        capsize=2.5,
        elinewidth=0.8,
        **drawn,
    )
