"""A study's document for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.studies.document import StudyDocument

STYLES = {"reproduced": "green", "not reproduced": "red", "contradictory": "yellow"}


def print_study(document: StudyDocument, console: Console) -> None:
    """Print cells beside the paper's, claims with their evidence, and what was assumed and left out."""
    if document.cells:
        table = Table("table", "row", "column", "paper", "ours", "95 % interval", title=document.study)
        for cell in document.cells:
            interval = "" if cell.interval is None else f"{cell.interval[0]:.4g} to {cell.interval[1]:.4g}"
            paper = "" if cell.paper is None else f"{cell.paper:.4g}"
            table.add_row(cell.table, cell.row, cell.column, paper, f"{cell.ours:.4g}", interval)
        console.print(table)
        columns = document.columns
        console.print(f"{columns.ranked_alike} of {columns.of} columns rank their rows as the paper does.")
        told_apart = columns.pairs_alike + columns.pairs_contrary
        console.print(
            f"{columns.pairs_alike} of {told_apart} pairs of rows that the seeds tell apart are in the "
            f"paper's order, {columns.pairs_open} more are open; {columns.uncontradicted} columns have no "
            "pair in another order."
        )
    for claim in document.claims:
        style = STYLES[claim.status]
        console.print(f"[{style}]{claim.status}[/]: {escape(claim.claim)} [dim]({escape(claim.source)})[/]")
        console.print(f"    {escape(claim.evidence)}", style="dim")
    reproduced = sum(claim.status == "reproduced" for claim in document.claims)
    console.print(f"{document.study}: {reproduced} of {len(document.claims)} sentences reproduced.")
    for title, texts in (("Assumed", document.assumptions), ("Left out", document.left_out)):
        for text in texts:
            console.print(f"{title}: {escape(text)}")
