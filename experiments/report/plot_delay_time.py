"""Mean delay over time: a panel for each flow, a curve for each protocol with the range of its seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.report.canvas import (
    Plot,
    file_stem,
    finish,
    legend_label,
    logarithmic_ticks,
    new_figure,
    style,
)
from experiments.report.palette import Look, protocol_looks
from experiments.report.reproduction import Row

WIDTH_IN = 7.2
PANEL_IN = 2.1
POINTS = 120
"""Intervals drawn; the series' are joined to that many."""


def plot_delay_over_time(variant: str, rows: list[Row]) -> Plot:
    """Draw the delay of all flows over the time of the runs, on a logarithmic scale.

    Args:
        variant: Of the network.
        rows: Of the table; those of one case and flow share a panel.
    """
    panels: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        panels.setdefault((row.paper.case, row.paper.flow), []).append(row)
    looks = protocol_looks(row.paper.protocol for row in rows)
    columns = 2
    lines = -(-len(panels) // columns)
    with style():
        figure = new_figure(WIDTH_IN, PANEL_IN * lines + 0.5)
        grid = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for axes, ((case, flow), group) in zip(grid.ravel(), panels.items(), strict=False):
            axes.set_title(f"Case {case}, flow {flow}")
            for row in group:
                _curve(axes, row, looks[row.paper.protocol])
        for axes in grid.ravel()[len(panels) :]:
            axes.set_visible(False)
        _scale(grid)
        handles = {handle.get_label(): handle for axes in grid.ravel() for handle in axes.get_lines()}
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=len(handles))
        return finish(
            figure,
            file_stem("delay-over-time", variant),
            f"Mean delay over time, butterfly variant {variant}",
            "Mean delay of what was read in each interval. Curves: mean over the seeds; shaded: their range.",
        )


def _scale(grid: npt.NDArray[Any]) -> None:
    first = grid[0, 0]
    first.set_yscale("log")
    logarithmic_ticks(first.yaxis, *first.get_ylim())
    first.set_xlim(left=0)
    for axes in grid[:, 0]:
        axes.set_ylabel("delay in ms")
    for axes in grid[-1, :]:
        axes.set_xlabel("time in s")


def _curve(axes: Any, row: Row, look: Look) -> None:
    times_s, delays_ms = joined(row)
    if not times_s.size:
        return
    with np.errstate(all="ignore"):
        middle = np.nanmean(delays_ms, axis=0)
    axes.fill_between(
        times_s, np.nanmin(delays_ms, axis=0), np.nanmax(delays_ms, axis=0),
        color=look.colour, alpha=0.18, linewidth=0,
    )  # fmt: skip
    axes.plot(
        times_s, middle, color=look.colour, linestyle=look.dashes, linewidth=1.6,
        marker=look.marker, markersize=3.5, markeredgewidth=0, markevery=max(1, times_s.size // 8),
        label=legend_label(row.paper.protocol),
    )  # fmt: skip


def joined(row: Row) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return times in s, and for each seed the mean delay in ms until then since the time before.

    Means are weighted by the bytes that were read; intervals in which some seed read nothing are left out.
    """
    series = [result.series for result in row.flow.results if result.series.time_s]
    count = min((len(each.time_s) for each in series), default=0)
    if not count:
        return np.empty(0), np.empty((0, 0))
    step = max(1, count // POINTS)
    whole = count // step * step
    bits = np.array([each.goodput_bps[:whole] for each in series], dtype=np.float64)
    delays = np.array([each.delay_mean_s[:whole] for each in series], dtype=np.float64)
    weight = bits.reshape(len(series), -1, step)
    total = (np.nan_to_num(delays).reshape(weight.shape) * weight).sum(axis=2)
    read = weight.sum(axis=2)
    kept = (read > 0).all(axis=0)
    times_s = np.array(series[0].time_s[:whole], dtype=np.float64).reshape(-1, step)[:, -1]
    return times_s[kept], total[:, kept] / read[:, kept] * 1e3
