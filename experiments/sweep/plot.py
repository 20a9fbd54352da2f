"""Admitted and received goodput against load, for each protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.report.canvas import Plot, finish, legend_label, new_figure, style
from experiments.report.palette import MUTED, Look, protocol_looks
from experiments.report.statistics import Estimate
from experiments.sweep.summary import Row

PANEL_IN = (2.75, 2.9)
UNITS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))


def plot_sweep(rows: Sequence[Row], title: str, seeds: int) -> Plot:
    """Draw a panel for each protocol with the same axes, so that panels can be compared.

    Args:
        rows: Of the summary, loads rising.
        title: Above the panels.
        seeds: How many each mean is over.
    """
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    looks = protocol_looks(protocols)
    largest_bps = max((row.requested_bps.mean for row in rows), default=0.0)
    scale, unit = next(((s, u) for s, u in UNITS if largest_bps >= s), UNITS[-1])
    with style():
        figure = new_figure(PANEL_IN[0] * len(protocols) + 0.4, PANEL_IN[1])
        panels = figure.subplots(1, len(protocols), sharex=True, sharey=True, squeeze=False)[0]
        for axes, protocol in zip(panels, protocols, strict=True):
            own = [row for row in rows if row.protocol == protocol]
            _panel(axes, own, looks[protocol], scale)
            axes.set_title(legend_label(protocol))
            axes.set_xlabel("load")
        panels[0].set_ylabel(f"goodput in {unit}")
        panels[0].set_ylim(bottom=0)
        figure.suptitle(title, fontsize=9.5)
        caption = "Asked for (grey), admitted (hollow) and received (filled) goodput of all flows"
        caption += "." if seeds == 1 else f"; means over {seeds} seeds with 95 % confidence intervals."
        return finish(figure, "sweep", f"Goodput against load: {title}", caption)


def _panel(axes: Any, rows: Sequence[Row], look: Look, scale: float) -> None:
    loads = [row.load for row in rows]
    requested = [row.requested_bps.mean / scale for row in rows]
    axes.plot(loads, requested, color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)), label="asked for")
    admitted = {"markerfacecolor": "none", "linewidth": 1.1, "linestyle": (0, (4, 2)), "markersize": 8}
    _line(axes, loads, [row.admitted_bps for row in rows], look, scale, label="admitted", **admitted)
    _line(axes, loads, [row.received_bps for row in rows], look, scale, label="received", markersize=4.5)
    axes.legend(loc="upper left")


def _line(
    axes: Any, loads: list[float], values: list[Estimate], look: Look, scale: float, **drawn: Any
) -> None:
    halves = [value.half_width for value in values]
    axes.errorbar(
        loads,
        [value.mean / scale for value in values],
        yerr=None if None in halves else [half / scale for half in halves if half is not None],
        color=look.colour,
        marker=look.marker,
        capsize=2.5,
        **drawn,
    )
