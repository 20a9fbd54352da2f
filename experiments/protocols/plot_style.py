"""How a protocol is drawn: colours, hatches, markers and line styles that stay apart without colour vision.

Okabe and Ito's colours (Color Universal Design, 2008), with a violet and a wine red that stay apart from them
for every colour vision.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlotStyle:
    """How one category is drawn."""

    colour: str
    hatch: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


BLUE = PlotStyle("#0072B2", "", "o", "solid")
VERMILION = PlotStyle("#D55E00", "///", "s", (0, (5, 1.5)))
GREEN = PlotStyle("#009E73", "...", "^", (0, (1.2, 1.2)))
PINK = PlotStyle("#CC79A7", "xxx", "D", (0, (6, 1.5, 1.2, 1.5)))
ORANGE = PlotStyle("#E69F00", "\\\\\\", "v", (0, (3, 1)))
SKY = PlotStyle("#56B4E9", "---", "P", (0, (5, 1, 1.2, 1, 1.2, 1)))
VIOLET = PlotStyle("#7A2FBF", "|||", "X", (0, (9, 2)))
WINE = PlotStyle("#8B1A4A", "+++", "p", (0, (3, 1, 3, 1, 1.2, 1)))
YELLOW = PlotStyle("#F0E442", "ooo", "*", (0, (2, 2)))
BLACK = PlotStyle("#000000", "**", "h", (0, (1, 1, 4, 1)))

PLOT_STYLES = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, VIOLET, WINE, YELLOW)
