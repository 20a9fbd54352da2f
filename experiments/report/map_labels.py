"""Where the names of nodes stand on a map: beside their nodes, over no other name and no node.

Pure geometry in points, y upwards. Each name tries places around its node, the nearest ring first, and takes
the one that covers the fewest links and is nearer to its own node than to others. Names come in an order of
importance; one for which there is no room is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Point = tuple[float, float]
_Item = TypeVar("_Item")
CELL_PT = 40.0
GAP_PT = 2.0
RING_COST = 0.4
"""What a step away from the node counts, in links covered."""
NEARER_TO_ANOTHER = 6.0
"""What it counts, in links covered, if a name could be taken for that of another node."""
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""Where a name may stand, seen from its node; beside it first."""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Return whether the two share an area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def is_within(self, other: Box) -> bool:
        """Return whether it lies wholly in the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.bottom >= other.bottom
            and self.top <= other.top
        )

    def distance(self, point: Point) -> float:
        """Return the distance of a point from it."""
        x = max(self.left - point[0], 0.0, point[0] - self.right)
        y = max(self.bottom - point[1], 0.0, point[1] - self.top)
        return math.hypot(x, y)

    def is_crossed(self, a: Point, b: Point) -> bool:
        """Return whether the segment from a to b passes through it (Liang and Barsky's clipping)."""
        start, end = 0.0, 1.0
        for delta, low, high in (
            (b[0] - a[0], self.left - a[0], self.right - a[0]),
            (b[1] - a[1], self.bottom - a[1], self.top - a[1]),
        ):
            if delta == 0:
                if low > 0 or high < 0:
                    return False
                continue
            near, far = sorted((low / delta, high / delta))
            start, end = max(start, near), min(end, far)
        return start < end


@dataclass(frozen=True)
class PlacedName:
    """A name on the map: the middle of its text, and the room that it takes."""

    name: str
    x: float
    y: float
    box: Box


def around(middle: Point, radius: float) -> Box:
    """Return the square around a point."""
    x, y = middle
    return Box(x - radius, y - radius, x + radius, y + radius)


def place_names(
    names: Sequence[str],
    places: dict[str, Point],
    links: Iterable[tuple[Point, Point]],
    page: Box,
    size_of: Callable[[str], tuple[float, float]],
    *,
    radius: float,
    taken: Iterable[Box] = (),
    rings: int = 6,
) -> list[PlacedName]:
    """Return the names for which there is room, with their places.

    Names come with the most important first; they stay in the page, cover neither nodes, nor what is taken,
    nor each other, and rather no links. `rings` is how far from its node a name may stand, in steps.
    """
    lines = _Grid((_surrounding(*line), line) for line in links)
    nodes = _Grid((around(place, 0.0), place) for place in places.values())
    solid = _Grid((box, box) for box in (*(around(place, radius) for place in places.values()), *taken))
    placed = []
    for name in names:
        width, height = size_of(name)
        best: tuple[float, int, PlacedName] | None = None
        for order, (penalty, x, y) in enumerate(_candidates(places[name], width, height, radius, rings)):
            if best is not None and penalty >= best[0]:
                break
            box = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            if not box.is_within(page) or any(other.overlaps(box) for other in solid.near(box)):
                continue
            total = penalty + sum(box.is_crossed(*line) for line in lines.near(box))
            if total < (best[0] if best else math.inf) and _is_nearer_to_another(box, places[name], nodes):
                total += NEARER_TO_ANOTHER
            if best is None or (total, order) < best[:2]:
                best = (total, order, PlacedName(name, x, y, box))
        if best is not None:
            placed.append(best[2])
            solid.add(best[2].box, best[2].box)
    return placed


def _candidates(
    place: Point, width: float, height: float, radius: float, rings: int
) -> Iterator[tuple[float, float, float]]:
    """Yield the places to try, each with what its distance counts in links covered."""
    x, y = place
    for ring in range(rings):
        reach = radius + GAP_PT + ring * height * 0.6
        for dx, dy in DIRECTIONS:
            aside = max(radius + GAP_PT / 2, reach * math.sqrt(0.5)) if dx and dy else reach
            yield ring * RING_COST, x + dx * (aside + width / 2), y + dy * (aside + height / 2)


class _Grid(Generic[_Item]):
    """Things by the cells of a grid that boxes around them touch, so that only near ones are compared."""

    def __init__(self, things: Iterable[tuple[Box, _Item]]) -> None:
        self._cells: dict[tuple[int, int], list[_Item]] = {}
        for box, thing in things:
            self.add(box, thing)

    def add(self, box: Box, thing: _Item) -> None:
        for cell in _cells(box):
            self._cells.setdefault(cell, []).append(thing)

    def near(self, box: Box) -> set[_Item]:
        return {thing for cell in _cells(box) for thing in self._cells.get(cell, ())}


def _is_nearer_to_another(box: Box, own: Point, nodes: _Grid[Point]) -> bool:
    reach = box.distance(own)
    around_it = Box(box.left - reach, box.bottom - reach, box.right + reach, box.top + reach)
    return any(place != own and box.distance(place) < reach for place in nodes.near(around_it))


def _surrounding(a: Point, b: Point) -> Box:
    return Box(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    for column in range(math.floor(box.left / CELL_PT), math.floor(box.right / CELL_PT) + 1):
        for row in range(math.floor(box.bottom / CELL_PT), math.floor(box.top / CELL_PT) + 1):
            yield column, row
