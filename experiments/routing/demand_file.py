"""Demands from a CSV file: a header, then one flow a line.

    source,destination,rate_bps
    Seattle,Atlanta,2e9

Further columns, all optional: `id` (default f1, f2, ...), `weight`, `max_paths`, `max_delay_s`, `disjoint`
(edges or nodes), `ack_ratio`; an empty cell is the default. They mean what `controller.gomr.Demand` says.
Lines that are empty or begin with # are passed over.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from controller.errors import InvalidProblem
from controller.gomr import Demand
from controller.gomr.problem import check_own_fields
from experiments.errors import ScenarioError

COLUMNS: Mapping[str, Callable[[str], Any]] = {
    "source": str,
    "destination": str,
    "rate_bps": float,
    "id": str,
    "weight": float,
    "max_paths": int,
    "max_delay_s": float,
    "disjoint": str,
    "ack_ratio": float,
}
REQUIRED = ("source", "destination", "rate_bps")


def read_demands(path: Path, nodes: Collection[str]) -> tuple[Demand, ...]:
    """Return the demands of a file.

    Args:
        path: The file.
        nodes: Where flows may begin and end.

    Raises:
        ScenarioError: It cannot be read or used; the text names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}; give gravity, uniform, bimodal or a CSV file of demands"
        raise ScenarioError(str(path), "", reason) from None
    except UnicodeDecodeError:
        raise ScenarioError(str(path), "", "is not a CSV file of demands: it is not text") from None
    return parse_demands(text, str(path), nodes)


def parse_demands(text: str, file: str, nodes: Collection[str]) -> tuple[Demand, ...]:
    """Return the demands of a file's text; as `read_demands`."""
    rows = _rows(text)
    number, header = next(rows, (1, []))
    _check_header(header, file, number)
    demands: dict[str, Demand] = {}
    for number, cells in rows:
        place = f"line {number}"
        if len(cells) != len(header):
            reason = f"has {len(cells)} cells, the header {len(header)}"
            raise ScenarioError(file, place, reason)
        demand = _demand(dict(zip(header, cells, strict=True)), len(demands) + 1, nodes, (file, place))
        if demand.id in demands:
            raise ScenarioError(file, place, f"there is already a flow {demand.id!r}")
        demands[demand.id] = demand
    if not demands:
        raise ScenarioError(file, "", "holds no flow; give one a line")
    return tuple(demands.values())


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that hold something, with their numbers."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            (cells,) = csv.reader([line])
            yield number, [cell.strip() for cell in cells]


def _check_header(header: list[str], file: str, number: int) -> None:
    place = f"line {number}"
    for name in header:
        if name not in COLUMNS:
            raise ScenarioError(file, place, f"{name!r} is no column; columns are {', '.join(COLUMNS)}")
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        reason = f"the header lacks {', '.join(missing)}; it begins as {','.join(REQUIRED)}"
        raise ScenarioError(file, place, reason)
    if len(set(header)) < len(header):
        raise ScenarioError(file, place, "the header names a column twice")


def _demand(cells: Mapping[str, str], number: int, nodes: Collection[str], where: tuple[str, str]) -> Demand:
    values: dict[str, Any] = {"id": f"f{number}"}
    for name, cell in cells.items():
        if cell or name in REQUIRED:
            try:
                values[name] = COLUMNS[name](cell)
            except ValueError:
                kind = "a whole number" if COLUMNS[name] is int else "a number"
                raise ScenarioError(*where, f"{name}: {cell!r} is not {kind}") from None
    for name in ("source", "destination"):
        if values[name] not in nodes:
            near = difflib.get_close_matches(values[name], nodes, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ScenarioError(*where, f"{name}: flows cannot begin or end at {values[name]!r}{hint}")
    demand = Demand(**values)
    try:
        check_own_fields("", demand)
    except InvalidProblem as error:
        raise ScenarioError(*where, f"{error.field.lstrip('.')}: {error.reason}") from None
    return demand
