"""Holds the order of the rows in a table's columns against the paper's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.analysis.statistics import Difference, welch
from experiments.studies.document import Columns


@dataclass(frozen=True)
class Ranked:
    """A figure of the paper in a column, and ours with each seed."""

    column: tuple[str, str]
    paper: float
    ours: Sequence[float]


def rank(figures: Iterable[Ranked], trim: float = 0.0) -> Columns:
    """Count the columns whose rows come in the paper's order, and the pairs of rows that do.

    Rows that the paper has alike are in any order. A pair that the seeds do not tell apart (Welch, 95 %)
    is open: it neither agrees with the paper nor contradicts it. Columns of a single row do not count.
    `trim` is the study's.
    """
    columns: dict[tuple[str, str], list[Ranked]] = {}
    for figure in figures:
        columns.setdefault(figure.column, []).append(figure)
    judged = [_judge(column, trim) for column in columns.values() if len(column) > 1]
    return together(judged)


def together(parts: Sequence[Columns]) -> Columns:
    """Return the counts of several tables or studies as one."""
    return Columns(
        ranked_alike=sum(part.ranked_alike for part in parts),
        uncontradicted=sum(part.uncontradicted for part in parts),
        of=sum(part.of for part in parts),
        pairs_alike=sum(part.pairs_alike for part in parts),
        pairs_contrary=sum(part.pairs_contrary for part in parts),
        pairs_open=sum(part.pairs_open for part in parts),
    )


def _judge(column: Sequence[Ranked], trim: float) -> Columns:
    pairs = [pair for pair in itertools.combinations(column, 2) if pair[0].paper != pair[1].paper]
    differences = [_difference(a.ours, b.ours, trim) for a, b in pairs]
    in_order = [
        (a.paper < b.paper) == (difference.value > 0)
        for (a, b), difference in zip(pairs, differences, strict=True)
    ]
    told_apart = [_told_apart(difference) for difference in differences]
    alike = sum(map(bool.__and__, in_order, told_apart))
    apart = sum(told_apart)
    return Columns(
        ranked_alike=int(all(in_order)),
        uncontradicted=int(alike == apart),
        of=1,
        pairs_alike=alike,
        pairs_contrary=apart - alike,
        pairs_open=len(pairs) - apart,
    )


def _difference(a: Sequence[float], b: Sequence[float], trim: float) -> Difference:
    difference = welch(a, b, trim=trim)
    assert difference is not None, "every case has been run with a seed at least"
    return difference


def _told_apart(difference: Difference) -> bool:
    """Return whether two means differ by more than chance, or at all where there is a single seed."""
    return difference.value != 0 if difference.significant is None else difference.significant
