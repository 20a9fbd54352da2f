"""What all pages have in common: templates and their filters, the stylesheet, plots with distinct names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2

from experiments.model.atomic_files import output_errors, write_atomically
from experiments.report import units
from experiments.report.canvas import Plot, inline
from experiments.report.summary import unique

PLOTS = "plots"
TEMPLATES = Path(__file__).parent / "templates"


def render_template(template: str, **values: Any) -> str:
    """Return a page as HTML: a template with `values`, the stylesheet and the filters for numbers."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        mbps=units.mbps, ms=units.ms, percent=units.percent, size=units.size,
        interval=units.interval, svg=inline,
        pretty=lambda value: json.dumps(value, indent=1, ensure_ascii=False, default=str),
        groups=lambda value: f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
    )  # fmt: skip
    stylesheet = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    common = {"stylesheet": stylesheet, "missing": units.MISSING, "unique": unique, "units": units}
    return environment.get_template(template).render(**common, **values)


def write_page(page: str, plots: Iterable[Plot], out_dir: Path, name: str) -> Path:
    """Write a page and its plots, each as SVG, PNG and PDF; returns its path (OutputError: it fails)."""
    path = out_dir / name
    folder = out_dir / PLOTS
    with output_errors(out_dir):
        folder.mkdir(parents=True, exist_ok=True)
        for plot in plots:
            plot.write(folder)
        write_atomically(path, page)
    return path


def distinct(plots: Iterable[Plot], taken: set[str]) -> list[Plot]:
    """Return the plots, a number behind each name that is in `taken`; adds their names to it."""
    named = []
    for plot in plots:
        name, number = plot.name, 1
        while name in taken:
            number += 1
            name = f"{plot.name}-{number}"
        taken.add(name)
        named.append(replace(plot, name=name))
    return named
