"""What a study finds, as others read it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from experiments.model.data import Data

Verdict = Literal["reproduced", "not_reproduced", "undecided"]
Status = Literal[Verdict, "contradictory"]


class Judgement(Data):
    """What the seeds say of a sentence `by` a metric; `evidence` has the figures."""

    by: str
    status: Verdict
    evidence: str


class CheckedClaim(Data):
    """A sentence of the paper, and whether the simulator bears it out by the paper's own measure.

    `contradictory`: the paper has it otherwise elsewhere, which `evidence` says.
    """

    claim: str
    source: str
    status: Status
    by: str
    evidence: str
    beside: Judgement | None
    """The same by another measure, where the study has one."""
    depends_on: str | None
    """An assumption of ours from which it may follow."""
    without: Judgement | None
    """The same without that assumption."""


class Columns(Data):
    """In how many of the tables' columns the rows rank as in the paper.

    `consistent` are the columns whose order in the paper is no further from ours than chance makes that of
    as many more runs of ours as the paper made; `uncontradicted` are those without a pair of rows that the
    seeds tell apart and have in another order. Pairs of rows are in the paper's order, in another, or open.
    """

    ranked_alike: int
    consistent: int
    uncontradicted: int
    of: int
    pairs_alike: int
    pairs_contrary: int
    pairs_open: int


class RankedColumn(Data):
    """The order of a column's rows, greatest first, in the paper and by our means; pairs as in `Columns`."""

    table: str
    column: str
    paper: list[str]
    ours: list[str]
    ranked_alike: bool
    consistent: bool
    pairs_alike: int
    pairs_contrary: int
    pairs_open: int


class CheckedCell(Data):
    """A figure of the paper, ours over the seeds, and its 95 % interval; None with a single seed.

    `paper` is None in rows that the paper does not have.
    """

    table: str
    row: str
    column: str
    paper: float | None
    ours: float
    interval: tuple[float, float] | None

    @property
    def half_width(self) -> float | None:
        """Half of the interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2


class KernelClaim(Data):
    """What a Linux kernel's runs say of a sentence: a judgement, or why it cannot be asked."""

    judgement: Judgement | None
    why_not: str | None


class Kernel(Data):
    """The kernel's side of a study: each of its sentences in order, and the cells that it has."""

    claims: list[KernelClaim]
    cells: list[CheckedCell]
    otherwise: list[str]
    """What the kernel was not told of the cases, and does instead."""


class StudyDocument(Data):
    """What `mstcp-lab reproduce NAME --json` prints."""

    study: str
    claims: list[CheckedClaim]
    columns: Columns
    cells: list[CheckedCell]
    ranks: list[RankedColumn] = Field(default_factory=list)
    """What `columns` counts."""
    assumptions: list[str] = Field(default_factory=list)
    left_out: list[str] = Field(default_factory=list)
    kernel: Kernel | None = None
    """With `--engine virtual`."""

    def to_json(self) -> str:
        """Return it as JSON text with one trailing newline; without a kernel, no word of it."""
        return self.model_dump_json(indent=2, exclude=None if self.kernel else {"kernel"}) + "\n"
