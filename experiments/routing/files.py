"""The folder that `mstcp-lab solve --out` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.model.atomic_files import atomic_file, output_errors, write_atomically
from experiments.routing.document import Solved, summary
from experiments.routing.tables import (
    allocation_json,
    backups_csv,
    failures_csv,
    flows_csv,
    links_csv,
    paths_csv,
)

SOLUTION = "solution.html"


def to_json(document: dict[str, Any]) -> str:
    """Return a document as text; numbers that JSON does not have are an error."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def write_files(solved: Solved, described: str, folder: Path) -> None:
    """Write the page, tables as CSV, documents as JSON and the map (OutputError: one cannot be)."""
    # Matplotlib takes a second to import, which only those should wait for who get a drawing.
    from experiments.report.pages import write_page
    from experiments.routing.html_page import draw_map, plots_of, render_page

    plots = plots_of(solved)
    drawing = draw_map(solved, described)
    with output_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "summary.json", to_json(summary(solved)))
        for name, lines in (
            ("allocation.json", allocation_json(solved)),
            ("flows.csv", flows_csv(solved)),
            ("paths.csv", paths_csv(solved)),
            ("links.csv", links_csv(solved)),
            ("failures.csv", failures_csv(solved)),
            ("backups.csv", backups_csv(solved)),
        ):
            if solved.survey is None and name in ("failures.csv", "backups.csv"):
                continue
            with atomic_file(folder / name) as partial, partial.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        drawing.write(folder)
    write_page(render_page(solved, described, drawing, plots), plots, folder, SOLUTION)
