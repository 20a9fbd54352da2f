"""Demands as CSV: a list under a header, or a matrix with or without the names of the nodes.

    source,destination,rate_bps        ,Paris,Lyon         0,2e9
    Paris,Lyon,2e9                     Paris,0,2e9         1e9,0
    Lyon,Paris,1 Gbit/s                Lyon,1e9,0

A list's columns come in any order (`rows`); an empty cell is the default. A matrix has the sources in its
rows. Cells are parted by commas, semicolons, tabs or spaces, whichever the first line has. Lines that are
empty or begin with # are passed over.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, of_matrix, order_of, rate_of
from experiments.routing.formats.rows import check_header, column_of, of_rows
from topologies.formats.raw import text_of

NAME = "CSV"
DELIMITERS = ",;\t"
ENDS = ("source", "destination")


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file is CSV: any text may be."""
    return path.suffix.lower() == ".csv" or "\0" not in text_of(content)


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it cannot be used; the text names the line)."""
    text = text_of(content)
    if "\0" in text:
        raise ScenarioError(file, "", "is not a CSV file of demands: it is not text")
    return parse(text, file, context)


def parse(text: str, file: str, context: Context) -> ReadDemands:
    """Return the demands of a file's text; as `read`."""
    rows = list(_rows(text, file))
    number, first = rows[0] if rows else (1, [])
    if len(first) > 1 and not any(column_of(cell) in ENDS for cell in first):
        return _matrix(rows, file, context)
    columns = check_header(first, file, f"line {number}")
    return of_rows(_list(rows[1:], columns, file), context, file)


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that hold something, with their numbers."""
    delimiter: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if delimiter is None:
            delimiter = max(DELIMITERS, key=line.count)
            delimiter = delimiter if delimiter in line else " "
        if delimiter == " ":
            yield number, line.split()
            continue
        try:
            (cells,) = csv.reader([line], delimiter=delimiter, strict=True)
        except csv.Error as error:
            raise ScenarioError(file, f"line {number}", f"is not CSV: {error}") from None
        yield number, [cell.strip() for cell in cells]


def _list(
    rows: list[tuple[int, list[str]]], columns: list[str], file: str
) -> Iterator[tuple[str, dict[str, str]]]:
    for number, cells in rows:
        place = f"line {number}"
        if len(cells) != len(columns):
            raise ScenarioError(file, place, f"has {len(cells)} cells, the header {len(columns)}")
        yield place, dict(zip(columns, cells, strict=True))


def _matrix(rows: list[tuple[int, list[str]]], file: str, context: Context) -> ReadDemands:
    _, first = rows[0]
    # Names may be numbers: then the empty corner and one row too many tell that they are there.
    named = not all(map(_is_number, first)) or (first[0] == "" and len(rows) == len(context.ends) + 1)
    unit_bps = context.bare_unit_bps(file)
    if not named:
        names: tuple[str, ...] = order_of(len(rows), context, file)
        body = rows
    else:
        names, body = _named(rows, file, context)
    matrix = np.zeros((len(body), len(names)))
    for index, (number, cells) in enumerate(body):
        place = f"line {number}"
        if len(cells) != len(names):
            raise ScenarioError(file, place, f"has {len(cells)} rates, the matrix {len(names)} columns")
        matrix[index] = [
            rate_of(cell, unit_bps, file, f"{place}, column {column}") if cell else 0.0
            for column, cell in enumerate(cells, start=1)
        ]
    return of_matrix(matrix, names, 1.0, file, context.unit_notes())


def _named(
    rows: list[tuple[int, list[str]]], file: str, context: Context
) -> tuple[tuple[str, ...], list[tuple[int, list[str]]]]:
    """Return the nodes of the columns, and the rows of rates in that order."""
    number, header = rows[0]
    body = rows[1:]
    # The corner above the names of the rows may be empty, hold a word, or not be there (spaces).
    if all(len(cells) == len(header) for _, cells in body):
        header = header[1:]
    columns = tuple(context.end(name, file, f"line {number}") for name in header)
    of_row: dict[str, tuple[int, list[str]]] = {}
    for line, cells in body:
        name = context.end(cells[0], file, f"line {line}")
        if name in of_row:
            raise ScenarioError(file, f"line {line}", f"there is already a row for {name}")
        of_row[name] = (line, cells[1:])
    if len(set(columns)) < len(columns) or set(columns) != set(of_row):
        reason = "rows and columns of a matrix have to name the same nodes, each once"
        raise ScenarioError(file, f"line {number}", reason)
    return columns, [of_row[name] for name in columns]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == ""
    return True
