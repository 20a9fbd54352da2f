"""A study's document for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.studies.document import CheckedClaim, Status, StudyDocument
from experiments.studies.figures import number, with_interval

STYLES: Mapping[Status, str] = {
    "reproduced": "green",
    "not_reproduced": "red",
    "undecided": "yellow",
    "contradictory": "magenta",
}


def words(status: Status) -> str:
    """Return a status in words."""
    return status.replace("_", " ")


def counts(document: StudyDocument) -> list[str]:
    """Return in sentences how much of the paper is reproduced."""
    claims = document.claims
    number = Counter(claim.status for claim in claims)
    sentences = [
        f"{number['reproduced']} of {len(claims)} sentences are reproduced, {number['not_reproduced']} not, "
        f"{number['undecided']} cannot be told; in {number['contradictory']} the paper contradicts itself."
    ]
    reproduced = [claim for claim in claims if claim.status == "reproduced"]
    for what, others in (
        ("by the measure beside the paper's", [claim.beside for claim in reproduced]),
        ("without the assumption on which they depend", [claim.without for claim in reproduced]),
    ):
        checked = [other.status == "reproduced" for other in others if other is not None]
        if checked:
            sentences.append(f"{sum(checked)} of {len(checked)} of the reproduced are so {what}, too.")
    columns = document.columns
    if columns.of:
        told_apart = columns.pairs_alike + columns.pairs_contrary
        sentences += [
            f"{columns.ranked_alike} of {columns.of} columns rank their rows as the paper does; "
            f"{columns.consistent} have an order that chance alone could give the paper's runs, "
            f"{columns.uncontradicted} no pair in another order.",
            f"{columns.pairs_alike} of {told_apart} pairs of rows that the seeds tell apart are in the "
            f"paper's order, {columns.pairs_open} more are open.",
        ]
    return sentences


def also(claim: CheckedClaim) -> list[str]:
    """Return what else was found of a sentence: by another measure, without an assumption."""
    lines = []
    if claim.beside is not None:
        lines.append(f"By {claim.beside.by} {words(claim.beside.status)}: {claim.beside.evidence}")
    if claim.without is not None:
        status = words(claim.without.status)
        lines.append(f"Depends on: {claim.depends_on} Without it {status}: {claim.without.evidence}")
    return lines


def on_kernel(document: StudyDocument) -> list[str]:
    """Return for each sentence what a kernel says of it; empty where none was asked."""
    return [
        f"Not possible on a kernel, because {claim.why_not}."
        if claim.judgement is None
        else f"By the kernel {words(claim.judgement.status)} (by {claim.judgement.by}): "
        f"{claim.judgement.evidence}"
        for claim in (document.kernel.claims if document.kernel else ())
    ]


def remarks(document: StudyDocument) -> Iterator[tuple[str, list[str]]]:
    """Return what stands below a study's figures, under its headings."""
    otherwise = document.kernel.otherwise if document.kernel else []
    parts = {
        "Assumed": document.assumptions,
        "Otherwise in the kernel": otherwise,
        "Left out": document.left_out,
    }
    yield from ((title, texts) for title, texts in parts.items() if texts)


def print_study(document: StudyDocument, console: Console) -> None:
    """Print cells beside the paper's, claims with their evidence, and what was assumed and left out."""
    if document.cells:
        table = Table("table", "row", "column", "paper", "ours, ± of 95 %", title=document.study)
        for cell in document.cells:
            paper = "" if cell.paper is None else number(cell.paper)
            table.add_row(cell.table, cell.row, cell.column, paper, with_interval(cell.ours, cell.half_width))
        console.print(table)
    kernel = on_kernel(document)
    for index, claim in enumerate(document.claims):
        style = STYLES[claim.status]
        console.print(
            f"[{style}]{words(claim.status)}[/] by {escape(claim.by)}: {escape(claim.claim)} "
            f"[dim]({escape(claim.source)})[/]"
        )
        for line in (claim.evidence, *also(claim), *kernel[index : index + 1]):
            console.print(f"    {escape(line)}", style="dim")
    for sentence in counts(document):
        console.print(f"{document.study}: {sentence}")
    for title, texts in remarks(document):
        for text in texts:
            console.print(f"{title}: {escape(text)}")
