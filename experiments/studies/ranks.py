"""Holds the order of the rows in a table's columns against the paper's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from experiments.analysis.statistics import Difference, welch
from experiments.studies.document import Columns, RankedColumn

DRAWS = 999
LEVEL = 0.05
TINY = 1e-12
"""Is added to standard errors, which are zero where runs are equal."""
Array: TypeAlias = npt.NDArray[np.float64]


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

    Rows that the paper has alike are in any order. A pair that the seeds do not tell apart (Welch, 5 % for
    all pairs of a column together: Bonferroni) is open: it neither agrees with the paper nor contradicts it.
    Columns of a single row do not count.
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
    confidence = 1 - LEVEL / max(1, len(pairs))
    differences = [_difference(a.ours, b.ours, confidence, trim) for a, b in pairs]
    in_order = [
        (a.paper < b.paper) == (difference.value > 0)
        for (a, b), difference in zip(pairs, differences, strict=True)
    ]
    told_apart = [difference.significant is True for difference in differences]
    alike = sum(map(bool.__and__, in_order, told_apart))
    apart = sum(told_apart)
    means = {figure.row: _means(np.array(figure.ours), trim).item() for figure in column}
    return RankedColumn(
        table=column[0].table,
        column=column[0].column,
        paper=[figure.row for figure in sorted(column, key=lambda figure: -figure.paper)],
        ours=sorted(means, key=lambda row: -means[row]),
        ranked_alike=all(in_order),
        consistent=consistent(column, trim, paper_runs),
        pairs_alike=alike,
        pairs_contrary=apart - alike,
        pairs_open=len(pairs) - apart,
    )


def consistent(column: Sequence[Figure], trim: float, paper_runs: int) -> bool:
    """Return whether the paper's order of rows is one that `paper_runs` more runs of ours could give (5 %).

    A pair of rows speaks against it if both orders are clear and contrary: by the smaller of both differences
    in standard errors. The pair that does so most is held against the most that chance gives, which is the
    correction for their number. Chance: if the paper's runs were like ours, a row's mean would be that of
    both together. Our runs, moved there, are drawn with replacement for both sides, as many as each has made,
    so that both sampling errors count (studentised bootstrap under the hypothesis: Davison and Hinkley 1997,
    sections 4.4 and 5.2). A single run of ours cannot speak against any order.
    """
    runs = [np.array(figure.ours) for figure in column]
    if min(map(len, runs)) < 2:
        return True
    draw = np.random.default_rng(0)
    paper = np.array([figure.paper for figure in column])
    moved = [_moved(own, figure, paper_runs) for own, figure in zip(runs, paper, strict=True)]
    papers = [draw.choice(own, (DRAWS, paper_runs)).mean(axis=-1) for own in moved]
    ours = [draw.choice(own, (DRAWS, len(own))) for own in moved]
    pairs = np.nonzero(np.triu(paper[:, None] != paper))
    found = _contrary(runs, paper, pairs, trim, paper_runs)
    by_chance = _contrary(ours, np.stack(papers, axis=-1), pairs, trim, paper_runs)
    return bool(found == 0 or (1 + (by_chance >= found).sum()) / (1 + DRAWS) > LEVEL)


def _moved(runs: Array, paper: float, paper_runs: int) -> Array:
    """Return runs whose mean is that of both sides' together."""
    count, mean = len(runs), runs.mean()
    together = (count * mean + paper_runs * paper) / (count + paper_runs)
    # Drawing from n runs gives 1 - 1/n of their variance.
    moved: Array = together + (runs - mean) * math.sqrt(count / (count - 1))
    return moved


def _contrary(
    ours: Sequence[Array], paper: Array, pairs: tuple[npt.NDArray[np.intp], ...], trim: float, paper_runs: int
) -> Array:
    """Return by how many standard errors the clearest pair of rows is in another order; 0 if none is.

    Of each row, `ours` has its runs on the last axis; `paper` has the rows' figures there. Pairs are the
    first rows and the second ones.
    """
    first, second = pairs
    variances = np.stack([runs.var(axis=-1, ddof=1) for runs in ours], axis=-1)
    clear = []
    for means, counts in (
        (np.stack([_means(runs, trim) for runs in ours], axis=-1), [runs.shape[-1] for runs in ours]),
        (paper, [paper_runs] * len(ours)),
    ):
        squares = variances / counts
        errors = np.sqrt(squares[..., first] + squares[..., second]) + TINY
        clear.append((means[..., first] - means[..., second]) / errors)
    both = np.minimum(*map(np.abs, clear))
    most: Array = np.where(clear[0] * clear[1] < 0, both, 0.0).max(axis=-1, initial=0.0)
    return most


def _means(runs: Array, trim: float) -> Array:
    """Return the trimmed means over the last axis."""
    left_out = int(trim * runs.shape[-1])
    kept: Array = np.sort(runs, axis=-1)[..., left_out : runs.shape[-1] - left_out].mean(axis=-1)
    return kept


def _difference(a: Sequence[float], b: Sequence[float], confidence: float, trim: float) -> Difference:
    difference = welch(a, b, confidence, trim=trim)
    assert difference is not None, "every case has been run with a seed at least"
    return difference
