"""Figures with one style, saved as SVG, PNG and PDF with the same bytes on every run."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from experiments.model.atomic_files import write_atomically
from experiments.report.palette import FAINT, INK, MUTED, PAPER, PlotStyle

POINTS_PER_INCH = 72
CSS_PX_PER_INCH = 96
MIN_SCALE = 0.65
"""Scale of a figure on a small screen, at least: letters of 9 points are 8 pixels high then."""
WIDTH_IN = 5.2
PNG_DPI = 160
FONT_SIZE_PT = 9.0

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": FONT_SIZE_PT,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "hatch.color": PAPER,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # whole letters: journals refuse bitmaps of them (type 3)
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # names may hold a dollar sign
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}


@dataclass(frozen=True)
class Plot:
    """A drawn figure; `name` is its file name without ending, `min_width_px` keeps its text legible."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    pdf: bytes
    min_width_px: int

    def write(self, folder: Path) -> None:
        """Write the plot as SVG, PNG and PDF, named after it; raises OSError."""
        write_atomically(folder / f"{self.name}.svg", self.svg)
        write_atomically(folder / f"{self.name}.png", self.png)
        write_atomically(folder / f"{self.name}.pdf", self.pdf)

    def write_as(self, path: Path) -> None:
        """Write the plot to one file in the form of its ending (.pdf, .svg or .png); raises OSError."""
        forms: dict[str, str | bytes] = {".pdf": self.pdf, ".svg": self.svg, ".png": self.png}
        write_atomically(path, forms[path.suffix])


@dataclass(frozen=True)
class Bar:
    """A bar of a chart, in the axis's unit: the text stands behind all bars, or alone without a length."""

    name: str
    style: PlotStyle
    length: float | None
    half_width: float | None
    text: str


@contextmanager
def plot_context(font_size_pt: float = FONT_SIZE_PT) -> Iterator[None]:
    """Draw in the report's style within this context, quiet about letters that the font lacks."""
    scale = font_size_pt / FONT_SIZE_PT
    sizes = {key: _STYLE[key] * scale for key in _STYLE if key.endswith("size")}
    with mpl.rc_context({**_STYLE, **sizes}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+", category=UserWarning)
        yield


def new_figure(width_in: float, height_in: float) -> Any:
    """Return a figure that fits its contents by itself; draw and `finish` within `plot_context()`."""
    return Figure(figsize=(width_in, height_in), layout="constrained")


def finish(figure: Any, name: str, title: str, caption: str) -> Plot:
    """Render a figure without date or version, its identifiers seeded by `name`."""
    svg, png, pdf = io.StringIO(), io.BytesIO(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None, "Title": title}
        figure.savefig(svg, format="svg", metadata=metadata)
    figure.set_layout_engine(None)  # laid out already; a placeholder would have all drawn twice
    figure.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    none = {"Creator": None, "Producer": None, "CreationDate": None}
    figure.savefig(pdf, format="pdf", metadata={"Title": title, **none})
    min_width_px = round(figure.get_figwidth() * CSS_PX_PER_INCH * MIN_SCALE)
    return Plot(name, title, caption, svg.getvalue(), png.getvalue(), pdf.getvalue(), min_width_px)


def logarithmic_ticks(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers: powers of ten, and 2 and 5 where it is short."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1e3 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label_rows(axes: Any, names: Sequence[str]) -> None:
    """Name the rows of a chart, from the top."""
    axes.set_yticks(range(len(names)), [legend_label(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.45, -0.55)


def draw_bars(axes: Any, bars: Sequence[Bar], reach: float) -> None:
    """Draw bars with their intervals and texts; `reach` is the end of the longest."""
    for row, bar in enumerate(bars):
        if bar.length is not None:
            style, size = bar.style, {"height": 0.68}
            colours = {"color": style.colour, "hatch": style.hatch, "edgecolor": PAPER}
            axes.barh(row, bar.length, linewidth=0, **size, **colours)
            axes.barh(row, bar.length, fill=False, edgecolor=INK, linewidth=0.7, **size)
            if bar.half_width is not None:
                axes.errorbar(bar.length, row, xerr=bar.half_width, color=INK, linewidth=1.2, capsize=3)
        axes.text(reach * (0.01 if bar.length is None else 1.04), row, bar.text, va="center", fontsize=8.5)
    label_rows(axes, [bar.name for bar in bars])
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, reach * 1.18)


def file_stem(*parts: str) -> str:
    """Return a file name of letters, digits and hyphens made from `parts`, whatever they hold."""
    words = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)
    return "-".join(word or "x" for word in words)[:100]


def legend_label(text: str) -> str:
    """Return a label that matplotlib shows even if it begins with an underscore."""
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text


def inline(plot: Plot) -> str:
    """Return the SVG to stand within an HTML page: no prologue, own identifiers, the page's colours."""
    svg = plot.svg[plot.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\sid=")', rf"\g<1>{plot.name}-", svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{plot.name}-", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r'<svg \1role="img"', svg, count=1)
    for colour, variable in ((INK, "ink"), (FAINT, "rule"), (MUTED, "muted"), (PAPER, "paper")):
        svg = re.sub(colour + r"(?=[;\"])", f"var(--{variable})", svg)
    # A presentation attribute cannot hold var(); the style property can.
    return re.sub(r'\b(fill|stroke)="(var\(--\w+\))"', r'style="\1: \2"', svg)
