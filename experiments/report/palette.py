"""The report's colours; those of protocols are their own (`experiments.protocols.look`).

Utilisation takes cividis (Nuñez et al., 2018). A protocol keeps its look in every report, whichever others
stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.protocols import PROTOCOLS
from experiments.protocols.look import LOOKS, Look

__all__ = ["FAINT", "INK", "LOOKS", "MUTED", "PAPER", "Look", "path_look", "protocol_looks"]

INK = "#1b1f24"
FAINT = "#d5dae1"
MUTED = "#59636e"
PAPER = "#ffffff"
"""Inlined plots replace these four by the page's own colours, so that they follow light and dark."""


def protocol_looks(protocols: Iterable[str]) -> dict[str, Look]:
    """Return the look of each protocol; those that have none of their own share the rest, in order."""
    names = list(dict.fromkeys(protocols))
    own = {name: PROTOCOLS[name].look for name in names if name in PROTOCOLS}
    free = [look for look in LOOKS if look not in own.values()] or list(LOOKS)
    without = [name for name in names if own.get(name) is None]
    shared = {name: free[number % len(free)] for number, name in enumerate(without)}
    return {name: own.get(name) or shared[name] for name in names}


def path_look(index: int) -> Look:
    """Return the look of a flow's path number `index`."""
    return LOOKS[index % len(LOOKS)]
