"""Studies as Markdown: sentences with their evidence, tables beside the paper's, what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from experiments.report.study_tables import StudyTable, tables_of, verdict
from experiments.studies.document import StudyDocument
from experiments.studies.schema import Study
from experiments.studies.text import also, counts, on_kernel, remarks, words


def to_markdown(studies: Sequence[tuple[Study, StudyDocument]], seeds: int) -> str:
    """Return a section for each study."""
    return "\n".join(line for study, document in studies for line in _section(study, document, seeds))


def _section(study: Study, document: StudyDocument, seeds: int) -> Iterator[str]:
    yield from (f"# {study.title}", "")
    runs = f"{seeds} seed{'' if seeds == 1 else 's'} of {study.duration_s:g} s"
    yield from (f"Study `{study.name}`, {runs}. Paper: {study.source}.", "")
    yield from (f"{sentence}\n" for sentence in counts(document))
    kernel = on_kernel(document)
    yield from ("## Sentences", "")
    yield from _table(
        ["status", "by", "sentence", "source", "evidence", *(["kernel"] if kernel else [])],
        (
            [
                *(words(claim.status), claim.by, claim.claim, claim.source),
                ". ".join([claim.evidence, *also(claim)]),
                *kernel[number : number + 1],
            ]
            for number, claim in enumerate(document.claims)
        ),
    )
    for table in tables_of(study, document):
        yield from (f"## {table.title}", "")
        yield from _figures(table)
    for title, texts in remarks(document):
        yield from (f"## {title}", "", *(f"- {text}" for text in texts), "")


def _figures(table: StudyTable) -> Iterator[str]:
    heads = [f"{table.headings[column]}: {side}" for column in table.columns for side in table.sides]
    rows = (
        [row, *(text for column in table.columns for text in table.figures(row, column))]
        for row in table.rows
    )
    yield from _table(["", *heads], rows)
    for row, metrics in table.own_metrics.items():
        yield from (f"Row `{row}`: {', '.join(metrics)}.", "")
    if table.ranks:
        yield from _table(
            ["order of the rows", "paper", "ours", ""],
            (
                [column, " > ".join(ranked.paper), " > ".join(ranked.ours), verdict(ranked)]
                for column, ranked in table.ranks.items()
            ),
        )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""
