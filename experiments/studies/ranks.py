"""Holds the order of the rows in a table's columns against the paper's."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.statistics import Difference, estimate, welch
from experiments.studies.document import Columns, RankedColumn

DRAWS = 999
LEVEL = 0.05


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, and ours with each seed."""

    table: str
    row: str
    column: str
    paper: float
    ours: Sequence[float]


def rank(figures: Iterable[Figure], trim: float = 0.0, paper_runs: int = 1) -> list[RankedColumn]:
    """Return the order of the rows of each column, the paper's and ours.

    Rows that the paper has alike are in any order. A pair that the seeds do not tell apart (Welch, 95 %)
    is open: it neither agrees with the paper nor contradicts it. Columns of a single row do not count.
    `trim` and `paper_runs` are the study's.
    """
    columns: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        columns.setdefault((figure.table, figure.column), []).append(figure)
    return [_judge(column, trim, paper_runs) for column in columns.values() if len(column) > 1]


def count(ranks: Sequence[RankedColumn]) -> Columns:
    """Return how many columns and pairs of rows are as in the paper."""
    return Columns(
        ranked_alike=sum(column.ranked_alike for column in ranks),
        consistent=sum(column.consistent for column in ranks),
        uncontradicted=sum(column.pairs_contrary == 0 for column in ranks),
        of=len(ranks),
        pairs_alike=sum(column.pairs_alike for column in ranks),
        pairs_contrary=sum(column.pairs_contrary for column in ranks),
        pairs_open=sum(column.pairs_open for column in ranks),
    )


def _judge(column: Sequence[Figure], trim: float, paper_runs: int) -> RankedColumn:
    pairs = [pair for pair in itertools.combinations(column, 2) if pair[0].paper != pair[1].paper]
    differences = [_difference(a.ours, b.ours, trim) for a, b in pairs]
    in_order = [
        (a.paper < b.paper) == (difference.value > 0)
        for (a, b), difference in zip(pairs, differences, strict=True)
    ]
    told_apart = [_told_apart(difference) for difference in differences]
    alike = sum(map(bool.__and__, in_order, told_apart))
    apart = sum(told_apart)
    means = {figure.row: _mean(figure.ours, trim) for figure in column}
    return RankedColumn(
        table=column[0].table,
        column=column[0].column,
        paper=[figure.row for figure in sorted(column, key=lambda figure: -figure.paper)],
        ours=sorted(means, key=lambda row: -means[row]),
        ranked_alike=all(in_order),
        consistent=_consistent(pairs, means, paper_runs),
        pairs_alike=alike,
        pairs_contrary=apart - alike,
        pairs_open=len(pairs) - apart,
    )


def _consistent(pairs: Sequence[tuple[Figure, Figure]], means: Mapping[str, float], paper_runs: int) -> bool:
    """Return whether as few runs as the paper's give an order as far from ours as the paper's is (5 %).

    The distance of two orders is the number of pairs that they have the other way round (Kendall). Means of
    `paper_runs` of our runs, drawn with replacement, tell how far by chance alone (Efron's bootstrap, 1979).
    """
    ours = {figure.row: figure.ours for pair in pairs for figure in pair}
    rows = [(a.row, b.row) for a, b in pairs]
    random_runs = random.Random(0)

    def distance(order: Mapping[str, float]) -> int:
        return sum((order[a] - order[b]) * (means[a] - means[b]) < 0 for a, b in rows)

    def drawn() -> int:
        runs = {row: random_runs.choices(values, k=paper_runs) for row, values in ours.items()}
        return distance({row: math.fsum(values) / paper_runs for row, values in runs.items()})

    paper = distance({figure.row: figure.paper for pair in pairs for figure in pair})
    as_far = sum(drawn() >= paper for _ in range(DRAWS))
    return (1 + as_far) / (1 + DRAWS) > LEVEL


def _mean(values: Sequence[float], trim: float) -> float:
    computed = estimate(values, trim=trim)
    assert computed is not None, "every case has been run with a seed at least"
    return computed.mean


def _difference(a: Sequence[float], b: Sequence[float], trim: float) -> Difference:
    difference = welch(a, b, trim=trim)
    assert difference is not None, "every case has been run with a seed at least"
    return difference


def _told_apart(difference: Difference) -> bool:
    """Return whether two means differ by more than chance, or at all where there is a single seed."""
    return difference.value != 0 if difference.significant is None else difference.significant
