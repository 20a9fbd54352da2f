"""Studies as one HTML page, with Markdown and the figures as files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.model.atomic_files import write_output
from experiments.report.canvas import Plot
from experiments.report.pages import distinct, render_template, write_page
from experiments.report.plot_study import plot_table
from experiments.report.study_markdown import to_markdown
from experiments.report.study_tables import StudyTable, tables_of, verdict
from experiments.studies.document import StudyDocument
from experiments.studies.schema import Study
from experiments.studies.text import also, counts, on_kernel, remarks, words

PAGE = "study.html"
MARKDOWN = "study.md"


@dataclass(frozen=True)
class StudySection:
    """A study on the page: its tables, each with its figure."""

    study: Study
    document: StudyDocument
    counts: Sequence[str]
    tables: Sequence[tuple[StudyTable, Plot]]
    kernel: Sequence[str]


def write_studies(studies: Sequence[tuple[Study, StudyDocument]], seeds: int, out_dir: Path) -> Path:
    """Write `study.html`, whole in one file, `study.md`, and the figures as `plots/study-*` (SVG, PNG, PDF).

    The same documents give the same bytes.

    Raises:
        OutputError: the folder or a file in it cannot be written.
    """
    taken: set[str] = set()
    sections = [_section(study, document, taken) for study, document in studies]
    page = render_template(
        "study.html.j2",
        sections=sections,
        seeds=seeds,
        verdict=verdict,
        also=also,
        words=words,
        remarks=remarks,
    )
    plots = [plot for section in sections for _, plot in section.tables]
    path = write_page(page, plots, out_dir, PAGE)
    write_output(out_dir / MARKDOWN, to_markdown(studies, seeds))
    return path


def _section(study: Study, document: StudyDocument, taken: set[str]) -> StudySection:
    tables = tables_of(study, document)
    plots = distinct((plot_table(study.name, table) for table in tables), taken)
    return StudySection(
        study, document, counts(document), list(zip(tables, plots, strict=True)), on_kernel(document)
    )
