"""The form of a study's file. Unknown keys are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from experiments.errors import ScenarioError, UnknownName
from experiments.model.scenario import first_problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "data"
ALL = "all"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Changes = dict[str, Any]
"""Dotted keys of the simulator's description and values; elements of lists by name, link ends or number."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Level(_Model):
    """One value of an axis."""

    name: Name
    set: Changes = Field(default_factory=dict)


class Axis(_Model):
    """What is varied; the cases of a study are the products of all its axes."""

    name: Name
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]


class FromScenario(_Model):
    """A base that is a run of a scenario file: its allocation, its paths, its settings."""

    scenario: Name
    case: Name
    protocol: Name
    settings: Changes = Field(default_factory=dict)


class Metric(_Model):
    """A figure of a run: `of` is its place in the simulator's results, `scale` makes the unit of the name.

    `optional`: only some of the study's protocols have it; for the others it is 0.
    """

    of: str
    scale: float = 1.0
    optional: bool = False


class Cell(_Model):
    """A figure that the paper prints, and where ours comes from; without `paper` a row of our own."""

    table: str
    row: str
    column: str
    paper: float | None = None
    case: str
    metric: Name


Side = float | str
"""A number, or `case: metric`."""


class Holds(_Model):
    """A comparison that a claim rests on: `left` above or below `right`, times `factor`."""

    left: str
    relation: Literal["above", "below", "about"]
    right: Side
    factor: Annotated[float, Field(gt=0)] = 1.0
    tolerance: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Of `about`, relative."""


class Claim(_Model):
    """A sentence of the paper that can be checked; `contradiction`: what in the paper speaks against it."""

    claim: str
    source: str
    holds: tuple[Holds, ...] = ()
    contradiction: str | None = None

    @model_validator(mode="after")
    def _can_be_checked(self) -> Claim:
        if not self.holds and self.contradiction is None:
            raise ValueError("a claim needs `holds`, or the contradiction that makes it void")
        return self


class Study(_Model):
    """A study's file."""

    format: Literal[1]
    name: Name
    title: str
    source: str
    assumptions: tuple[str, ...] = ()
    """What the paper leaves open, and what is taken for all cases."""
    left_out: tuple[str, ...] = ()
    """What of the paper this study does not make, and why."""
    duration_s: Annotated[float, Field(gt=0, le=86400)]
    base: dict[str, Any] = Field(default_factory=dict)
    scenario: dict[str, FromScenario] = Field(default_factory=dict)
    """Bases by name, in place of `base`; their names are the levels of a first axis."""
    axes: tuple[Axis, ...] = ()
    only: tuple[str, ...] = ()
    """Patterns (`*`, `?`) of the names of cases that are made; none: all."""
    trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    """Share of the runs left out at each end of a figure, where the paper prints single runs."""
    paper_runs: Annotated[int, Field(ge=1)] = 1
    """How many runs a figure of the paper is the mean of."""
    metrics: Annotated[dict[Name, Metric], Field(min_length=1)]
    cells: tuple[Cell, ...] = ()
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_one_base(self) -> Study:
        if bool(self.base) == bool(self.scenario):
            raise ValueError("a study has either `base` or `scenario`")
        return self


def available() -> dict[str, Path]:
    """Return the studies by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def load(name: str) -> Study:
    """Read a study, by its name or the path of its file.

    Raises:
        UnknownName: there is none of this name.
        ScenarioError: with the place of the first thing that is wrong in its file.
    """
    path = available().get(name)
    if path is None and name.endswith(".toml"):
        path = Path(name)
    if path is None:
        raise UnknownName("study", name, [*available(), ALL])
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ScenarioError(str(path), "", f"cannot be read: {reason}") from None
    return parse(text, path.name)


def parse(text: str, source: str) -> Study:
    """Check a study's text against the schema; ScenarioError says what is wrong where."""
    try:
        return Study.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise ScenarioError(source, *first_problem(error)) from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(source, "", f"is not TOML: {error}") from None
