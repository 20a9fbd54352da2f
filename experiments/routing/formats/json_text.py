"""Demands as JSON.

| document | means |
|---|---|
| `[{"source": …, "destination": …, "rate_bps": …}, …]`, or the same under `demands` | a list (`rows`) |
| `{"Paris": {"Lyon": 2e9}}` | rates by source and destination |
| `[[0, 2e9], [1e9, 0]]` | a matrix, in the order of the network's nodes |
| `{"nodes": ["Paris", "Lyon"], "matrix": [[0, 2e9], [1e9, 0]]}` | a matrix with its nodes |

A rate may be a text with its unit, as "2 Gbit/s".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, of_matrix, order_of, rate_of
from experiments.routing.formats.rows import check_header, of_rows

NAME = "JSON"


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file is JSON."""
    return path.suffix.lower() == ".json" or content.lstrip()[:1] in (b"{", b"[")


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it cannot be used; the text names the place)."""
    try:
        data = json.loads(content)
    except ValueError as error:
        raise ScenarioError(file, "", f"is not JSON: {error}") from None
    if isinstance(data, Mapping) and isinstance(data.get("demands"), list):
        left = sorted(set(data) - {"demands"})
        made = of_rows(_objects(data["demands"], file), context, file)
        notes = (f"keys that are not read: {', '.join(left)}",) if left else ()
        return ReadDemands(made.demands, (*made.notes, *notes))
    if isinstance(data, Mapping) and "matrix" in data:
        return _matrix(data["matrix"], _nodes(data.get("nodes"), context, file), file, context)
    if isinstance(data, Mapping):
        return of_rows(_nested(data, file), context, file)
    if isinstance(data, list) and data and isinstance(data[0], list):
        return _matrix(data, None, file, context)
    if isinstance(data, list):
        return of_rows(_objects(data, file), context, file)
    raise ScenarioError(file, "", "has to be a list of demands, rates by source, or a matrix")


def _objects(entries: list[Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, entry in enumerate(entries):
        place = f"[{index}]"
        if not isinstance(entry, Mapping):
            raise ScenarioError(file, place, "has to be an object with source, destination and rate_bps")
        columns = check_header(entry, file, place)
        yield place, dict(zip(columns, entry.values(), strict=True))


def _nested(data: Mapping[str, Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for source, row in data.items():
        if not isinstance(row, Mapping):
            reason = 'has to be an object of rates by destination, as {"Paris": {"Lyon": 2e9}}'
            raise ScenarioError(file, source, reason)
        for destination, rate in row.items():
            place = f"{source}.{destination}"
            yield place, {"source": source, "destination": destination, "rate": rate}


def _nodes(names: object, context: Context, file: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(set(map(str, names))) < len(names):
        raise ScenarioError(file, "nodes", "has to be an array of nodes, each once")
    return tuple(context.end(str(name), file, f"nodes[{index}]") for index, name in enumerate(names))


def _matrix(rows: object, names: tuple[str, ...] | None, file: str, context: Context) -> ReadDemands:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(rows) for row in rows):
        raise ScenarioError(file, "", "a traffic matrix is square: as many rows as rates in each")
    if names is None:
        names = order_of(len(rows), context, file)
    unit_bps = context.bare_unit_bps(file)
    rates = [
        [rate_of(value, unit_bps, file, f"[{i}][{j}]") for j, value in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    return of_matrix(np.array(rates, dtype=np.float64), names, 1.0, file, context.unit_notes())
