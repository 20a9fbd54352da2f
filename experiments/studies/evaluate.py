"""Holds a study's figures against the paper's: cells, ranks and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from experiments.model.data import Data
from experiments.studies import ranks
from experiments.studies.document import CheckedCell, CheckedClaim, Kernel, KernelClaim, StudyDocument
from experiments.studies.judge import Figures, Judge
from experiments.studies.measure import Measured
from experiments.studies.schema import Cell, Claim, ClaimedRelation, Side, Study

_Part = TypeVar("_Part", bound=Data)


@dataclass(frozen=True)
class OnKernel:
    """What the kernel's runs of a study gave: figures by case and metric, and why others are missing."""

    figures: Measured
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By the name of a case, or of a metric."""


def evaluate(study: Study, measured: Measured, kernel: OnKernel | None = None) -> StudyDocument:
    """Return the document of a study, with what a kernel says beside the simulator if it was asked."""
    judge = Judge(_figures(measured), study.trim)
    ranked = ranks.rank(
        (
            ranks.Figure(cell.table, cell.row, cell.column, cell.paper, judge.figures(cell.ours))
            for cell in study.cells
            if cell.paper is not None
        ),
        study.trim,
        study.paper_runs,
    )
    return StudyDocument(
        study=study.name,
        claims=[_check(claim, study, judge) for claim in study.claims],
        columns=ranks.count(ranked),
        cells=[_cell(cell, judge) for cell in study.cells],
        ranks=ranked,
        assumptions=list(study.assumptions),
        left_out=list(study.left_out),
        kernel=None if kernel is None else _on_kernel(study, kernel),
    )


def _cell(cell: Cell, judge: Judge) -> CheckedCell:
    ours = judge.mean(judge.figures(cell.ours))
    half = ours.half_width
    interval = None if half is None else (ours.mean - half, ours.mean + half)
    place = {"table": cell.table, "row": cell.row, "column": cell.column}
    return CheckedCell(**place, paper=cell.paper, ours=ours.mean, interval=interval)


def _on_kernel(study: Study, kernel: OnKernel) -> Kernel:
    judge = Judge(_figures(kernel.figures), study.trim)

    def missing(side: Side) -> str | None:
        """Return why there is no such figure; None if there is."""
        lacking = [case for case in side.cases if (case, side.metric) not in kernel.figures]
        return next(
            (kernel.reasons[case if case in kernel.reasons else side.metric] for case in lacking), None
        )

    def judged(by: str, comparisons: Sequence[ClaimedRelation]) -> KernelClaim:
        sides = [side for each in comparisons for side in (each.left, each.right) if side is not None]
        reason = next(filter(None, map(missing, sides)), None)
        if reason is None and not comparisons:
            reason = "the paper contradicts itself"
        return KernelClaim(judgement=None if reason else judge.sentence(by, comparisons), why_not=reason)

    def checked(claim: Claim) -> KernelClaim:
        """Judge a sentence by its measure or, where a kernel does not have that, by the one beside it."""
        comparisons = claim.comparisons()
        found, other = judged(claim.by, comparisons), study.metrics[claim.by].beside
        if found.judgement is not None or other is None:
            return found
        beside = judged(other, [one.replace(study.beside) for one in comparisons])
        return found if beside.judgement is None else beside

    cells = [_cell(cell, judge) for cell in study.cells if missing(cell.ours) is None]
    return Kernel(
        claims=[checked(claim) for claim in study.claims],
        cells=cells,
        otherwise=list(study.otherwise_in_kernels.values()),
    )


def together(name: str, documents: Sequence[StudyDocument]) -> StudyDocument:
    """Return several studies' documents as one, the study's name in front of its sources and tables."""

    def named(pick: Callable[[StudyDocument], Sequence[_Part]], key: str) -> list[_Part]:
        return [
            part.model_copy(update={key: f"{document.study}: {getattr(part, key)}"})
            for document in documents
            for part in pick(document)
        ]

    def texts(pick: Callable[[StudyDocument], Sequence[str]]) -> list[str]:
        return [f"{document.study}: {text}" for document in documents for text in pick(document)]

    ranked = named(lambda document: document.ranks, "table")
    return StudyDocument(
        study=name,
        claims=named(lambda document: document.claims, "source"),
        columns=ranks.count(ranked),
        cells=named(lambda document: document.cells, "table"),
        ranks=ranked,
        assumptions=texts(lambda document: document.assumptions),
        left_out=texts(lambda document: document.left_out),
        kernel=Kernel(
            claims=[claim for each in documents if each.kernel for claim in each.kernel.claims],
            cells=named(lambda document: document.kernel.cells if document.kernel else (), "table"),
            otherwise=texts(lambda document: document.kernel.otherwise if document.kernel else ()),
        )
        if any(document.kernel for document in documents)
        else None,
    )


def _check(claim: Claim, study: Study, judge: Judge) -> CheckedClaim:
    comparisons = claim.comparisons()
    judged = judge.sentence(claim.by, comparisons)
    other = study.metrics[claim.by].beside
    return CheckedClaim(
        claim=claim.claim,
        source=claim.source,
        status=judged.status if judged else "contradictory",
        by=claim.by,
        evidence=judged.evidence if judged else claim.contradiction or "",
        beside=judge.sentence(other, [one.replace(study.beside) for one in comparisons]) if other else None,
        depends_on=claim.depends_on and study.dependences[claim.depends_on].assumption,
        without=judge.sentence(claim.by, study.without(claim)),
    )


def _figures(measured: Measured) -> Figures:
    """Return what tells the runs of a side; those of several cases are their means, seed by seed."""

    def figures(side: Side) -> list[float]:
        cases = [measured[case, side.metric] for case in side.cases]
        return [math.fsum(values) / len(values) for values in zip(*cases, strict=True)]

    return figures
