"""Tests of the order of rows: ties of the paper, what seeds tell apart."""

from __future__ import annotations

from experiments.studies.document import Columns, RankedColumn
from experiments.studies.ranks import Figure, count
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


def test_a_single_seed_tells_all_apart_that_differs() -> None:
    ranked = rank(column((1, [5.0]), (2, [6.0]), (3, [6.0])))
    assert (ranked.pairs_alike, ranked.pairs_open, ranked.uncontradicted) == (2, 1, 1)


def test_counts_of_several_columns_add_up() -> None:
    one = rank_columns(column((1, [5.0]), (2, [6.0])))
    both = count([*one, *one])
    assert (both.of, both.ranked_alike, both.pairs_alike) == (2, 2, 2)


def test_both_orders_begin_with_the_greatest() -> None:
    (ranked,) = rank_columns(column((1, [5.0]), (3, [6.0]), (2, [9.0])))
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
    courses = column((2, [1.0, 9.0, 1.0, 1.0]), (1, [5.0, 5.1, 4.9, 5.0]))
    assert count(rank_columns(courses)).consistent == 1, "one run of four is above all of the others"
    assert count(rank_columns(courses, paper_runs=30)).consistent == 0, "a mean of 30 hardly ever is"
    assert count(rank_columns(column((1, [1.0]), (2, [5.0])))).consistent == 1
