"""The reproduction of Table I as one HTML page, with Markdown and the plots as files beside it."""

from __future__ import annotations

from pathlib import Path

from experiments.errors import OutputError
from experiments.model.whole_files import write_whole
from experiments.report.notes import Notes
from experiments.report.pages import render_template, write_page
from experiments.report.plot_delay_time import plot_delay_over_time
from experiments.report.reproduction import Reproduction
from experiments.report.reproduction_text import EXPLANATION, HEADS, cells_of, described, to_markdown

PAGE = "table1.html"
MARKDOWN = "table1.md"


def write_reproduction(reproduction: Reproduction, out_dir: Path) -> Path:
    """Write `table1.html`, whole in one file, `table1.md`, and the plots as `plots/*` (SVG, PNG, PDF).

    Args:
        reproduction: The table.
        out_dir: A folder; it is made if it is not there.

    Returns:
        The path of the page.

    Raises:
        OutputError: The folder or a file in it cannot be written.
    """
    sections = []
    for variant, rows in reproduction.rows.items():
        notes = Notes()
        cells = [(row, cells_of(row, notes)) for row in rows]
        sections.append((variant, cells, notes, plot_delay_over_time(variant, list(rows))))
    page = render_template(
        "reproduction.html.j2",
        described=f"{described(reproduction)} {EXPLANATION}",
        heads=[head.split("\n") for head in HEADS],
        sections=sections,
    )
    path = write_page(page, [section[3] for section in sections], out_dir, PAGE)
    try:
        write_whole(out_dir / MARKDOWN, to_markdown(reproduction))
    except OSError as error:
        raise OutputError(str(out_dir), error.strerror or str(error)) from error
    return path
