"""Three replicas, a store, switches and clients in virtual time: see `tests.fakes.replicated`.

`python -m benchmarks.replicas --seeds 10000` tries more seeds.
"""

from __future__ import annotations

import pytest

from tests.fakes.replicated import World

FOUND = (9, 14, 165, 481, 1094, 4823, 6220)
"""Seeds that have found faults: a deposed leader that answered "there is no such flow", a repeated write that
arrived after a later one, a switch that connected again while a write waited, a leader that believed in the
lease of a later claim, and one that led again and wrote what it had decided in the epoch before."""


@pytest.mark.parametrize("first", range(0, 80, 8))
def test_at_most_one_is_obeyed_and_no_flow_is_lost_or_granted_twice(first: int) -> None:
    worlds = [World(seed).run() for seed in range(first, first + 8)]
    assert sum(world.takeovers for world in worlds) > 16
    assert sum(len(client.granted) for world in worlds for client in world.clients) > 40


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_have_found_faults(seed: int) -> None:
    World(seed).run()
