"""Demands one by one, as CSV and JSON give them: fields by name.

`source`, `destination` and `rate_bps` have to be there; `id` (default f1, f2, ...), `weight`, `max_paths`,
`max_delay_s`, `disjoint` (edges or nodes) and `ack_ratio` may be. They mean what `gomr.Demand`
says.
`src` and `from` stand for `source`, `dst`, `dest`, `target` and `to` for `destination`; `rate`, `demand`,
`value`, `bandwidth` and `bw` for a rate whose unit is written behind it or given by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gomr import Demand

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, checked, rate_of, unique

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
SYNONYMS = {
    "src": "source",
    "from": "source",
    "dst": "destination",
    "dest": "destination",
    "target": "destination",
    "to": "destination",
}
RATES = ("rate", "demand", "value", "bandwidth", "bw")
"""Names of a rate whose unit is not in the name."""


def column_of(name: str) -> str:
    """Return what a name stands for: a column, `rate`, or itself where it is neither."""
    lowered = name.strip().lower()
    return "rate" if lowered in RATES else SYNONYMS.get(lowered, lowered)


def check_header(names: Iterable[str], file: str, place: str) -> list[str]:
    """Return the columns that a header names (ScenarioError: one is none, missing, or there twice)."""
    columns = []
    for name in names:
        column = column_of(name)
        if column not in COLUMNS and column != "rate":
            reason = f"{name!r} is no column; columns are {', '.join(COLUMNS)}"
            raise ScenarioError(file, place, reason)
        columns.append(column)
    has = {"rate_bps" if column == "rate" else column for column in columns}
    missing = [name for name in REQUIRED if name not in has]
    if missing:
        reason = f"the header lacks {', '.join(missing)}; it begins as {','.join(REQUIRED)}"
        raise ScenarioError(file, place, reason)
    if len(set(columns)) < len(columns) or {"rate", "rate_bps"} <= set(columns):
        raise ScenarioError(file, place, "the header names a column twice")
    return columns


def of_rows(rows: Iterable[tuple[str, Mapping[str, Any]]], context: Context, file: str) -> ReadDemands:
    """Return the demands of rows, each a place and its values (ScenarioError: one cannot be used)."""
    demands, places = [], []
    has_bare_rate = False
    for number, (place, values) in enumerate(rows, start=1):
        has_bare_rate |= "rate" in values and not str(values["rate"]).strip()[-1:].isalpha()
        demands.append(_demand(values, f"f{number}", context, file, place))
        places.append(place)
    return ReadDemands(unique(demands, file, places), context.unit_notes() if has_bare_rate else ())


def _demand(values: Mapping[str, Any], default_id: str, context: Context, file: str, place: str) -> Demand:
    fields: dict[str, Any] = {"id": default_id}
    for name, value in values.items():
        if name in ("source", "destination"):
            fields[name] = context.end(str(value).strip(), file, f"{place}: {name}")
        elif name == "rate_bps":
            fields["rate_bps"] = rate_of(value, 1.0, file, f"{place}: rate_bps")
        elif name == "rate":
            unit_bps = 1.0 if str(value).strip()[-1:].isalpha() else context.bare_unit_bps(file)
            fields["rate_bps"] = rate_of(value, unit_bps, file, f"{place}: rate")
        elif value not in ("", None):
            fields[name] = _typed(name, value, file, place)
    return checked(Demand(**fields), file, place)


def _typed(name: str, value: Any, file: str, place: str) -> Any:
    kind = COLUMNS[name]
    try:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        what = "a whole number" if kind is int else "a number"
        raise ScenarioError(file, place, f"{name}: {value!r} is not {what}") from None
