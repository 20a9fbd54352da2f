"""A figure of any measure for a paper: as distribution, as boxes, or as lines with their intervals."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.patches import Patch

from experiments.analysis.samples import Question, Sample
from experiments.protocols import PROTOCOLS
from experiments.report.canvas import Plot, finish, legend_label, logarithmic_ticks, new_figure, plot_context
from experiments.report.palette import PlotStyle, path_style, protocol_styles
from experiments.report.units import axis_unit

GROUP_WIDTH = 0.8
"""Width of all boxes at one place of the axis, as a part of the distance between two places."""
LEGEND_COLUMNS = 3


class PlotKind(enum.Enum):
    """How values are drawn."""

    CDF = "cdf"
    """The share of values that are no larger."""
    BOX = "box"
    """Median, quartiles, and whiskers up to 1.5 times the range between them (Tukey)."""
    LINE = "line"
    """Means of the runs with their 95 % confidence intervals."""


@dataclass(frozen=True)
class Form:
    """How a figure is drawn: its size in inches, letters in points, and texts that replace its own."""

    kind: PlotKind
    width_in: float = 3.5
    height_in: float = 2.3
    font_size_pt: float = 8.0
    is_logarithmic: bool = False
    title: str | None = None
    x_label: str | None = None
    y_label: str | None = None


def draw(samples: Sequence[Sample], question: Question, form: Form) -> Plot:
    """Draw samples; their groups have one colour, marker and line each."""
    groups = list(dict.fromkeys(sample.group for sample in samples))
    styles = _styles(question.by, groups)
    largest = max(abs(value) for sample in samples for value in sample.values)
    scale, label = axis_unit(question.measure, largest)
    with plot_context(form.font_size_pt):
        figure = new_figure(form.width_in, form.height_in)
        axes = figure.subplots()
        _DRAWN[form.kind](axes, samples, styles, scale)
        _label(axes, question, form, label)
        if len(groups) > 1:
            columns = min(LEGEND_COLUMNS, len(groups))
            figure.legend(
                handles=_handles(axes, form.kind, styles), loc="outside upper center", ncols=columns
            )
        caption = f"{question.measure} by {question.by}"
        return finish(figure, "figure", form.title or caption, caption)


def _styles(by: str, groups: Sequence[str]) -> dict[str, PlotStyle]:
    if all(group in PROTOCOLS for group in groups) and by == "protocol":
        return protocol_styles(groups)
    return {group: path_style(number) for number, group in enumerate(groups)}


def _draw_cdf(axes: Any, samples: Sequence[Sample], styles: dict[str, PlotStyle], scale: float) -> None:
    for group, style in styles.items():
        values = np.sort([v * scale for sample in samples if sample.group == group for v in sample.values])
        shares = np.arange(1, len(values) + 1) / len(values)
        axes.step(
            np.r_[values[:1], values],
            np.r_[0.0, shares],
            where="post",
            color=style.colour,
            linestyle=style.dashes,
            label=legend_label(group),
        )
    axes.set_ylim(0, 1)


def _draw_boxes(axes: Any, samples: Sequence[Sample], styles: dict[str, PlotStyle], scale: float) -> None:
    places = list(dict.fromkeys(sample.at for sample in samples))
    has_places = places != [None]
    groups = list(styles)
    for sample in samples:
        number = groups.index(sample.group)
        width = GROUP_WIDTH / len(groups) if has_places else GROUP_WIDTH * 0.7
        centre = places.index(sample.at) + (number - (len(groups) - 1) / 2) * width if has_places else number
        drawn = axes.boxplot(
            [[value * scale for value in sample.values]],
            positions=[centre],
            widths=[width * 0.85],
            patch_artist=True,
            manage_ticks=False,
            flierprops={"markersize": 2.5},
            medianprops={"color": "black"},
        )
        for box in drawn["boxes"]:
            box.set_facecolor(styles[sample.group].colour)
            box.set_alpha(0.75)
    names = [str(place) for place in places] if has_places else [legend_label(group) for group in groups]
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")


def _draw_lines(axes: Any, samples: Sequence[Sample], styles: dict[str, PlotStyle], scale: float) -> None:
    places: list[Any] = list(dict.fromkeys(sample.at for sample in samples))
    are_numbers = all(isinstance(place, int | float) for place in places)
    places = sorted(places) if are_numbers else places
    for group, style in styles.items():
        own = {sample.at: sample.mean for sample in samples if sample.group == group}
        at = [place for place in places if place in own]
        halves = [own[place].half_width or 0.0 for place in at]
        marker = style.marker if len(at) <= MAX_MARKERS else ""
        axes.errorbar(
            at if are_numbers else [places.index(place) for place in at],
            [own[place].mean * scale for place in at],
            yerr=[half * scale for half in halves] if any(halves) else None,
            color=style.colour,
            marker=marker,
            markersize=3.5,
            linestyle=style.dashes,
            linewidth=1.2,
            capsize=2,
            elinewidth=0.8,
            label=legend_label(group),
        )
    if not are_numbers:
        axes.set_xticks(range(len(places)), [str(place) for place in places])


MAX_MARKERS = 25
"""A line of more points has none: they would hide it."""
_DRAWN = {PlotKind.CDF: _draw_cdf, PlotKind.BOX: _draw_boxes, PlotKind.LINE: _draw_lines}


def _label(axes: Any, question: Question, form: Form, measure: str) -> None:
    if form.kind is PlotKind.CDF:
        x, y = measure, "share"
    else:
        x, y = axis_unit(question.over, 1.0)[1] if question.over else question.by, measure
    axes.set_xlabel(x if form.x_label is None else form.x_label)
    axes.set_ylabel(y if form.y_label is None else form.y_label)
    if form.title:
        axes.set_title(form.title)
    if form.is_logarithmic:
        is_x = form.kind is PlotKind.CDF
        (axes.set_xscale if is_x else axes.set_yscale)("log")
        logarithmic_ticks(*((axes.xaxis, *axes.get_xlim()) if is_x else (axes.yaxis, *axes.get_ylim())))
    elif form.kind is not PlotKind.CDF:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))


def _handles(axes: Any, kind: PlotKind, styles: dict[str, PlotStyle]) -> list[Any]:
    if kind is PlotKind.BOX:
        return [
            Patch(facecolor=style.colour, alpha=0.75, label=legend_label(name))
            for name, style in styles.items()
        ]
    handles: list[Any] = axes.get_legend_handles_labels()[0]
    return handles
