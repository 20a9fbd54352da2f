"""Values of one measure out of results documents and sweeps, in groups: what a figure or a table is made of.

A measure is a column of numbers of one of the tables (`experiments.analysis.tables`); what it is grouped by,
drawn over or filtered by is a column of the same table, a setting of the scenario (`tcp.congestion_control`),
a property of a link (`links.S0-S4.delay_us`), or `document`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from experiments.analysis.statistics import Estimate, estimate_of_seeds
from experiments.analysis.tables import Table
from experiments.errors import ScenarioError, UnknownName

Value: TypeAlias = float | str
DOCUMENT = "document"
"""The column that says which document a row is of."""
RUN = (DOCUMENT, "case", "load", "protocol", "seed")
"""The columns that tell runs apart: values of one run are one measurement."""


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested tables of settings hold, with names as `tcp.sack`; an empty table is a value."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@dataclass(frozen=True)
class SampleSource:
    """One document: its name, its tables, and its settings by their dotted names."""

    name: str
    tables: Mapping[str, Table]
    settings: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """Which values are wanted.

    `where` has for each name the texts that its value may have.
    """

    measure: str
    by: str
    over: str | None = None
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """What rows must have beside the measure."""
        return [name for name in (self.by, self.over, *self.where) if name is not None]


@dataclass(frozen=True)
class Sample:
    """The values of one group at one place of what they are drawn over (None: over nothing)."""

    group: str
    at: Value | None
    values: tuple[float, ...]
    """One for each row."""
    of_runs: tuple[float, ...]
    """The mean of each run's values: independent measurements, as intervals need them."""

    @property
    def mean(self) -> Estimate:
        """Mean over the runs with its 95 % confidence interval."""
        computed = estimate_of_seeds(self.of_runs)
        assert computed is not None, "a sample has a value"
        return computed


def select(sources: Sequence[SampleSource], question: Question) -> list[Sample]:
    """Return the samples that a question is about, in the order in which their groups come up.

    Raises:
        UnknownName: there is no such measure, column or setting.
        ScenarioError: nothing was measured that the question is about.
    """
    table = _table_of(sources, question)
    found: dict[tuple[str, Value | None], dict[tuple[Any, ...], list[float]]] = {}
    for row in _rows(sources, table):
        value = row[question.measure]
        is_asked_for = all(str(row[name]) in texts for name, texts in question.where.items())
        if value is None or not math.isfinite(value) or not is_asked_for:
            continue
        at = None if question.over is None else row[question.over]
        runs = found.setdefault((str(row[question.by]), at), {})
        runs.setdefault(tuple(row.get(name) for name in RUN), []).append(float(value))
    if not found:
        asked = ", ".join(f"{name}={','.join(texts)}" for name, texts in question.where.items())
        reason = f"no run has a value of {question.measure}" + (f" where {asked}" if asked else "")
        raise ScenarioError("plot", "", reason)
    return [
        Sample(
            group,
            at,
            tuple(value for values in runs.values() for value in values),
            tuple(math.fsum(values) / len(values) for values in runs.values()),
        )
        for (group, at), runs in found.items()
    ]


def measures(sources: Sequence[SampleSource]) -> list[str]:
    """Return the names of all columns of numbers."""
    names = (
        name
        for source in sources
        for table in source.tables.values()
        for name, column in table.items()
        if name not in RUN and any(_is_number(value) for value in column)
    )
    return list(dict.fromkeys(names))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table_of(sources: Sequence[SampleSource], question: Question) -> str:
    """Return the first table that has the measure and all else that is asked for."""
    candidates = [
        name
        for name in dict.fromkeys(name for source in sources for name in source.tables)
        if any(map(_is_number, _columns(sources, name, question.measure)))
    ]
    if not candidates:
        raise UnknownName("measure", question.measure, measures(sources))
    for name in candidates:
        if all(asked in _names(sources, name) for asked in question.names):
            return name
    known = _names(sources, candidates[0])
    missing = next(asked for asked in question.names if asked not in known)
    columns = [column for column in known if "." not in column]
    raise UnknownName(f"column beside {question.measure}", missing, [*columns, "or a setting as tcp.sack"])


def _columns(sources: Sequence[SampleSource], table: str, column: str) -> Iterator[Any]:
    return (value for source in sources for value in source.tables.get(table, {}).get(column, ()))


def _names(sources: Sequence[SampleSource], table: str) -> list[str]:
    columns = (name for source in sources for name in (*source.tables.get(table, {}), *source.settings))
    return [DOCUMENT, *dict.fromkeys(columns)]


def _rows(sources: Sequence[SampleSource], table: str) -> Iterator[Mapping[str, Any]]:
    for source in sources:
        columns = source.tables.get(table, {})
        same = {**source.settings, DOCUMENT: source.name}
        for values in zip(*columns.values(), strict=True):
            yield {**same, **dict(zip(columns, values, strict=True))}
