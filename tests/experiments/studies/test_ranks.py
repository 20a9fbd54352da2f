"""Tests of the order of rows: ties of the paper, what seeds tell apart, what chance can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from experiments.studies.document import Columns, RankedColumn
from experiments.studies.ranks import Figure, consistent, count
from experiments.studies.ranks import rank as rank_columns


def column(*figures: tuple[float, list[float]]) -> list[Figure]:
    return [Figure("table", f"row {row}", "column", *figure) for row, figure in enumerate(figures, start=1)]


def rank(figures: list[Figure]) -> Columns:
    return count(rank_columns(figures))


def test_ranks_are_those_of_rows_and_ties_of_the_paper_are_free() -> None:
    assert rank(column((1, [5]), (2, [6]), (3, [9]))).ranked_alike == 1
    assert rank(column((1, [5]), (2, [4]), (3, [9]))).ranked_alike == 0
    assert rank(column((1, [5]), (1, [4]), (3, [9]))).ranked_alike == 1
    assert rank(column((1, [5]))).of == 0


def test_a_pair_that_seeds_do_not_tell_apart_is_open() -> None:
    clear = rank(column((1, [1.0, 1.1, 0.9]), (2, [5.0, 5.1, 4.9])))
    assert (clear.pairs_alike, clear.pairs_contrary, clear.pairs_open) == (1, 0, 0)
    blurred = rank(column((1, [5.0, 1.0, 9.0]), (2, [4.0, 8.0, 0.0])))
    assert (blurred.ranked_alike, blurred.uncontradicted) == (0, 1)
    assert (blurred.pairs_alike, blurred.pairs_contrary, blurred.pairs_open) == (0, 0, 1)
    contrary = rank(column((2, [1.0, 1.1, 0.9]), (1, [5.0, 5.1, 4.9])))
    assert (contrary.uncontradicted, contrary.pairs_contrary) == (0, 1)


def test_pairs_are_told_apart_together() -> None:
    """Alone the first pair is (p = 0.03), of three pairs it is not (Bonferroni)."""
    first = (1.0, [1.0, 2.0, 3.0, 4.0]), (2.0, [3.5, 4.5, 5.5, 6.5])
    assert rank(column(*first)).pairs_alike == 1
    three = rank(column(*first, (3.0, [99.0, 100.0, 101.0, 100.0])))
    assert (three.pairs_alike, three.pairs_open) == (2, 1)


def test_a_single_seed_tells_nothing_apart() -> None:
    ranked = rank(column((1, [5.0]), (3, [6.0]), (2, [7.0])))
    assert (ranked.ranked_alike, ranked.pairs_open, ranked.uncontradicted, ranked.consistent) == (0, 3, 1, 1)


def test_counts_of_several_columns_add_up() -> None:
    one = rank_columns(column((1, [5.0, 5.1]), (2, [6.0, 6.1])))
    both = count([*one, *one])
    assert (both.of, both.ranked_alike, both.pairs_alike) == (2, 2, 2)


def test_both_orders_begin_with_the_greatest() -> None:
    (ranked,) = rank_columns(column((1, [5.0, 5.1]), (3, [6.0, 6.1]), (2, [9.0, 9.1])))
    assert ranked == RankedColumn(
        table="table",
        column="column",
        paper=["row 2", "row 3", "row 1"],
        ours=["row 3", "row 2", "row 1"],
        ranked_alike=False,
        consistent=False,
        pairs_alike=2,
        pairs_contrary=1,
        pairs_open=0,
    )


def test_an_order_is_consistent_if_as_few_runs_as_the_papers_could_give_it() -> None:
    apart = column((2, [1.0, 1.1, 0.9]), (1, [5.0, 5.1, 4.9]))
    assert count(rank_columns(apart)).consistent == 0
    courses = column((9, [1.0, 9.0, 1.0, 1.0] * 8), (5, [5.0, 5.1, 4.9, 5.0] * 8))
    assert count(rank_columns(courses)).consistent == 1, "one run of four is above all of the others"
    assert count(rank_columns(courses, paper_runs=30)).consistent == 0, "a mean of 30 hardly ever is"


Draw = Callable[[np.random.Generator, int, int], Any]
POPULATIONS: dict[str, Draw] = {
    "alike": lambda draw, row, count: draw.normal(10, 1, count),
    "near": lambda draw, row, count: draw.normal(10 + 0.2 * row, 1 + row / 4, count),
    "two courses": lambda draw, row, count: draw.normal(10, 1, count) + 4 * (draw.random(count) < 0.1),
    "skewed": lambda draw, row, count: draw.lognormal(1 + row / 10, 0.8, count),
}
COPIES = 150


@pytest.mark.parametrize("paper_runs", [1, 30])
@pytest.mark.parametrize("population", POPULATIONS)
def test_a_perfect_copy_is_inconsistent_in_5_per_cent_at_most(population: str, paper_runs: int) -> None:
    draw = np.random.default_rng(paper_runs)
    values = POPULATIONS[population]

    def copy() -> list[Figure]:
        papers = (values(draw, row, paper_runs).mean().item() for row in range(5))
        return column(*((paper, values(draw, row, 30).tolist()) for row, paper in enumerate(papers)))

    refused = sum(not consistent(copy(), 0.0, paper_runs) for _ in range(COPIES))
    # 16 or more of 150 have a probability of 0.3 % at a level of 5 %.
    assert refused < 16


def test_another_order_is_found_inconsistent() -> None:
    draw = np.random.default_rng(0)
    reversed_order = column(*((float(-row), draw.normal(row, 1, 30).tolist()) for row in range(5)))
    assert not consistent(reversed_order, 0.0, 1)
    assert not consistent(reversed_order, 0.2, 30)
