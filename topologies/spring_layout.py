"""Layouts by forces that keep lines apart: a planar network is drawn without crossings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Lines = npt.NDArray[np.intp]
"""The nodes at both ends of each line."""

ATTEMPTS = 5
ROUNDS = 60
MAX_UNTANGLED = 60
"""Nodes; a larger network is easier to read with some crossings than with crowded nodes."""
CLEARANCE = 0.35
"""Between a node and the lines of others, where there was as much; in mean lengths of lines."""
SHARES = (1.0, 0.5, 0.2)


def spring_layout(
    names: Sequence[str], links: Iterable[tuple[str, str]], seed: int
) -> dict[str, tuple[float, float]]:
    """Return the place of every node; no lines cross if the network is planar and not large.

    The best of some spring layouts (Fruchterman and Reingold). Where each has crossings and the network is
    planar: a straight-line drawing (Chrobak and Payne) whose nodes then follow the same forces, as far as no
    line comes to cross another.

    Args:
        names: of the nodes.
        links: the names at both ends of each.
        seed: of the first spring layout.
    """
    graph: Any = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(links)
    index = {name: number for number, name in enumerate(names)}
    lines: Lines = np.array([(index[a], index[b]) for a, b in graph.edges], dtype=np.intp).reshape(-1, 2)
    best: tuple[int, Floats] | None = None
    for attempt in range(ATTEMPTS):
        places = _array(names, nx.spring_layout(graph, seed=seed + attempt))
        crossed = crossings(places, lines, lines)
        if best is None or crossed < best[0]:
            best = (crossed, places)
        if crossed == 0:
            break
    assert best is not None
    crossed, places = best
    if crossed > 0 and len(names) <= MAX_UNTANGLED and nx.is_planar(graph):
        places = _relaxed(_array(names, nx.planar_layout(graph)), lines)
    # Pages are wide: the longest way across is horizontal.
    centred = places - places.mean(axis=0)
    turned = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, turned, strict=True)}


def _array(names: Sequence[str], layout: dict[str, Any]) -> Floats:
    return np.array([layout[name] for name in names], dtype=np.float64)


def crossings(places: Floats, lines: Lines, others: Lines) -> int:
    """Return how often lines cross others; each pair twice where both are the same."""
    return int(np.count_nonzero(_parted(places, lines, others) & _parted(places, others, lines).T))


def _parted(places: Floats, lines: Lines, others: Lines) -> npt.NDArray[np.bool_]:
    """Return whether both ends of `others` are on different sides of `lines`; by line, then by other."""
    tails = places[lines[:, 0], None, None]
    along = places[lines[:, 1], None, None] - tails
    apart = places[others][None] - tails
    sides = along[..., 0] * apart[..., 1] - along[..., 1] * apart[..., 0]
    parted: npt.NDArray[np.bool_] = sides[..., 0] * sides[..., 1] < 0
    return parted


def _relaxed(places: Floats, lines: Lines) -> Floats:
    """Let forces move the nodes of a drawing, each only as far as no line comes to cross another."""
    ways = places[lines[:, 0]] - places[lines[:, 1]]
    places = (places - places.mean(axis=0)) / np.linalg.norm(ways, axis=1).mean()
    for number in range(ROUNDS):
        for node in range(len(places)):
            is_own = (lines == node).any(axis=1)
            own, others = lines[is_own], lines[~is_own]
            step = _force(places, node, own.sum(axis=1) - node, others)
            step *= min(1.0, (1.0 - number / ROUNDS) / float(np.linalg.norm(step) or 1.0))
            before = places[node].copy()
            least = min(CLEARANCE, _room(places, node, own, others))
            for share in SHARES:
                places[node] = before + share * step
                if crossings(places, own, others) == 0 and _room(places, node, own, others) >= least:
                    break
            else:
                places[node] = before
    return places


def _force(places: Floats, node: int, neighbours: Lines, others: Lines) -> Floats:
    """Return what draws a node to its neighbours, and away from all nodes and from near lines of others."""
    off_nodes = places[node] - np.delete(places, node, axis=0)
    off_lines = _offsets(places[[node]], places[others])[:, 0]
    off_lines = off_lines[np.linalg.norm(off_lines, axis=1) < 1]
    towards = places[neighbours] - places[node]
    drawn: Floats = towards.sum(axis=0)
    return drawn + _repulsion(off_nodes) + _repulsion(off_lines)


def _repulsion(offsets: Floats) -> Floats:
    pushed: Floats = (offsets / np.maximum((offsets**2).sum(axis=1, keepdims=True), 1e-6)).sum(axis=0)
    return pushed


def _room(places: Floats, node: int, own: Lines, others: Lines) -> float:
    """Return the least distance of a node from the lines of others, and of other nodes from its own."""
    off_others = np.linalg.norm(_offsets(places[[node]], places[others]), axis=2)
    off_own = np.linalg.norm(_offsets(places, places[own]), axis=2)
    off_own[np.arange(len(own))[:, None], own] = np.inf
    return float(min(off_others.min(initial=np.inf), off_own.min(initial=np.inf)))


def _offsets(points: Floats, lines: Floats) -> Floats:
    """Return the way from the nearest point of each line to each point; by line, then by point."""
    tails = lines[:, None, 0]
    along = lines[:, None, 1] - tails
    apart = points[None] - tails
    lengths = np.maximum((along**2).sum(axis=2, keepdims=True), 1e-12)
    offsets: Floats = apart - np.clip((apart * along).sum(axis=2, keepdims=True) / lengths, 0, 1) * along
    return offsets
