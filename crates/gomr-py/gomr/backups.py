"""Backup paths: for each path in use another one that a switch can turn to at once when a link of it fails.

A backup shares no link with its path, and no node between the ends, where the network has such a path; else
it shares as few links as it can, then as few nodes, and of those paths it has the least delay. Backups say
where traffic can go, not that there is room: `gomr.failures` tells what is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gomr.allocation import Allocation, PathRate
from gomr.paths.finder import PathFinder
from gomr.problem import Demand, Edge, Path, Problem


@dataclass(frozen=True)
class Backup:
    """A path in use and its backup.

    Attributes:
        demand: Id of the demand.
        path: The path in use.
        nodes: The nodes of the backup; () if there is no way but the path itself.
        delay_s: Delay of the backup.
        shared_links: Ids of the path's edges that the backup needs too; their failure breaks both.
        shared_nodes: Nodes between the ends that both pass.
    """

    demand: str
    path: PathRate
    nodes: tuple[str, ...]
    delay_s: float
    shared_links: tuple[str, ...]
    shared_nodes: tuple[str, ...]


def backup_paths(problem: Problem, allocation: Allocation) -> Iterator[Backup]:
    """Yield a backup for each path of an allocation that uses the network, in the order of the demands.

    Args:
        problem: The problem.
        allocation: Its allocation.
    """
    finder = PathFinder(problem)
    known: dict[tuple[str, ...], Path] = {}
    for demand in problem.demands:
        for path in allocation.paths[demand.id]:
            if not path.edges:
                continue
            if path.edges not in known:
                known[path.edges] = _apart_from(finder, problem, path)
            yield _backup(problem, demand.id, path, known[path.edges])


def _backup(problem: Problem, demand: str, path: PathRate, way: Path) -> Backup:
    taken = _links_of(problem, path.edges)
    shared = tuple(edge.id for edge in way if edge.id in taken)
    if len(shared) == len(path.edges) == len(way):
        return Backup(demand, path, (), 0.0, path.edges, path.nodes[1:-1])
    inner = set(path.nodes[1:-1])
    return Backup(
        demand,
        path,
        (way[0].tail, *(edge.head for edge in way)),
        sum(edge.delay_s for edge in way),
        shared,
        tuple(edge.head for edge in way[:-1] if edge.head in inner),
    )


def _links_of(problem: Problem, edges: Collection[str]) -> set[str]:
    """Return the edges and their reverses: a link fails in both directions."""
    reverse = problem.reverse or {}
    return {*edges, *(reverse[edge] for edge in edges if edge in reverse)}


def _apart_from(finder: PathFinder, problem: Problem, path: PathRate) -> Path:
    """Return the path between the same ends that shares the least.

    A shared node is longer than all links one after another, a shared link than all nodes.
    """
    links, inner = _links_of(problem, path.edges), set(path.nodes[1:-1])
    all_s = math.fsum(edge.delay_s for edge in problem.edges) or 1.0
    node_s, link_s = 2 * all_s, 2 * all_s * len(path.nodes)

    def length(edge: Edge) -> float:
        return link_s * (edge.id in links) + node_s * (edge.head in inner) + edge.delay_s

    found = finder.cheapest(Demand("", path.nodes[0], path.nodes[-1], 0.0), length)
    assert found is not None  # there is the path itself
    return found[1]
