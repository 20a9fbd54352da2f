"""A few problems of `python -m benchmarks.gomr --independent`: every objective beside its definition."""

from __future__ import annotations

import pytest
from gomr import OBJECTIVES

from benchmarks.gomr.independent import EXACT, compare, problems

SEED = 7
"""Not the benchmark's own."""


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_optimum_is_that_of_a_programme_over_edges(objective: str) -> None:
    for name, problem in problems(14, SEED):
        assert compare(name, problem, objective).worst <= EXACT, name
