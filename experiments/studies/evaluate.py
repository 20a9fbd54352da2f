"""Holds a study's figures against the paper's: cells, ranks and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.statistics import Estimate, estimate, welch
from experiments.studies import ranks
from experiments.studies.cases import split_side
from experiments.studies.document import CheckedCell, CheckedClaim, Status, StudyDocument
from experiments.studies.figures import with_interval
from experiments.studies.measure import Measured
from experiments.studies.schema import Claim, Holds, Study

RELATIONS = {"above": ">", "below": "<", "about": "about"}


def evaluate(study: Study, measured: Measured) -> StudyDocument:
    """Return the document of a study."""
    cells = [
        CheckedCell(
            table=cell.table,
            row=cell.row,
            column=cell.column,
            paper=cell.paper,
            ours=(ours := _estimate(measured[cell.case, cell.metric], study.trim)).mean,
            interval=_interval(ours),
        )
        for cell in study.cells
    ]
    ranked = ranks.rank(
        (
            ranks.Figure(cell.table, cell.row, cell.column, cell.paper, measured[cell.case, cell.metric])
            for cell in study.cells
            if cell.paper is not None
        ),
        study.trim,
        study.paper_runs,
    )
    return StudyDocument(
        study=study.name,
        claims=[_check(claim, measured, study.trim) for claim in study.claims],
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


def _estimate(values: Sequence[float], trim: float) -> Estimate:
    computed = estimate(values, trim=trim)
    assert computed is not None, "every case has been run with a seed at least"
    return computed


def _interval(ours: Estimate) -> tuple[float, float] | None:
    if ours.half_width is None:
        return None
    return ours.mean - ours.half_width, ours.mean + ours.half_width


def _check(claim: Claim, measured: Measured, trim: float) -> CheckedClaim:
    held = [_holds(part, measured, trim) for part in claim.holds]
    status: Status = "reproduced" if all(part[0] for part in held) else "not reproduced"
    evidence = "; ".join(text for _, text in held)
    if claim.contradiction is not None:
        status = "contradictory"
        evidence = "; ".join(filter(None, [claim.contradiction, evidence]))
    return CheckedClaim(claim=claim.claim, source=claim.source, status=status, evidence=evidence)


def _holds(part: Holds, measured: Measured, trim: float) -> tuple[bool, str]:
    left = _estimate(measured[split_side(part.left)], trim)
    right_text, right = _right(part, measured, trim)
    told_apart = _told_apart(part, measured, trim)
    relation = f"{RELATIONS[part.relation]} {f'{part.factor:g} x ' if part.factor != 1 else ''}"
    text = f"{part.left} {_text(left)} {relation}{right_text}"
    bound = right * part.factor
    if part.relation == "about":
        return abs(left.mean - bound) <= part.tolerance * abs(bound), f"{text} within {part.tolerance:.0%}"
    holds = left.mean > bound if part.relation == "above" else left.mean < bound
    return holds and told_apart, text + ("" if told_apart else " (not told apart)")


def _told_apart(part: Holds, measured: Measured, trim: float) -> bool:
    """Return whether two measured figures differ by more than chance, as far as there are seeds to tell."""
    if not isinstance(part.right, str):
        return True
    left, right = (measured[split_side(side)] for side in (part.left, part.right))
    difference = welch(left, [part.factor * value for value in right], trim=trim)
    return difference is None or difference.significant is not False


def _right(part: Holds, measured: Measured, trim: float) -> tuple[str, float]:
    if isinstance(part.right, str):
        right = _estimate(measured[split_side(part.right)], trim)
        return f"{part.right} {_text(right)}", right.mean
    return f"{part.right:g}", part.right


def _text(value: Estimate) -> str:
    return with_interval(value.mean, value.half_width)
