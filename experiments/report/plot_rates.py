"""Rate over time of each stream: a panel for each protocol, a colour for each path."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from experiments.model.results import FlowResult
from experiments.report.canvas import (
    WIDTH_IN,
    Plot,
    file_stem,
    finish,
    legend_label,
    new_figure,
    plot_context,
)
from experiments.report.palette import INK, path_style
from experiments.report.summary import CaseSummary, FlowSummary

PANEL_IN = 1.2
LEGEND_ROW_IN = 0.2
UNKNOWN_PATH = "path not known"
PATHS_NAMED = 8

PathKey = tuple[str, ...]


def plot_rates(case: CaseSummary) -> list[Plot]:
    """Draw the streams' rates of a case's first seeds, one plot for each flow."""
    return [_plot(case.name, flow, group) for flow, group in case.flows.items()]


def _plot(case: str, flow: str, group: list[FlowSummary]) -> Plot:
    indices = path_indices([summary.results[0] for summary in group])
    named = list(indices)[:PATHS_NAMED]
    columns = 2 if len(group) > 1 else 1
    rows = -(-len(group) // columns)
    with plot_context():
        figure = new_figure(WIDTH_IN, PANEL_IN * rows + LEGEND_ROW_IN * (len(named) + 2) + 0.6)
        figure.suptitle(group[0].heading, x=0.01, ha="left", fontsize=9.5, fontweight="bold")
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, summary in zip(panels, group, strict=False):
            _panel(axes, summary, indices)
        for axes in panels[len(group) :]:
            axes.set_visible(False)
        panels[0].set_ylim(bottom=0)
        panels[0].yaxis.set_major_locator(MaxNLocator(4))
        for axes in panels[: len(group) : columns]:
            axes.set_ylabel("Mbit/s")
        # A panel above an empty place is the lowest of its column.
        for axes in panels[max(0, len(group) - columns) : len(group)]:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("time in s")
        figure.legend(handles=_legend(indices, named), loc="outside lower left", ncols=1)
        return finish(
            figure,
            file_stem("rates", case, flow),
            f"Rate of each stream of flow {flow}, case {case}",
            _caption(group),
        )


def path_indices(results: list[FlowResult]) -> dict[PathKey, int]:
    """Number the paths of a flow's streams in order of appearance, alike for all protocols."""
    keys = [tuple(stream.path or ()) for result in results for stream in result.series.streams]
    return {key: index for index, key in enumerate(dict.fromkeys(keys))}


def _panel(axes: Any, flow: FlowSummary, indices: dict[PathKey, int]) -> None:
    series = flow.results[0].series
    axes.set_title(legend_label(flow.protocol + flow.mark), fontweight="normal", fontsize=9)
    if not series.time_s:
        axes.text(0.5, 0.5, "no series recorded", transform=axes.transAxes, ha="center", va="center")
        return
    for stream in series.streams:
        style = path_style(indices[tuple(stream.path or ())])
        axes.plot(
            series.time_s,
            [rate / 1e6 for rate in stream.rate_bps],
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.3,
        )
    axes.plot(series.time_s, [rate / 1e6 for rate in series.goodput_bps], color=INK, linewidth=0.8)


def _legend(indices: dict[PathKey, int], named: list[PathKey]) -> list[Any]:
    handles = [Line2D([], [], color=INK, linewidth=0.8, label="received in order (goodput)")]
    for key in named:
        style = path_style(indices[key])
        label = " → ".join(key) if key else UNKNOWN_PATH
        handles.append(
            Line2D(
                [], [], color=style.colour, linestyle=style.dashes, linewidth=1.6, label=legend_label(label)
            )
        )
    if len(indices) > len(named):
        handles.append(Line2D([], [], linestyle="none", label=f"and {len(indices) - len(named)} more paths"))
    return handles


def _caption(group: list[FlowSummary]) -> str:
    seeds = sorted({summary.runs[0].seed for summary in group})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    return f"Carried by each stream, each byte once, coloured by its path, and received in order ({which})."
