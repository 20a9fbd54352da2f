"""The form of a study's file. Unknown keys are refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationError, model_validator

from experiments.errors import ScenarioError, UnknownName
from experiments.model.data import Data
from experiments.model.problems import first_problem
from topologies import toml

FOLDER = Path(__file__).parent / "data"
ALL = "all"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Changes = dict[str, Any]
"""Dotted keys of the simulator's description and values; elements of lists by name, link ends or number."""
ABOVE, BELOW = 1, -1
Limits = Mapping[int, float]
"""What a figure is `ABOVE` and `BELOW`."""


class Level(Data):
    """One value of an axis."""

    name: Name
    set: Changes = Field(default_factory=dict)


class Axis(Data):
    """What is varied; the cases of a study are the products of all its axes."""

    name: Name
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]


class FromScenario(Data):
    """A base that is a run of a scenario file: its allocation, its paths, its settings."""

    scenario: Name
    case: Name
    protocol: Name
    settings: Changes = Field(default_factory=dict)


class Metric(Data):
    """A figure of a run: `of` is its place in the simulator's results, `scale` makes the unit of the name.

    `optional`: only some of the study's protocols have it; for the others it is 0.
    `beside`: another measure of the same thing, by which each sentence on this one is checked as well.
    `kernel`: its place in the results of a kernel's run where that is another; of a list its mean.
    """

    of: str
    scale: float = 1.0
    optional: bool = False
    beside: Name | None = None
    kernel: str | None = None


class Side(NamedTuple):
    """A figure that a sentence speaks of: a metric's mean over the runs of these cases."""

    cases: tuple[str, ...]
    metric: str

    def __str__(self) -> str:
        return f"{' + '.join(self.cases)}: {self.metric}"


def side(text: str, metric: str = "") -> Side:
    """Return the figure of `CASE`, `CASE: METRIC`, or `CASE + CASE`, which is the mean of several cases."""
    cases, colon, named = text.rpartition(":")
    if not colon:
        cases, named = text, metric
    return Side(tuple(case.strip() for case in cases.split("+")), named.strip())


class Cell(NamedTuple):
    """A figure that the paper prints, and where ours comes from; without `paper` a row of our own."""

    table: str
    row: str
    column: str
    paper: float | None
    ours: Side


class PaperTable(Data):
    """A table of the paper, or a part of it.

    A column's place is `CASE: METRIC`, where `{}` is the row. A row has a figure for each column: the
    paper's; `""` where the paper prints none; a place of its own instead; or `"-"`, no cell. `[]` is `""`
    everywhere.
    """

    table: str
    columns: Annotated[dict[str, str], Field(min_length=1)]
    rows: Annotated[dict[str, tuple[float | str, ...]], Field(min_length=1)]
    others: dict[str, dict[str, tuple[float, ...]]] = Field(default_factory=dict)
    """Figures of others by their name, as of another simulator, which stand beside the paper's."""

    @model_validator(mode="after")
    def _is_rectangular(self) -> PaperTable:
        tables: list[Mapping[str, Sequence[float | str]]] = [self.rows, *self.others.values()]
        for rows in tables:
            for row, figures in rows.items():
                if len(figures) not in (0, len(self.columns)):
                    raise ValueError(f"row {row} has {len(figures)} figures for {len(self.columns)} columns")
        return self

    def cells(self) -> Iterator[Cell]:
        """Return the cells, row by row."""
        for row, figures in self.rows.items():
            for column, figure in zip(self.columns, figures or [""] * len(self.columns), strict=True):
                own = figure if isinstance(figure, str) else ""
                if own != "-":
                    paper = None if isinstance(figure, str) else figure
                    place = (own or self.columns[column]).replace("{}", row)
                    yield Cell(self.table, row, column, paper, side(place))


def _printed(text: str) -> str:
    try:
        finite = Decimal(text).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        raise ValueError(f"must be a number as the paper prints it, not {text!r}")
    return text


class ClaimedRelation(NamedTuple):
    """What must hold: a figure, its ratio `of` another or its difference from one lies between limits."""

    left: Side
    relation: Literal["alone", "of", "minus"]
    right: Side | None
    limits: Limits

    def replace(self, change: Callable[[Side], Side]) -> ClaimedRelation:
        """Return the comparison of other figures."""
        return self._replace(left=change(self.left), right=self.right and change(self.right))


class Holds(Data):
    """Comparisons of a sentence: each of `case`, with each of `of` or `minus`, lies within the limits.

    `is` is a number as the paper prints it, of which half a unit of the last digit is the limit to both
    sides: "25" is 24.5 to 25.5, "7e1" 65 to 75.
    """

    case: str | tuple[str, ...]
    of: str | tuple[str, ...] = ()
    minus: str | tuple[str, ...] = ()
    above: float | None = None
    below: float | None = None
    printed: Annotated[str, AfterValidator(_printed)] | None = Field(None, alias="is")

    @model_validator(mode="after")
    def _has_limits(self) -> Holds:
        if (self.printed is None) == (self.above is None and self.below is None):
            raise ValueError("a comparison needs either `is` or one of `above` and `below`")
        if self.of and self.minus:
            raise ValueError("a comparison has one of `of` and `minus`")
        return self

    @property
    def limits(self) -> Limits:
        """Return the limits."""
        if self.printed is None:
            given = {ABOVE: self.above, BELOW: self.below}
            return {side: limit for side, limit in given.items() if limit is not None}
        number = Decimal(self.printed)
        half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
        return {ABOVE: float(number - half), BELOW: float(number + half)}

    def comparisons(self, by: str, each: str) -> Iterator[ClaimedRelation]:
        """Return the comparisons by a metric, `each` in place of `{}`."""
        relation: Literal["alone", "of", "minus"] = "of" if self.of else "minus" if self.minus else "alone"
        for left, right in product(_texts(self.case), _texts(self.of or self.minus) or (None,)):
            yield ClaimedRelation(
                side(left.replace("{}", each), by),
                relation,
                None if right is None else side(right.replace("{}", each), by),
                self.limits,
            )


def _texts(texts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


class Dependence(Data):
    """An assumption of ours from which sentences may follow: they are checked without it too.

    `without`: words of the cases' names, and those of the cases without the assumption.
    """

    assumption: str
    without: Annotated[dict[str, str], Field(min_length=1)]


class Claim(Data):
    """A sentence of the paper that can be checked; `contradiction`: what in the paper speaks against it."""

    claim: str
    source: str
    by: Name
    """The metric by which it is checked."""
    each: tuple[str, ...] = ("",)
    """It holds for each of these, which stand for `{}` in the cases."""
    holds: tuple[Holds, ...] = ()
    contradiction: str | None = None
    depends_on: Name | None = None
    """One of the study's `dependences`."""

    @model_validator(mode="after")
    def _can_be_checked(self) -> Claim:
        if bool(self.holds) == (self.contradiction is not None):
            raise ValueError("a claim needs `holds`, or the contradiction that makes it void")
        return self

    def comparisons(self) -> list[ClaimedRelation]:
        """Return all that must hold."""
        return [
            comparison
            for each in self.each
            for part in self.holds
            for comparison in part.comparisons(self.by, each)
        ]


class Study(Data):
    """A study's file."""

    format: Literal[1]
    name: Name
    title: str
    source: str
    assumptions: tuple[str, ...] = ()
    """What the paper leaves open, and what is taken for all cases."""
    dependences: dict[Name, Dependence] = Field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """What of the paper this study does not make, and why."""
    otherwise_in_kernels: dict[str, str] = Field(default_factory=dict)
    """What of the cases a kernel is not told, as `tcp.profile`, and what it does instead, as a sentence."""
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
    tables: tuple[PaperTable, ...] = ()
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_whole(self) -> Study:
        if bool(self.base) == bool(self.scenario):
            raise ValueError("a study has either `base` or `scenario`")
        unknown = {claim.depends_on for claim in self.claims} - {None, *self.dependences}
        if unknown:
            raise ValueError(f"there is no dependence {unknown.pop()!r}")
        return self

    @property
    def cells(self) -> list[Cell]:
        """Return the cells of all tables."""
        return [cell for table in self.tables for cell in table.cells()]

    def beside(self, side: Side) -> Side:
        """Return the same figure by the other measure, where its metric has one."""
        return side._replace(metric=self.metrics[side.metric].beside or side.metric)

    def without(self, claim: Claim) -> list[ClaimedRelation]:
        """Return a claim's comparisons in the cases without the assumption on which it depends, if any."""
        if claim.depends_on is None:
            return []
        words = self.dependences[claim.depends_on].without

        def renamed(side: Side) -> Side:
            cases = (" ".join(words.get(word, word) for word in case.split(" ")) for case in side.cases)
            return side._replace(cases=tuple(cases))

        return [comparison.replace(renamed) for comparison in claim.comparisons()]


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
        return Study.model_validate(toml.loads(text))
    except ValidationError as error:
        raise ScenarioError(source, *first_problem(error)) from None
    except toml.TOMLDecodeError as error:
        raise ScenarioError(source, "", f"is not TOML: {error}") from None
