"""Packets counted on directed links, made into the paths that they took."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TypeAlias

Arc: TypeAlias = tuple[str, str]
"""Tail and head of a directed link."""


def peel_paths(counts: Mapping[Arc, int], src: str, dst: str) -> list[tuple[list[str], int]]:
    """Return paths that explain the counts, with the packets of each, the most travelled first.

    The path that follows the largest counts is taken off until nothing leads from `src` to `dst` any more. A
    single connection has one path, so the answer is exact; for several it is one of the ways to explain the
    counts. Packets that were lost on the way lead nowhere and are left out.
    """
    left = {arc: packets for arc, packets in counts.items() if packets > 0}
    paths: list[tuple[list[str], int]] = []
    while path := _follow(left, src, dst):
        hops = list(itertools.pairwise(path))
        packets = min(left[hop] for hop in hops)
        for hop in hops:
            left[hop] -= packets
        left = {arc: rest for arc, rest in left.items() if rest}
        paths.append((path, packets))
    return sorted(paths, key=lambda each: -each[1])


def _follow(left: dict[Arc, int], src: str, dst: str) -> list[str] | None:
    """Return a path along the largest counts; links that lead nowhere are removed from `left`."""
    path = [src]
    while path[-1] != dst:
        onwards = [arc for arc in left if arc[0] == path[-1] and arc[1] not in path]
        if onwards:
            path.append(max(onwards, key=lambda arc: left[arc])[1])
        elif len(path) == 1:
            return None
        else:
            del left[path[-2], path[-1]]
            path.pop()
    return path
