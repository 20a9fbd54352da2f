"""A study's cells as its tables: rows and columns as in the paper, and the order of each column's rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.report import units
from experiments.report.summary import unique
from experiments.studies.document import CheckedCell, RankedColumn, StudyDocument
from experiments.studies.figures import number, with_interval
from experiments.studies.schema import Cell, Study


@dataclass(frozen=True)
class StudyTable:
    """One table of a study; `cells` by row and column, `ranks` by column where the paper has several rows."""

    name: str
    rows: Sequence[str]
    columns: Sequence[str]
    headings: Mapping[str, str]
    """Name of each column, and the metric behind it where the name does not have it."""
    own_metrics: Mapping[str, Sequence[str]]
    """Of rows that the paper does not have: their metrics where the paper's rows have others."""
    cells: Mapping[tuple[str, str], CheckedCell]
    others: Mapping[str, Mapping[tuple[str, str], float]]
    """Figures by others' names, and row and column."""
    ranks: Mapping[str, RankedColumn]
    kernel: Mapping[tuple[str, str], CheckedCell]
    """Cells that a kernel has been asked for."""

    @property
    def sides(self) -> list[str]:
        """Whose figures a column has."""
        kernel = ["kernel"] if self.kernel else []
        return [*(["paper"] if self.has_paper else []), *self.others, "ours", *kernel]

    def figures(self, row: str, column: str) -> list[str]:
        """Return the text of each of a cell's `sides`: ours with half of its 95 % confidence interval."""
        cell = self.cells.get((row, column))
        printed: dict[str, float | None] = {}
        if self.has_paper:
            printed["paper"] = None if cell is None else cell.paper
        printed |= {name: figures.get((row, column)) for name, figures in self.others.items()}
        measured = [cell, *([self.kernel.get((row, column))] if self.kernel else [])]
        return [
            *(units.MISSING if each is None else number(each) for each in printed.values()),
            *(units.MISSING if own is None else with_interval(own.ours, own.half_width) for own in measured),
        ]

    @property
    def title(self) -> str:
        """Its name as a heading: `Table II` of what the paper numbers so."""
        return f"Table {self.name}" if re.match(r"[IVX]+\b", self.name) else self.name

    @property
    def has_paper(self) -> bool:
        """Whether the paper prints any of its figures."""
        return any(cell.paper is not None for cell in self.cells.values())


def tables_of(study: Study, document: StudyDocument) -> list[StudyTable]:
    """Return the tables in the order of the study's cells."""
    return [_table(study, document, name) for name in unique(cell.table for cell in document.cells)]


def _table(study: Study, document: StudyDocument, name: str) -> StudyTable:
    cells = [cell for cell in document.cells if cell.table == name]
    sources = [cell for cell in study.cells if cell.table == name]
    metrics = {column: _metrics(sources, column) for column in unique(cell.column for cell in cells)}
    own: dict[str, list[str]] = {}
    for source in sources:
        if source.ours.metric not in metrics[source.column]:
            own.setdefault(source.row, []).append(source.ours.metric)
    return StudyTable(
        name=name,
        rows=unique(cell.row for cell in cells),
        columns=list(metrics),
        headings={column: _heading(column, used) for column, used in metrics.items()},
        own_metrics={row: unique(used) for row, used in own.items()},
        cells={(cell.row, cell.column): cell for cell in cells},
        others=_others(study, name),
        ranks={column.column: column for column in document.ranks if column.table == name},
        kernel={
            (cell.row, cell.column): cell
            for cell in (document.kernel.cells if document.kernel else ())
            if cell.table == name
        },
    )


def _metrics(sources: Sequence[Cell], column: str) -> list[str]:
    """Return what a column has in the paper's rows, or in all where the paper has none."""
    of_column = [source for source in sources if source.column == column]
    printed = [source for source in of_column if source.paper is not None]
    return unique(source.ours.metric for source in printed or of_column)


def _heading(column: str, metrics: Sequence[str]) -> str:
    return column if any(metric in column for metric in metrics) else f"{column} ({', '.join(metrics)})"


def _others(study: Study, name: str) -> dict[str, dict[tuple[str, str], float]]:
    found: dict[str, dict[tuple[str, str], float]] = {}
    for table in study.tables:
        for whose, rows in table.others.items() if table.table == name else ():
            for row, figures in rows.items():
                by_place = {(row, column): each for column, each in zip(table.columns, figures, strict=True)}
                found.setdefault(whose, {}).update(by_place)
    return found


def verdict(ranked: RankedColumn) -> str:
    """Return how the order of a column's rows compares with the paper's, in a few words."""
    if ranked.ranked_alike:
        return "as in the paper"
    alike, contrary, still_open = ranked.pairs_alike, ranked.pairs_contrary, ranked.pairs_open
    pairs = alike + contrary + still_open
    chance = "; chance could give the paper's" if ranked.consistent else ""
    return f"{alike} of {pairs} pairs alike, {contrary} contrary, {still_open} open{chance}"
