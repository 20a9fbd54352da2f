"""Where the names of nodes stand on a map: beside their nodes, over no other name and no node.

Pure geometry in points, y upwards: a box is its left, bottom, right and top, a line its two ends. Of the
places around its node each name takes a near one that covers few links and is nearer to its own node than to
others.
Names come in an order of importance; one for which there is no room is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Answers = npt.NDArray[np.bool_]
Point = tuple[float, float]
GAP_PT = 2.0
RING_COST = 0.4
"""What a step away from the node counts, in links covered."""
NEARER_TO_ANOTHER = 6.0
"""What it counts, in links covered, if a name could be taken for that of another node."""
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""Where a name may stand, seen from its node; beside it first."""


def place_names(
    names: Sequence[str],
    places: Mapping[str, Point],
    lines: npt.ArrayLike,
    page: npt.ArrayLike,
    size_of: Callable[[str], tuple[float, float]],
    *,
    radius: float,
    taken: npt.ArrayLike = (),
    rings: int = 6,
) -> dict[str, Array]:
    """Return the boxes of the names for which there is room.

    Names come with the most important first; they stay in the page, cover neither nodes, nor what is taken,
    nor each other, and rather no lines. `rings` is how far from its node a name may stand, in steps.
    """
    nodes = np.array(list(places.values()))
    lines, page = np.reshape(lines, (-1, 2, 2)), np.asarray(page)
    solid = np.vstack([around(nodes, radius), np.reshape(taken, (-1, 4))])
    placed: dict[str, Array] = {}
    for name in names:
        place = np.array(places[name])
        boxes, costs = _candidates(place, *size_of(name), radius, rings)
        has_room = are_within(boxes, page) & ~overlap(boxes[:, None], solid).any(-1)
        if not has_room.any():
            continue
        boxes, costs = boxes[has_room], costs[has_room]
        others = nodes[(nodes != place).any(-1)]
        is_nearer_to_another = (distance(boxes[:, None], others) < distance(boxes, place)[:, None]).any(-1)
        costs = costs + are_crossed(boxes[:, None], lines).sum(-1) + NEARER_TO_ANOTHER * is_nearer_to_another
        placed[name] = boxes[costs.argmin()]
        solid = np.vstack([solid, placed[name]])
    return placed


def _candidates(place: Array, width: float, height: float, radius: float, rings: int) -> tuple[Array, Array]:
    """Return the boxes to try, and what the distance of each counts in links covered."""
    half = np.array([width, height]) / 2
    middles = []
    for ring in range(rings):
        reach = radius + GAP_PT + ring * height * 0.6
        diagonal = max(radius + GAP_PT / 2, reach * math.sqrt(0.5))
        middles += [place + way * (half + (diagonal if all(way) else reach)) for way in DIRECTIONS]
    return around(np.array(middles), half), np.repeat(np.arange(rings) * RING_COST, len(DIRECTIONS))


def around(middles: npt.ArrayLike, reach: npt.ArrayLike) -> Array:
    """Return the boxes around points."""
    return np.concatenate([np.subtract(middles, reach), np.add(middles, reach)], axis=-1)


def overlap(a: Array, b: Array) -> Answers:
    """Return whether boxes share an area."""
    return np.asarray(((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(-1))


def are_within(boxes: Array, page: Array) -> Answers:
    """Return whether boxes lie wholly in another."""
    return np.asarray(((boxes[..., :2] >= page[..., :2]) & (boxes[..., 2:] <= page[..., 2:])).all(-1))


def distance(boxes: Array, points: Array) -> Array:
    """Return the distances of points from boxes."""
    gaps = np.maximum(0.0, np.maximum(boxes[..., :2] - points, points - boxes[..., 2:]))
    return np.hypot(gaps[..., 0], gaps[..., 1])


def are_crossed(boxes: Array, lines: Array) -> Answers:
    """Return whether lines pass through boxes (Liang and Barsky's clipping)."""
    begin = lines[..., 0, :]
    way = lines[..., 1, :] - begin
    way = np.where(way == 0, 1e-12, way)
    sides = np.stack([(boxes[..., :2] - begin) / way, (boxes[..., 2:] - begin) / way])
    return np.asarray(np.maximum(sides.min(0).max(-1), 0) < np.minimum(sides.max(0).min(-1), 1))
