"""Paths from packets counted on links."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from experiments.engines.live.arc_counts import peel_paths

PATHS = (["a", "1", "3", "z"], ["a", "1", "4", "z"], ["a", "2", "5", "z"])


def test_a_single_connection_has_the_path_that_it_took() -> None:
    counts = {("a", "1"): 10, ("1", "3"): 10, ("3", "z"): 10}
    assert peel_paths(counts, "a", "z") == [(["a", "1", "3", "z"], 10)]


@given(st.tuples(*(st.integers(0, 1000) for _ in PATHS)))
def test_paths_that_do_not_join_again_are_told_exactly(packets: tuple[int, ...]) -> None:
    counts: dict[tuple[str, str], int] = {}
    for path, count in zip(PATHS, packets, strict=True):
        for hop in itertools.pairwise(path):
            counts[hop] = counts.get(hop, 0) + count
    peeled = {tuple(path): count for path, count in peel_paths(counts, "a", "z")}
    assert peeled == {tuple(path): count for path, count in zip(PATHS, packets, strict=True) if count}


def test_packets_that_were_lost_lead_nowhere() -> None:
    counts = {("a", "1"): 10, ("1", "3"): 10, ("3", "z"): 7, ("1", "4"): 5}
    assert peel_paths(counts, "a", "z") == [(["a", "1", "3", "z"], 7)]
    assert peel_paths({("a", "1"): 3}, "a", "z") == []


def test_a_circle_ends() -> None:
    counts = {("a", "1"): 10, ("1", "2"): 10, ("2", "1"): 9, ("2", "z"): 1}
    assert peel_paths(counts, "a", "z") == [(["a", "1", "2", "z"], 1)]
