"""A study's document for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.studies.document import StudyDocument
from experiments.studies.figures import number, with_interval

STYLES = {"reproduced": "green", "not reproduced": "red", "contradictory": "yellow"}


def counts(document: StudyDocument) -> list[str]:
    """Return in sentences how much of the paper is reproduced."""
    statuses = [claim.status for claim in document.claims]
    sentences = [f"{statuses.count('reproduced')} of {len(statuses)} sentences reproduced."]
    contradictory = statuses.count("contradictory")
    if contradictory:
        sentences.append(f"{contradictory} more where the paper contradicts itself.")
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


def print_study(document: StudyDocument, console: Console) -> None:
    """Print cells beside the paper's, claims with their evidence, and what was assumed and left out."""
    if document.cells:
        table = Table("table", "row", "column", "paper", "ours, ± of 95 %", title=document.study)
        for cell in document.cells:
            paper = "" if cell.paper is None else number(cell.paper)
            table.add_row(cell.table, cell.row, cell.column, paper, with_interval(cell.ours, cell.half_width))
        console.print(table)
    for claim in document.claims:
        style = STYLES[claim.status]
        console.print(f"[{style}]{claim.status}[/]: {escape(claim.claim)} [dim]({escape(claim.source)})[/]")
        console.print(f"    {escape(claim.evidence)}", style="dim")
    for sentence in counts(document):
        console.print(f"{document.study}: {sentence}")
    for title, texts in (("Assumed", document.assumptions), ("Left out", document.left_out)):
        for text in texts:
            console.print(f"{title}: {escape(text)}")
