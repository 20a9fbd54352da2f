"""Where to draw the nodes of a network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from topologies.model import Network

Point = tuple[float, float]
SPRING_LIMIT = 400
"""Above this networkx wants SciPy for a spring layout; so large a network is drawn on a circle."""


def positions(network: Network) -> dict[str, Point]:
    """Return the place of every node (arbitrary units, y upwards).

    Nodes with `x` and `y` stay there. The others stand at the mean of their neighbours if some are placed; if
    none is, forces place all, without crossings where the network is planar and not large.
    """
    placed = {n.name: (n.x, n.y) for n in network.nodes if n.x is not None and n.y is not None}
    names = [node.name for node in network.nodes]
    return place(names, placed, [link.ends for link in network.links])


def place(
    names: list[str], placed: Mapping[str, Point], links: Iterable[tuple[str, str]]
) -> dict[str, Point]:
    """Return the place of every node, as `positions`, of nodes of which some are `placed` already."""
    if len(placed) == len(names):
        return dict(placed)
    if not placed:
        return _spring(names, links)
    return _among_neighbours(names, placed, links)


def _spring(names: list[str], links: Iterable[tuple[str, str]]) -> dict[str, Point]:
    if len(names) > SPRING_LIMIT:
        return {
            name: (math.cos(2 * math.pi * i / len(names)), math.sin(2 * math.pi * i / len(names)))
            for i, name in enumerate(names)
        }
    # Slow to import, and only drawings without coordinates need it.
    from topologies.spring_layout import spring_layout

    return spring_layout(names, links, seed=0)


def _among_neighbours(
    names: list[str], placed: Mapping[str, Point], links: Iterable[tuple[str, str]]
) -> dict[str, Point]:
    """Relax the nodes without a place towards the mean of their neighbours; siblings fan out around it."""
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    xs, ys = zip(*placed.values(), strict=True)
    centre = (sum(xs) / len(xs), sum(ys) / len(ys))
    spread = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    free = [name for name in neighbours if name not in placed]
    places: dict[str, Point] = {**placed, **dict.fromkeys(free, centre)}
    for _ in range(50):
        for name in free:
            around = [places[other] for other in neighbours[name]] or [centre]
            places[name] = (sum(x for x, _ in around) / len(around), sum(y for _, y in around) / len(around))
    for index, name in enumerate(free):
        angle = 2 * math.pi * index * 0.381966  # the golden angle keeps neighbours apart
        x, y = places[name]
        places[name] = (x + 0.04 * spread * math.cos(angle), y + 0.04 * spread * math.sin(angle))
    return places
