"""How a protocol is drawn: colours, hatches, markers and line styles that stay apart without colour vision.

Okabe and Ito's colours (Color Universal Design, 2008), with a violet and a wine red that stay apart from them
for every colour vision.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How one category is drawn."""

    colour: str
    hatch: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


BLUE = Look("#0072B2", "", "o", "solid")
VERMILION = Look("#D55E00", "///", "s", (0, (5, 1.5)))
GREEN = Look("#009E73", "...", "^", (0, (1.2, 1.2)))
PINK = Look("#CC79A7", "xxx", "D", (0, (6, 1.5, 1.2, 1.5)))
ORANGE = Look("#E69F00", "\\\\\\", "v", (0, (3, 1)))
SKY = Look("#56B4E9", "---", "P", (0, (5, 1, 1.2, 1, 1.2, 1)))
VIOLET = Look("#7A2FBF", "|||", "X", (0, (9, 2)))
WINE = Look("#8B1A4A", "+++", "p", (0, (3, 1, 3, 1, 1.2, 1)))
YELLOW = Look("#F0E442", "ooo", "*", (0, (2, 2)))
BLACK = Look("#000000", "**", "h", (0, (1, 1, 4, 1)))

LOOKS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, VIOLET, WINE, YELLOW)
