"""Holds a study's figures against the paper's: cells, ranks and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from experiments.analysis.statistics import Estimate
from experiments.studies import ranks
from experiments.studies.document import CheckedCell, CheckedClaim, StudyDocument
from experiments.studies.judge import Figures, Judge
from experiments.studies.measure import Measured
from experiments.studies.schema import Claim, Side, Study


def evaluate(study: Study, measured: Measured) -> StudyDocument:
    """Return the document of a study."""
    judge = Judge(_figures(measured), study.trim)
    cells = [
        CheckedCell(
            table=cell.table,
            row=cell.row,
            column=cell.column,
            paper=cell.paper,
            ours=(ours := judge.mean(judge.figures(cell.ours))).mean,
            interval=_interval(ours),
        )
        for cell in study.cells
    ]
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
        cells=cells,
        ranks=ranked,
        assumptions=list(study.assumptions),
        left_out=list(study.left_out),
    )


def together(name: str, documents: Sequence[StudyDocument]) -> StudyDocument:
    """Return several studies' documents as one, the study's name in front of its sources and tables."""
    ranked = [
        column.model_copy(update={"table": f"{document.study}: {column.table}"})
        for document in documents
        for column in document.ranks
    ]
    return StudyDocument(
        study=name,
        claims=[
            claim.model_copy(update={"source": f"{document.study}: {claim.source}"})
            for document in documents
            for claim in document.claims
        ],
        columns=ranks.count(ranked),
        cells=[
            cell.model_copy(update={"table": f"{document.study}: {cell.table}"})
            for document in documents
            for cell in document.cells
        ],
        ranks=ranked,
        assumptions=[f"{document.study}: {text}" for document in documents for text in document.assumptions],
        left_out=[f"{document.study}: {text}" for document in documents for text in document.left_out],
    )


def _interval(ours: Estimate) -> tuple[float, float] | None:
    if ours.half_width is None:
        return None
    return ours.mean - ours.half_width, ours.mean + ours.half_width


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
