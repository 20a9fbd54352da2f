"""Where the names of nodes stand on a map: beside their nodes, over no other name and no node.

Pure geometry in points, y upwards. Each name tries places around its node, the nearest ring first, and takes
the one that covers the fewest links and is nearer to its own node than to others. Names come in an order of
importance; one for which there is no room is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
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

    Args:
        names: Names of nodes, the most important first.
        places: The middle of every node.
        links: Lines that names should rather not cover.
        page: What names have to stay in.
        size_of: Width and height of a name.
        radius: Of the nodes.
        taken: What names must not cover besides nodes and each other.
        rings: How far from its node a name may stand, in steps.
    """
    solid, lines = _Grid(), _Lines(links)
    nodes = _Nodes(places.values())
    for place in places.values():
        solid.add(around(place, radius))
    for box in taken:
        solid.add(box)
    placed = []
    for name in names:
        width, height = size_of(name)
        best: tuple[float, int, PlacedName] | None = None
        for order, (penalty, x, y) in enumerate(_candidates(places[name], width, height, radius, rings)):
            if best is not None and penalty >= best[0]:
                break
            box = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            if not box.is_within(page) or solid.hits(box):
                continue
            total = penalty + lines.crossings(box)
            if total < (best[0] if best else math.inf) and nodes.is_nearer_to_another(box, places[name]):
                total += NEARER_TO_ANOTHER
            if best is None or (total, order) < best[:2]:
                best = (total, order, PlacedName(name, x, y, box))
        if best is not None:
            placed.append(best[2])
            solid.add(best[2].box)
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


class _Grid:
    """Boxes by the cells of a grid, so that only near ones are compared."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        for cell in _cells(box):
            self._cells.setdefault(cell, []).append(box)

    def hits(self, box: Box) -> bool:
        return any(other.overlaps(box) for cell in _cells(box) for other in self._cells.get(cell, ()))


class _Nodes:
    """Nodes by the cells of a grid."""

    def __init__(self, places: Iterable[Point]) -> None:
        self._cells: dict[tuple[int, int], list[Point]] = {}
        for place in places:
            for cell in _cells(around(place, 0.0)):
                self._cells.setdefault(cell, []).append(place)

    def is_nearer_to_another(self, box: Box, own: Point) -> bool:
        reach = box.distance(own)
        near = Box(box.left - reach, box.bottom - reach, box.right + reach, box.top + reach)
        return any(
            place != own and box.distance(place) < reach
            for cell in _cells(near)
            for place in self._cells.get(cell, ())
        )


class _Lines:
    """Segments by the cells that their surrounding box touches."""

    def __init__(self, links: Iterable[tuple[Point, Point]]) -> None:
        self._cells: dict[tuple[int, int], list[tuple[Point, Point]]] = {}
        for a, b in links:
            for cell in _cells(Box(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))):
                self._cells.setdefault(cell, []).append((a, b))

    def crossings(self, box: Box) -> int:
        near = {line for cell in _cells(box) for line in self._cells.get(cell, ())}
        return sum(box.is_crossed(*line) for line in near)


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    for column in range(math.floor(box.left / CELL_PT), math.floor(box.right / CELL_PT) + 1):
        for row in range(math.floor(box.bottom / CELL_PT), math.floor(box.top / CELL_PT) + 1):
            yield column, row
