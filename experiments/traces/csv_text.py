"""Traces as tables: `time_s` and what the link becomes then."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from experiments.errors import ScenarioError
from experiments.traces.base import SETTINGS, LinkSettings, Step, TraceBase, register, repeated
from topologies.validation import requirement


class TraceRow(LinkSettings):
    """What a link becomes at a time."""

    time_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]


@register
class CsvTrace(TraceBase):
    """A file under the header `time_s,…`, with a column for each property that changes; empty leaves one.

    With `repeat_s` it begins again after that time.
    """

    kind: Literal["csv"] = "csv"
    file: str = Field(min_length=1)
    repeat_s: Annotated[float, Field(gt=0, le=86400)] | None = None
    rows: tuple[TraceRow, ...] = ()
    """What the file holds, once it is read."""

    def read(self, folder: Path) -> TraceBase:
        """Read the rows."""
        if self.rows:
            return self
        source = folder / self.file
        try:
            with source.open(newline="", encoding="utf-8") as text:
                table = csv.DictReader(line for line in text if line.strip() and not line.startswith("#"))
                rows = tuple(_row(row, source, number) for number, row in enumerate(table, start=2))
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(str(source), "", f"cannot be read as a trace: {error}") from None
        if not rows or any(later.time_s <= row.time_s for row, later in itertools.pairwise(rows)):
            raise ScenarioError(str(source), "", "is no trace: it needs rows whose time_s rise")
        return self.model_copy(update={"rows": rows})

    def steps(self, seed: int) -> Iterator[Step]:
        """Yield the rows."""
        del seed
        steps = [Step(row.time_s, row.settings) for row in self.rows]
        if self.repeat_s is None:
            return iter(steps)
        return repeated([step for step in steps if step.time_s < self.repeat_s], self.repeat_s)


def _row(row: dict[str, str], source: Path, number: int) -> TraceRow:
    try:
        return TraceRow.model_validate({name: text for name, text in row.items() if text != ""})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        what = ".".join(map(str, problem["loc"]))
        known = f"; columns are time_s, {', '.join(SETTINGS)}" if problem["type"] == "extra_forbidden" else ""
        reason = "there is no such column" if known else requirement(problem)
        raise ScenarioError(str(source), f"row {number}, {what}", f"{reason}{known}") from None
