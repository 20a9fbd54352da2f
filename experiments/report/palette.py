"""Colours, hatches, markers and line styles that stay apart without colour vision and in grey.

Categories take Okabe and Ito's colours (Color Universal Design, 2008), with a violet and a wine red that stay
apart from them for every colour vision; utilisation takes cividis (Nuñez et al., 2018). A protocol keeps its
look in every report, whichever others stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

INK = "#1b1f24"
FAINT = "#d5dae1"
MUTED = "#59636e"
PAPER = "#ffffff"
"""Inlined plots replace these four by the page's own colours, so that they follow light and dark."""


@dataclass(frozen=True)
class Look:
    """How one category is drawn."""

    colour: str
    hatch: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


LOOKS = (
    Look("#0072B2", "", "o", "solid"),
    Look("#D55E00", "///", "s", (0, (5, 1.5))),
    Look("#009E73", "...", "^", (0, (1.2, 1.2))),
    Look("#CC79A7", "xxx", "D", (0, (6, 1.5, 1.2, 1.5))),
    Look("#E69F00", "\\\\\\", "v", (0, (3, 1))),
    Look("#56B4E9", "---", "P", (0, (5, 1, 1.2, 1, 1.2, 1))),
    Look("#7A2FBF", "|||", "X", (0, (9, 2))),
    Look("#8B1A4A", "+++", "p", (0, (3, 1, 3, 1, 1.2, 1))),
    Look("#F0E442", "ooo", "*", (0, (2, 2))),
)

_FIXED = {
    "mstcp": 0,
    "ospf": 1,
    "ppfs": 2,
    "mptcp": 3,
    "ecmp": 4,
    "ppfs-group": 5,
    "mptcp-sdn": 6,
    "mptcp-dualhomed": 7,
}


def protocol_looks(protocols: Iterable[str]) -> dict[str, Look]:
    """Return the look of each protocol; those that have none of their own share the rest, in order."""
    names = list(dict.fromkeys(protocols))
    taken = {_FIXED[name] for name in names if name in _FIXED}
    free = [index for index in range(len(LOOKS)) if index not in taken] or list(range(len(LOOKS)))
    looks = {}
    unnamed = 0
    for name in names:
        if name in _FIXED:
            looks[name] = LOOKS[_FIXED[name]]
        else:
            looks[name] = LOOKS[free[unnamed % len(free)]]
            unnamed += 1
    return looks


def path_look(index: int) -> Look:
    """Return the look of a flow's path number `index`."""
    return LOOKS[index % len(LOOKS)]
