"""The report's colours; those of protocols are their own (`experiments.protocols.plot_style`).

Utilisation takes cividis (Nuñez et al., 2018). A protocol keeps its style in every report, whichever others
stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.protocols import PROTOCOLS
from experiments.protocols.plot_style import PLOT_STYLES, PlotStyle

__all__ = ["FAINT", "INK", "MUTED", "PAPER", "PLOT_STYLES", "PlotStyle", "path_style", "protocol_styles"]

INK = "#1b1f24"
FAINT = "#d5dae1"
MUTED = "#59636e"
PAPER = "#ffffff"
"""Inlined plots replace these four by the page's own colours, so that they follow light and dark."""


def protocol_styles(protocols: Iterable[str]) -> dict[str, PlotStyle]:
    """Return the style of each protocol; those that have none of their own share the rest, in order."""
    names = list(dict.fromkeys(protocols))
    own = {name: PROTOCOLS[name].plot_style for name in names if name in PROTOCOLS}
    free = [style for style in PLOT_STYLES if style not in own.values()] or list(PLOT_STYLES)
    without = [name for name in names if own.get(name) is None]
    shared = {name: free[number % len(free)] for number, name in enumerate(without)}
    return {name: own.get(name) or shared[name] for name in names}


def path_style(index: int) -> PlotStyle:
    """Return the style of a flow's path number `index`."""
    return PLOT_STYLES[index % len(PLOT_STYLES)]
