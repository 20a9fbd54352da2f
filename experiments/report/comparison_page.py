"""A comparison as one HTML page with its plots inside, and the plots as files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.report.canvas import Plot
from experiments.report.comparison import Comparison, FlowComparison, Pair
from experiments.report.comparison_terminal import difference_text
from experiments.report.pages import distinct, render_template, write_page
from experiments.report.plot_comparison import DELAY, GOODPUT, plot_comparison
from experiments.report.summary import unique

PAGE = "compare.html"


@dataclass(frozen=True)
class ComparedScenario:
    """One case on the page: for each pair its rows by flow, and the plots of all documents by kind."""

    name: str
    tables: list[tuple[Pair, dict[str, list[FlowComparison]]]]
    plots: dict[str, list[Plot]]


def write_comparison(comparison: Comparison, out_dir: Path) -> Path:
    """Write `compare.html`, whole in one file, and its plots as `plots/compare-*` (SVG, PNG, PDF).

    The same documents under the same names give the same bytes.

    Raises:
        OutputError: The folder or a file in it cannot be written.
    """
    sections = _sections(comparison)
    page = render_template(
        "compare.html.j2", comparison=comparison, sections=sections, difference=difference_text
    )
    plots = [plot for section in sections for drawn in section.plots.values() for plot in drawn]
    return write_page(page, plots, out_dir, PAGE)


def _sections(comparison: Comparison) -> list[ComparedScenario]:
    taken: set[str] = set()
    return [
        ComparedScenario(
            name,
            [(pair, _by_flow(pair.cases()[name])) for pair in comparison.pairs if name in pair.cases()],
            {kind: distinct(plot_comparison(comparison, name, kind), taken) for kind in (GOODPUT, DELAY)},
        )
        for name in unique(row.case for pair in comparison.pairs for row in pair.rows)
    ]


def _by_flow(rows: list[FlowComparison]) -> dict[str, list[FlowComparison]]:
    return {flow: [row for row in rows if row.flow == flow] for flow in unique(row.flow for row in rows)}
